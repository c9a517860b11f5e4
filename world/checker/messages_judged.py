"""Rules about messages to sessions and stops of sessions: answers compared with the record."""

from collections import Counter
from collections.abc import Iterator, Mapping

from world.checker.folding import OVER, Folded, Places
from world.checker.history import Call, Event, History
from world.checker.order_judged import after_the_highest
from world.checker.spawns_judged import ids_of

GOING_ON: Mapping[str, int] = {
    "MessageReceived": 1,
    "ChildAdmitted": 1,
    "RunContinued": 1,
    "SessionContinued": 1,
    "ContinuationPlanned": 1,
    "RunQueued": 1,
}
"""Events recorded together when a session continues, and the number of each."""
TURNED_AWAY: Mapping[str, int] = {"MessageReceived": 1, "SpawnRefused": 1}
TURNED_AWAY_LATER: Mapping[str, int] = {**TURNED_AWAY, "ContinuationFailed": 1}


def accepted_messages_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield accepted messages that are not exactly one recorded run of the session.

    The run continues the run that the answer names, and is recorded at or before the answer.
    """
    for call in _messages(history):
        if call.status != 201:
            continue
        received = folded.asked_by(call)
        run_id = call.answer["runId"]
        if [run.run_id for run in received] != [run_id]:
            yield f"{call.told} was accepted as {run_id}; on record are {ids_of(received)}"
            continue
        (event,) = received
        result = (call.answer["continues"], call.answer["childSessionKey"])
        there = (event.facts["continues"], event.facts["childSessionKey"])
        if result != there:
            yield f"{call.told} was told of {result}, on record is {there}"
        if folded.session_of.get(str(call.about)) != there[1]:
            yield f"{call.told} was sent to {call.about}, and went to {there[1]}"
        queued = [event.position for event in folded.runs[run_id].events if _is_queued(event)]
        if not queued or queued[0] > (call.position or 0):
            yield f"{call.told} was accepted at {call.position}, and its run queued at {queued}"


def queued_messages_are_recorded(history: History, folded: Folded) -> Iterator[str]:
    """Yield queued messages that are not recorded once, after the run that the answer names.

    They are recorded at or before the answer, and become the run that it names unless they are
    dropped.
    """
    for call in _messages(history):
        if call.status != 202:
            continue
        run_id, behind = call.answer["runId"], call.answer["continues"]
        queued = folded.queued.get(str(run_id), [])
        streams = [event.stream for event in queued]
        if streams != [f"run:{behind}"]:
            yield f"{call.told} waits behind {behind}; on record is {streams}"
            continue
        if queued[0].position > (call.position or 0):
            yield f"{call.told} waits at {call.position}, and is on record at {queued[0].position}"
        received = folded.asked_by(call)
        if [run.run_id for run in received] not in ([], [run_id]):
            yield f"{call.told} waits for {run_id}; on record are {ids_of(received)}"
        if bool(received) == (run_id in folded.dropped):
            yield f"{call.told} is neither a run nor dropped, or it is both"


def sessions_go_on_in_turn(history: History, folded: Folded) -> Iterator[str]:
    """Yield messages that did not continue a session in one append.

    The run takes a place and continues the newest run of an open session, whose runs are all done.
    A refusal has none of these events.
    """
    for received in history.events:
        if received.type != "MessageReceived":
            continue
        position, key = received.position, str(received.facts["childSessionKey"])
        together = history.events[position - 1 : received.append_last]
        types = Counter(event.type for event in together)
        before = position - 1
        if dict(types) in (TURNED_AWAY, TURNED_AWAY_LATER):
            continue
        if dict(types) != GOING_ON:
            yield f"the message at {position} was recorded with {dict(types)}"
            continue
        yield from _places(received, together)
        session = folded.sessions.get(key, Places())
        own = session.own_runs_at(before)[:1]
        if own != [received.facts["continues"]]:
            yield f"the message at {position} continues {received.facts['continues']}, not {own}"
        elif folded.stage_at(own[0], before) != "announced":
            yield f"the message at {position} continues {own[0]}, which is not announced there"
        elif folded.is_busy_at(key, before):
            yield f"the message at {position} goes to {key}, below which somebody is at work"
        if session.is_closed_at(before):
            yield f"the message at {position} goes to {key}, which is closed"


def _places(received: Event, together: tuple[Event, ...]) -> Iterator[str]:
    """Yield events of a continuation that concern a wrong stream."""
    key, run_id = received.facts["childSessionKey"], received.run_id
    expected = {
        "ChildAdmitted": (f"session:{received.requester}", run_id),
        "RunContinued": (f"run:{received.facts['continues']}", run_id),
        "SessionContinued": (f"session:{key}", run_id),
    }
    for event in together:
        found = (event.stream, event.facts.get("runId"))
        if found != expected.get(event.type, found):
            yield (
                f"the {event.type} at {event.position} is about {found}, not {expected[event.type]}"
            )


def put_away_in_turn(history: History, _: Folded) -> Iterator[str]:
    """Yield runs that were archived before a run that continues them."""
    continued: dict[str, str] = {}
    archived: set[str] = set()
    for event in history.events:
        run_id = str(event.run_id)
        if event.type == "RunContinued":
            continued[event.stream.removeprefix("run:")] = str(event.facts["runId"])
        elif event.type == "RunArchived":
            archived.add(run_id)
            if run_id in continued and continued[run_id] not in archived:
                yield f"position {event.position} archives {run_id} before {continued[run_id]}"


def turned_away_for_a_reason(history: History, folded: Folded) -> Iterator[str]:
    """Yield refusals because of an active or closed session that never was so.

    The reason must hold at some position between the last known one before the call and that of the
    answer. A stopping run may end in the transaction that the answer names.
    """
    calls = [call for call in history.calls if call.position is not None]
    high = {id(call): most for call, most in after_the_highest(calls, _messages(history))}
    for call in _messages(history):
        key = folded.session_of.get(str(call.about))
        position = call.position
        if call.status != 409 or key is None or position is None:
            continue
        if call.answer.get("code") == "session_closed":
            if not any(_is_put_away(folded, key, at) for at in range(high[id(call)], position + 1)):
                yield f"{call.told} was told that {key} is closed, at {position} it is not"
        elif call.answer.get("code") == "run_active":
            session = folded.sessions.get(key, Places())
            later = session.between(high[id(call)], position)
            if not (
                folded.is_busy_at(key, high[id(call)])
                or any(item.type in ("SessionContinued", "ChildAdmitted") for item in later)
                or _ends_above(folded, str(call.about), high[id(call)], position)
            ):
                yield f"{call.told} was told that {key} is at work, and it was not until {position}"


def stopped_sessions_are_over(history: History, folded: Folded) -> Iterator[str]:
    """Yield stopped sessions whose run is neither over nor stopping at the answer's position, and
    sessions of mode `session` that are not closed there.
    """
    for call in history.calls:
        if call.kind != "stop session" or call.status != 200 or call.position is None:
            continue
        session = folded.sessions.get(str(call.about), Places())
        own = session.own_runs_at(call.position)
        stays = bool(own) and folded.runs[own[-1]].events[0].facts.get("mode") == "session"
        if (stays or call.answer["closed"]) and not session.is_closed_at(call.position):
            yield f"{call.told} was answered at {call.position}, where the session is open"
        run_id = call.answer["runId"]
        if run_id is None:
            continue
        until = folded.runs[run_id].until(call.position)
        stage = folded.stage_at(run_id, call.position)
        if stage not in OVER and "StopRequested" not in {event.type for event in until}:
            yield f"{call.told} was answered at {call.position}, where run {run_id} is {stage}"


def _ends_above(folded: Folded, run_id: str, high: int, position: int) -> bool:
    """Return True if the requesting run waits to be announced, or ends meanwhile.

    It cannot wait for another child then.
    """
    requester = folded.requester_of(run_id)
    own = folded.sessions.get(str(requester), Places()).own_runs_at(position)
    if not own:
        return False
    ends = {event.type for event in folded.runs[own[0]].between(high, position)}
    return folded.stage_at(own[0], high) == "ended" or "RunEnded" in ends


def _is_put_away(folded: Folded, key: str, position: int) -> bool:
    """Return True if the session is closed, or will be when its last run is announced.

    That holds for one of mode `session` that was stopped, for one with cleanup `delete`, and for
    one that is stopped now.
    """
    session = folded.sessions.get(key, Places())
    own = session.own_runs_at(position)
    if session.is_closed_at(position) or any(
        event.type in ("RunArchived", "ArchiveScheduled")
        for run_id in own
        for event in folded.runs[run_id].until(position)
    ):
        return True
    if not own:
        return False
    facts = folded.runs[own[0]].events[0].facts
    stays, is_deleted = facts.get("mode") == "session", facts.get("cleanup") == "delete"
    if folded.outcome_at(own[0], position) == "stopped":
        return stays or is_deleted
    if folded.stage_at(own[0], position) == "announced":
        return is_deleted and not stays
    until = {event.type for event in folded.runs[own[0]].until(position)}
    return (stays or is_deleted) and "StopRequested" in until and "RunEnded" not in until


def _messages(history: History) -> Iterator[Call]:
    return (call for call in history.calls if call.kind == "message")


def _is_queued(event: Event) -> bool:
    return event.type == "RunQueued"
