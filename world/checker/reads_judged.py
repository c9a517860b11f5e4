"""Rules about reads: each shows the state at the position that it names."""

from collections.abc import Iterator

from application.queries.sessions import OWN_RUNS_SHOWN_MAX
from world.checker.folding import Folded, Places, Stream, lane_part
from world.checker.history import Call, History


def runs_as_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield runs that differ from the fold of their events up to the position."""
    for call, position in _reads(history, "run"):
        if call.about is not None:
            yield from _run(call, call.about, call.answer, position, folded)


def lists_as_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield pages of the registry that lack a run, have a wrong order, or show another position."""
    for call, position in _reads(history, "runs"):
        answer = folded.by_requester.get(str(call.about), Stream())
        there = [str(run.run_id) for run in answer.last(position, call.answer["limit"])]
        shown = [item["runId"] for item in call.answer["items"]]
        if shown != there:
            yield f"{call.told} at {position} shows {shown[:3]} …, on record are {there[:3]} …"
            continue
        for item in call.answer["items"]:
            yield from _run(call, item["runId"], item, position, folded)


def _run(call: Call, run_id: str, shown: object, position: int, folded: Folded) -> Iterator[str]:
    assert isinstance(shown, dict)
    stream = folded.runs.get(run_id)
    version = stream.version_at(position) if stream else 0
    if shown["version"] != version:
        yield f"{call.told} at {position} shows run {run_id} after {shown['version']} events, on"
        f" record are {version}"
        return
    is_so = folded.stage_at(run_id, position), folded.outcome_at(run_id, position)
    if (shown["stage"], shown["outcome"]) != is_so:
        yield f"{call.told} at {position} shows {shown['stage']}, {shown['outcome']}; it is {is_so}"


def sessions_as_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield sessions whose count of active children is wrong at the position."""
    for call, position in _reads(history, "session"):
        key = str(call.about)
        session = folded.sessions.get(key, Places())
        version, counted = session.version_at(position), session.counted_at(position)
        shown = call.answer
        if shown["version"] != version:
            yield f"{call.told} at {position} shows version {shown['version']}, it has {version}"
        if (shown["activeChildren"], shown["activeRuns"]) != (len(counted), counted):
            yield f"{call.told} at {position} counts {shown['activeRuns']}, on record {counted}"
        own = session.own_runs_at(position)[:OWN_RUNS_SHOWN_MAX]
        if shown.get("ownRuns", own) != own:
            yield f"{call.told} at {position} shows the runs {shown['ownRuns']}, on record {own}"
        if shown["activeChildren"] > history.cap:
            yield f"{call.told} at {position} shows {shown['activeChildren']} children"


def inboxes_as_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield inbox pages that lack an announcement, have a wrong order, or a wrong
    acknowledgement.
    """
    for call, position in _reads(history, "inbox"):
        announced = folded.announced.get(str(call.about), Stream())
        entries = [
            (str(event.run_id), event.position, _is_taken(folded, str(event.run_id), position))
            for event in announced.between(call.answer["after"], position)
        ]
        shown = [
            (item["runId"], item["position"], item["state"] == "acknowledged")
            for item in call.answer["items"]
        ]
        there = entries[: call.answer["limit"]]
        if newer := [entry for entry in shown if entry[1] > position]:
            yield f"{call.told} at {position} shows what is newer: {newer}"
        elif shown != there:
            wrong = sorted(set(shown) ^ set(there))
            yield f"{call.told} at {position} shows {len(shown)} of {len(entries)}; wrong: {wrong}"


def _is_taken(folded: Folded, run_id: str, position: int) -> bool:
    until = folded.runs[run_id].until(position)
    return "AnnouncementAcknowledged" in [event.type for event in until]


def lanes_as_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield lanes that do not show exactly the running and queued runs of the position."""
    for call, position in _reads(history, "lanes"):
        for part in ("running", "queued"):
            for run_id in call.answer[part]:
                stream = folded.runs.get(run_id)
                there = lane_part(stream.until(position) if stream else ())
                if there != part:
                    yield f"{call.told} at {position} shows {run_id} {part}; it is {there}"
        shown = len(call.answer["running"]), len(call.answer["queued"])
        is_so = folded.lanes.running_at(position), folded.lanes.queued_at(position)
        if shown != is_so:
            yield f"{call.told} at {position} shows {shown} running and queued; it is {is_so}"


def pages_as_recorded(history: History, _: Folded) -> Iterator[str]:
    """Yield pages of the log that lack events, or contain events after their head."""
    for call, position in _reads(history, "events"):
        shown = call.answer["positions"]
        behind, limit = call.answer["after"], call.answer["limit"]
        there = list(range(behind + 1, min(behind + limit, position) + 1))
        if shown != there:
            yield f"{call.told} at {position} shows {shown[:3]} …, on record are {there[:3]} …"


def past_is_answered_as_past(history: History, _: Folded) -> Iterator[str]:
    """Yield reads of a position that were answered at another one."""
    for call in history.calls:
        if call.at is not None and call.status == 200 and call.position != call.at:
            yield f"{call.told} asked for {call.at} and was answered at {call.position}"


def nothing_is_missing(history: History, folded: Folded) -> Iterator[str]:
    """Yield each run on record that a server did not find."""
    for call in history.calls:
        if call.kind != "run" or call.status != 404:
            continue
        stream = folded.runs.get(str(call.about))
        if call.at is None or (stream is not None and stream.version_at(call.at)):
            yield f"{call.told} was not found, at {call.at or 'the end'}"


def _reads(history: History, kind: str) -> Iterator[tuple[Call, int]]:
    for call in history.calls:
        position = call.position if call.at is None else call.at
        if call.kind == kind and call.status == 200 and position is not None:
            yield call, position
