"""Rules about dependencies: when waiting runs are queued or fail, and that they come to an end."""

from collections.abc import Iterator, Mapping
from typing import Any

from world.checker.folding import DONE, OVER, Folded, Stream
from world.checker.history import Event, History

GOES_ON = ("RunQueued", "RunEnded")


def queued_when_all_is_met(history: History, folded: Folded) -> Iterator[str]:
    """Yield runs that were queued or claimed before each dependency was met once."""
    for run_id, stream in folded.runs.items():
        awaited = sorted(dependency["runId"] for dependency in _dependencies(stream))
        met: list[str] = []
        for event in stream.events:
            if event.type == "DependencyMet":
                met.append(str(event.facts["runId"]))
            elif event.type in ("RunQueued", "RunClaimed", "RunStarted") and sorted(met) != awaited:
                yield f"run {run_id} has {event.type} at {event.position}, and not all is met"
        if len(met) != len(set(met)) or not set(met) <= set(awaited):
            yield f"run {run_id} met {met}; it depends on {awaited}"


def met_when_done(history: History, folded: Folded) -> Iterator[str]:
    """Yield met dependencies whose run had not ended as required, with all runs below it."""
    for run_id, stream in folded.runs.items():
        needs = {dependency["runId"]: dependency["require"] for dependency in _dependencies(stream)}
        for event in stream.events:
            if event.type != "DependencyMet":
                continue
            target, position = str(event.facts["runId"]), event.position
            outcome = folded.outcome_at(target, position)
            if outcome is None or event.facts["outcome"] != outcome:
                yield f"run {run_id} met {target} at {position}, where it has ended as {outcome}"
            elif needs.get(target) == "success" and outcome != "success":
                yield f"run {run_id} met {target} at {position}, which ended as {outcome}"
            elif below := _at_work_below(target, position, folded):
                yield f"run {run_id} met {target} at {position}, below which {below} was at work"


def failed_for_a_reason(history: History, folded: Folded) -> Iterator[str]:
    """Yield runs that failed by a dependency although they had started, or it had not failed."""
    for run_id, stream in folded.runs.items():
        for event in stream.events:
            word = event.facts.get("reason" if event.type == "RunEnded" else "rule")
            if event.type not in ("RunEnded", "SpawnRefused") or word != "dependency_failed":
                continue
            if any(event.type in ("RunQueued", "RunStarted") for event in stream.events):
                yield f"run {run_id} started, and failed for another"
            if not any(_failed(dependency, event, folded) for dependency in _dependencies(stream)):
                yield f"run {run_id} failed at {event.position} for another that did not"


def those_that_wait_go_on(history: History, folded: Folded) -> Iterator[str]:
    """Yield runs that still wait at the end although all their dependencies are over."""
    for run_id, stream in folded.runs.items():
        types = [event.type for event in stream.events]
        if "RunWaits" in types and not set(GOES_ON) & set(types[types.index("RunWaits") :]):
            yield f"run {run_id} waits for ever"
        waits = [event for event in stream.events if event.type == "RunWaits"]
        awaited = {dependency["runId"] for dependency in _dependencies(stream)}
        for event in waits:
            if not set(event.facts["runIds"]) <= awaited:
                yield f"run {run_id} waits for what it does not depend on"


def announced_after_all_below(history: History, folded: Folded) -> Iterator[str]:
    """Yield runs that were announced before every run that their session requested was done."""
    for run_id, stream in folded.runs.items():
        for event in stream.events:
            if event.type == "RunAnnounced" and (
                below := _at_work_below(run_id, event.position, folded)
            ):
                yield f"run {run_id} was announced at {event.position}, and {below} was at work"


def _dependencies(stream: Stream) -> list[Mapping[str, Any]]:
    return list(stream.events[0].facts.get("dependencies", ()))


def _at_work_below(run_id: str, position: int, folded: Folded) -> str | None:
    """Return a run that this one still waits for: requested by its session, and not done.

    A run that was announced waits for no new ones.
    """
    stream = folded.runs[run_id]
    announced = [event.position for event in stream.events if event.type == "RunAnnounced"]
    position = min([position, *announced])
    below = folded.by_requester.get(folded.session_of.get(run_id, ""), Stream())
    for run in below.until(position):
        if folded.stage_at(str(run.run_id), position) not in DONE:
            return str(run.run_id)
    return None


def _failed(dependency: Mapping[str, Any], event: Event, folded: Folded) -> bool:
    target, position = str(dependency["runId"]), event.position
    stage = folded.stage_at(target, position)
    if stage == "refused":
        return True
    outcome = folded.outcome_at(target, position)
    return stage in OVER and dependency["require"] == "success" and outcome != "success"
