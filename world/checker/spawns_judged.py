"""What callers were told of their spawns, stops and announcements, compared with the record."""

from collections.abc import Container, Iterator, Sequence

from world.checker.folding import OVER, Folded, Places
from world.checker.history import Call, Event, History

KNOWN_STATUSES = {
    "spawn": (201, 403, 409, 422, 503),
    "stop": (200, 404, 409, 503),
    "batch": (201, 403, 409, 422, 503),
    "message": (201, 202, 403, 409, 422, 503),
    "stop session": (200, 404, 409, 503),
    "acknowledge": (200, 404, 409, 503),
}
READ_STATUSES = (200, 404, 503)
UNRECORDED = ("session_closed", "idempotency_key_reused", "unavailable")


def answers_are_known(history: History, _: Folded) -> Iterator[str]:
    """No answer that a caller could do nothing with."""
    for call in history.calls:
        if call.status is not None and call.status not in KNOWN_STATUSES.get(
            call.what, READ_STATUSES
        ):
            yield f"{call.told} was answered with {call.status}: {dict(call.answer)}"


def accepted_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Each accepted spawn is there once, as it was asked for, at or before its answer."""
    for call in _spawns(history):
        if call.status != 201:
            continue
        asked = folded.by_label.get(str(call.label), [])
        run_id, child = call.answer["runId"], call.answer["childSessionKey"]
        if [one.run_id for one in asked] != [run_id]:
            yield f"{call.told} was accepted as {run_id}; on record are {_ids(asked)}"
            continue
        if asked[0].requester != call.requester:
            yield f"{call.told} is on record for {asked[0].requester}"
        created = [one for one in folded.runs[run_id].events if one.type == "SessionCreated"]
        if [one.facts["childSessionKey"] for one in created] != [child]:
            yield f"{call.told} was accepted, and its session {child} was never created"
        elif created[0].position > (call.position or 0):
            yield f"{call.told} was told position {call.position} before {created[0].position}"


def refused_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Each refusal that its caller was told is on record once, by the same rule."""
    for call in _spawns(history):
        rule, run_id = call.answer.get("rule"), call.answer.get("runId")
        if call.status not in (403, 422) or rule is None:
            continue
        asked = folded.by_label.get(str(call.label), [])
        if [one.run_id for one in asked] != [run_id]:
            yield f"{call.told} was refused as {run_id}; on record are {_ids(asked)}"
            continue
        events = folded.runs[str(run_id)].events
        rules = [one.facts["rule"] for one in events if one.type == "SpawnRefused"]
        if rules != [rule]:
            yield f"{call.told} was refused by {rule}, on record by {rules}"


def refused_by_the_cap(history: History, folded: Folded) -> Iterator[str]:
    """Who was refused because of other children was told the cap, and how many there were."""
    for call in history.calls:
        stream = folded.runs.get(str(call.answer.get("runId")))
        if call.answer.get("rule") != "active_children" or stream is None:
            continue
        asked = stream.events[0]
        session = folded.sessions.get(asked.requester, Places())
        told = call.answer.get("current"), call.answer.get("limit")
        if told != (there := (len(session.counted_at(asked.position)), history.cap)):
            yield f"{call.told} was told of {told} active children; on record are {there}"


def asked_once_is_recorded_once(history: History, folded: Folded) -> Iterator[str]:
    """However often it was asked under its key, and whoever died meanwhile."""
    statuses: dict[str, list[Call]] = {}
    for call in _spawns(history):
        statuses.setdefault(str(call.label), []).append(call)
    for label, asked in folded.by_label.items():
        if label not in statuses:
            yield f"position {asked[0].position} is a spawn {label} that nobody has asked for"
        elif len(asked) > 1:
            yield f"spawn {label} is on record {len(asked)} times: {_ids(asked)}"
    for label, calls in statuses.items():
        if label in folded.by_label:
            continue
        if all(call.answer.get("code") in UNRECORDED or call.status is None for call in calls):
            continue
        yield f"{calls[0].told} was answered with {calls[0].status} and is not on record"


def one_key_is_one_run(history: History, folded: Folded) -> Iterator[str]:
    """The same key with the same body always means the same run, or the same batch: of that each
    answer names a run that it is about."""
    batches = {one.run_id: batch for batch, members in folded.batches.items() for one in members}
    runs: dict[str, dict[str, str]] = {}
    for call in history.calls:
        run_id = call.answer.get("runId")
        if call.key is not None and run_id is not None:
            runs.setdefault(call.key, {}).setdefault(batches.get(run_id, run_id), run_id)
    for key, found in runs.items():
        if len(found) > 1:
            ids = sorted(found.values())
            yield f"key {key} was answered with {len(ids)} runs: {', '.join(ids)}"


def announced_once(history: History, folded: Folded) -> Iterator[str]:
    """Each accepted run stands in its requester's inbox exactly once, and nothing else does. One
    that was stopped together with its requester need not."""
    stopped = _below_stopped_sessions(history, folded)
    for requester, asked in folded.by_requester.items():
        announced = folded.announced.get(requester)
        entries = [
            (str(one.run_id), one.position) for one in (announced.events if announced else ())
        ]
        kept = list(history.inboxes.get(requester, ()))
        for entry in sorted(set(entries) - set(kept)):
            yield f"run {entry[0]} was announced to {requester} and is not in its inbox"
        for entry in sorted(set(kept) - set(entries)):
            yield f"the inbox of {requester} has run {entry[0]}, which was never announced there"
        if len(kept) != len(set(kept)):
            yield f"the inbox of {requester} repeats itself"
        told = {run_id for run_id, _ in kept}
        for one in asked.events:
            events = folded.runs[str(one.run_id)].events
            types = [event.type for event in events]
            if not {"RunQueued", "RunWaits"} & set(types) or one.run_id in told:
                continue
            if not _stopped_with_requester(events, requester, stopped):
                yield f"run {one.run_id} was accepted and {requester} was never told of its end"


def _below_stopped_sessions(history: History, folded: Folded) -> set[str]:
    """The sessions that somebody asked to stop, and all below them."""
    found = {str(call.about) for call in history.calls if call.what == "stop session"}
    above = {key: folded.requester_of(run_id) for run_id, key in folded.session_of.items()}
    while more := {key for key, requester in above.items() if requester in found} - found:
        found |= more
    return found


def _stopped_with_requester(
    events: Sequence[Event], requester: str, stopped: Container[str]
) -> bool:
    facts = {event.type: event.facts for event in events}
    return (
        requester in stopped
        and (
            facts.get("StopRequested", {}).get("byRequester") is True
            or facts.get("RunEnded", {}).get("stoppedByRequester") is True
        )
        and facts.get("RunAnnounced", {}).get("disposition") == "skipped"
    )


def stopped_are_over(history: History, folded: Folded) -> Iterator[str]:
    """Who was told that a run stops finds it over or told to stop where the answer is true."""
    for call in history.calls:
        if call.what != "stop" or call.status != 200 or call.about is None:
            continue
        position = call.position or 0
        stream = folded.runs.get(call.about)
        types = {event.type for event in (stream.until(position) if stream else ())}
        stage = folded.stage_at(call.about, position)
        if stage not in OVER and "StopRequested" not in types:
            yield f"{call.told} was answered at {position}, where the run is {stage}"


def acknowledged_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """An announcement that was taken is taken."""
    for call in history.calls:
        if call.what != "acknowledge" or call.status != 200 or call.about is None:
            continue
        stream = folded.runs.get(call.about)
        until = stream.until(call.position or 0) if stream else ()
        if "AnnouncementAcknowledged" not in {event.type for event in until}:
            yield f"{call.told} was answered at {call.position} and is not on record there"


def _spawns(history: History) -> Iterator[Call]:
    return (call for call in history.calls if call.what == "spawn")


def _ids(asked: list[Event]) -> str:
    return ", ".join(str(one.run_id) for one in asked) or "none"
