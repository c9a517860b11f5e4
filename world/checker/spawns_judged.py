"""Rules about spawns, stops and acknowledgements: answers compared with the record."""

from collections.abc import Container, Iterator, Sequence

from world.checker.folding import OVER, Folded, Places, Request, request_of
from world.checker.history import ASKED, Call, Event, History

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
TURNED_AWAY = ("run_active", "session_closed", "no_session", "queue_full")


def answers_are_known(history: History, _: Folded) -> Iterator[str]:
    """Yield answers that no caller can use."""
    for call in history.calls:
        if call.status is not None and call.status not in KNOWN_STATUSES.get(
            call.kind, READ_STATUSES
        ):
            yield f"{call.told} was answered with {call.status}: {dict(call.answer)}"


def accepted_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield accepted spawns that are not recorded once, as requested, at or before the answer.

    The same holds for each run of a batch, in the order of the answer.
    """
    for call in history.calls:
        if call.kind not in ("spawn", "batch") or call.status != 201:
            continue
        result, request = call.answer.get("runs", [call.answer]), folded.asked_by(call)
        ids = [run["runId"] for run in result]
        if ids != [run.run_id for run in request]:
            yield f"{call.told} was accepted as {ids}; on record are {ids_of(request)}"
            continue
        if any(request.requester != call.requester for request in request):
            yield f"{call.told} is on record for {request[0].requester}"
        if call.answer.get("batchId") != request[0].facts.get("batch", {}).get("batchId"):
            yield f"{call.told} was told of batch {call.answer['batchId']}, which is another"
        labels = [request.facts["label"] for request in request]
        if labels != [answer.get("label", call.label) for answer in result]:
            yield f"{call.told} was told of other labels than {labels}"
        for item in result:
            events = folded.runs[item["runId"]].events
            created = [event for event in events if event.type == "SessionCreated"]
            keys = [event.facts["childSessionKey"] for event in created]
            if keys != [item["childSessionKey"]] or created[0].position > (call.position or 0):
                yield f"{call.told} was told of session {item['childSessionKey']} too early"


def refused_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield refusals that are not recorded once, by the same rule. A batch names one of its
    runs.
    """
    for call in _requests(history):
        rule, run_id = call.answer.get("rule"), call.answer.get("runId")
        if call.status not in (403, 422) or rule is None:
            continue
        request = folded.asked_by(call)
        ids = [run.run_id for run in request]
        if run_id not in ids or (call.kind != "batch" and len(ids) > 1):
            yield f"{call.told} was refused as {run_id}; on record are {ids_of(request)}"
            continue
        events = folded.runs[str(run_id)].events
        rules = [event.facts["rule"] for event in events if event.type == "SpawnRefused"]
        if rules != [rule]:
            yield f"{call.told} was refused by {rule}, on record by {rules}"


def refused_by_the_cap(history: History, folded: Folded) -> Iterator[str]:
    """Yield refusals by the cap that name a wrong limit or number of children."""
    for call in history.calls:
        stream = folded.runs.get(str(call.answer.get("runId")))
        if call.answer.get("rule") != "active_children" or stream is None:
            continue
        request = stream.events[0]
        session = folded.sessions.get(request.requester, Places())
        result = call.answer.get("current"), call.answer.get("limit")
        if result != (there := (len(session.counted_at(request.position)), history.cap)):
            yield f"{call.told} was told of {result} active children; on record are {there}"


def asked_once_is_recorded_once(history: History, folded: Folded) -> Iterator[str]:
    """Yield requests that were recorded more than once, or although every answer refused them.

    Repetitions under one key and killed servers make no difference. Messages that wait are checked
    in `messages_judged`.
    """
    calls_of: dict[Request, list[Call]] = {}
    for call in _requests(history):
        calls_of.setdefault(request_of(call), []).append(call)
    for request, found in folded.asked_for.items():
        if request not in calls_of:
            yield f"position {found[0][0].position} is a {request[0]} that nobody has asked for"
            continue
        result = calls_of[request][0].told
        if len(found) > 1:
            yield f"{result} is on record {len(found)} times: {ids_of([item[0] for item in found])}"
        elif all(call.answer.get("code") in TURNED_AWAY for call in calls_of[request]):
            yield f"{result} was turned away without a record, and is on record"
    for request, calls in calls_of.items():
        if request in folded.asked_for or any(call.status == 202 for call in calls):
            continue
        unrecorded = UNRECORDED if request[0] != "message" else (*UNRECORDED, *TURNED_AWAY)
        if not all(call.answer.get("code") in unrecorded or call.status is None for call in calls):
            yield f"{calls[0].told} was answered with {calls[0].status} and is not on record"


def one_key_is_one_run(history: History, folded: Folded) -> Iterator[str]:
    """Yield keys whose repetitions, with the same body, were answered with different runs or
    batches.
    """
    batches = {
        member.run_id: batch for batch, members in folded.batches.items() for member in members
    }
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
    """Yield accepted runs that are not in the requester's inbox exactly once, and other entries.

    A run that was stopped together with its requester may be missing.
    """
    stopped = _below_stopped_sessions(history, folded)
    for requester, value in folded.by_requester.items():
        announced = folded.announced.get(requester)
        entries = [
            (str(event.run_id), event.position) for event in (announced.events if announced else ())
        ]
        kept = list(history.inboxes.get(requester, ()))
        for entry in sorted(set(entries) - set(kept)):
            yield f"run {entry[0]} was announced to {requester} and is not in its inbox"
        for entry in sorted(set(kept) - set(entries)):
            yield f"the inbox of {requester} has run {entry[0]}, which was never announced there"
        if len(kept) != len(set(kept)):
            yield f"the inbox of {requester} repeats itself"
        run_ids = {run_id for run_id, _ in kept}
        for run in value.events:
            events = folded.runs[str(run.run_id)].events
            types = [event.type for event in events]
            if not {"RunQueued", "RunWaits"} & set(types) or run.run_id in run_ids:
                continue
            if not _stopped_with_requester(events, requester, stopped):
                yield f"run {run.run_id} was accepted and {requester} was never told of its end"


def _below_stopped_sessions(history: History, folded: Folded) -> set[str]:
    """Return the sessions that a caller stopped, and all below them."""
    found = {str(call.about) for call in history.calls if call.kind == "stop session"}
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
    """Yield stopped runs that are neither over nor stopping at the position of the answer."""
    for call in history.calls:
        if call.kind != "stop" or call.status != 200 or call.about is None:
            continue
        position = call.position or 0
        stream = folded.runs.get(call.about)
        types = {event.type for event in (stream.until(position) if stream else ())}
        stage = folded.stage_at(call.about, position)
        if stage not in OVER and "StopRequested" not in types:
            yield f"{call.told} was answered at {position}, where the run is {stage}"


def acknowledged_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield acknowledgements that are not on record."""
    for call in history.calls:
        if call.kind != "acknowledge" or call.status != 200 or call.about is None:
            continue
        stream = folded.runs.get(call.about)
        until = stream.until(call.position or 0) if stream else ()
        if "AnnouncementAcknowledged" not in {event.type for event in until}:
            yield f"{call.told} was answered at {call.position} and is not on record there"


def _requests(history: History) -> Iterator[Call]:
    return (call for call in history.calls if call.kind in ASKED)


def _spawns(history: History) -> Iterator[Call]:
    return (call for call in history.calls if call.kind == "spawn")


def ids_of(events: Sequence[Event]) -> str:
    """Return the ids of the runs that these events began, for a report."""
    return ", ".join(str(run.run_id) for run in events) or "none"
