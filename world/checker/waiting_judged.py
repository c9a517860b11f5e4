"""Runs that wait for others: when they go on, when they fail, and that they come to an end."""

from collections.abc import Iterator, Mapping
from typing import Any

from world.checker.folding import DONE, OVER, Folded, Stream
from world.checker.history import Event, History

GOES_ON = ("RunQueued", "RunEnded")


def queued_when_all_is_met(history: History, folded: Folded) -> Iterator[str]:
    """Nobody is queued, let alone claimed, before all that it depends on was met, once each."""
    for run_id, stream in folded.runs.items():
        awaited = sorted(one["runId"] for one in _dependencies(stream))
        met: list[str] = []
        for event in stream.events:
            if event.type == "DependencyMet":
                met.append(str(event.facts["runId"]))
            elif event.type in ("RunQueued", "RunClaimed", "RunStarted") and sorted(met) != awaited:
                yield f"run {run_id} has {event.type} at {event.position}, and not all is met"
        if len(met) != len(set(met)) or not set(met) <= set(awaited):
            yield f"run {run_id} met {met}; it depends on {awaited}"


def met_when_done(history: History, folded: Folded) -> Iterator[str]:
    """What was met had ended by then, as it was required to, with all below it."""
    for run_id, stream in folded.runs.items():
        needs = {one["runId"]: one["require"] for one in _dependencies(stream)}
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
    """A run that ends, or is refused, because of another never started, and that one is over and
    is not as it was required to be."""
    for run_id, stream in folded.runs.items():
        for event in stream.events:
            word = event.facts.get("reason" if event.type == "RunEnded" else "rule")
            if event.type not in ("RunEnded", "SpawnRefused") or word != "dependency_failed":
                continue
            if any(one.type in ("RunQueued", "RunStarted") for one in stream.events):
                yield f"run {run_id} started, and failed for another"
            if not any(_failed(one, event, folded) for one in _dependencies(stream)):
                yield f"run {run_id} failed at {event.position} for another that did not"


def those_that_wait_go_on(history: History, folded: Folded) -> Iterator[str]:
    """Whoever waits is queued, or ends, once all that it waits for is over. In the end it is."""
    for run_id, stream in folded.runs.items():
        types = [event.type for event in stream.events]
        if "RunWaits" in types and not set(GOES_ON) & set(types[types.index("RunWaits") :]):
            yield f"run {run_id} waits for ever"
        waits = [event for event in stream.events if event.type == "RunWaits"]
        awaited = {one["runId"] for one in _dependencies(stream)}
        for event in waits:
            if not set(event.facts["runIds"]) <= awaited:
                yield f"run {run_id} waits for what it does not depend on"


def announced_after_all_below(history: History, folded: Folded) -> Iterator[str]:
    """A run is announced when all that its session has asked for is done."""
    for run_id, stream in folded.runs.items():
        for event in stream.events:
            if event.type == "RunAnnounced" and (
                below := _at_work_below(run_id, event.position, folded)
            ):
                yield f"run {run_id} was announced at {event.position}, and {below} was at work"


def _dependencies(stream: Stream) -> list[Mapping[str, Any]]:
    return list(stream.events[0].facts.get("dependencies", ()))


def _at_work_below(run_id: str, position: int, folded: Folded) -> str | None:
    """A run that this one still waits for: it is asked for by its session, and not done. One that
    was announced waits for nobody new."""
    stream = folded.runs[run_id]
    announced = [one.position for one in stream.events if one.type == "RunAnnounced"]
    position = min([position, *announced])
    below = folded.by_requester.get(folded.session_of.get(run_id, ""), Stream())
    for one in below.until(position):
        if folded.stage_at(str(one.run_id), position) not in DONE:
            return str(one.run_id)
    return None


def _failed(dependency: Mapping[str, Any], event: Event, folded: Folded) -> bool:
    target, position = str(dependency["runId"]), event.position
    stage = folded.stage_at(target, position)
    if stage == "refused":
        return True
    outcome = folded.outcome_at(target, position)
    return stage in OVER and dependency["require"] == "success" and outcome != "success"
