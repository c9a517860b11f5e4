"""Whether a session goes on with a message, decided from the record, and what is recorded then.

A message starts a new run of the session once the one before it is announced. So nobody above waits
for that one any more, and none of its children is at work: the new run takes a place of its own
among the children of the session that spawned it, and that is the only rule of admission.

Behind a run that has yielded, or was steered, the new run comes in its place: that one is announced
as skipped in the same append, and its place among the children is handed over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.event_types import AnyEvent
from domain.plan.child import RefusedChild
from domain.run.commands import AcknowledgeAnnouncement, FailContinuation
from domain.run.decide import decide as decide_run
from domain.run.decide import dedupe_key
from domain.run.events import (
    ContinuationFacts,
    ContinuationPlanned,
    MessageReceived,
    RunAnnounced,
    RunContinued,
    RunQueued,
    SpawnRefused,
)
from domain.run.facts import MessageCause
from domain.run.lifecycle import SETTLED
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.session.decide import AdmitContinuation, ContinueSession
from domain.session.decide import decide as decide_session
from domain.session.state import Session
from domain.spawn.admission import CONTINUATION, admit
from domain.spawn.cascade import CascadeState
from domain.spawn.cascade import decide as decide_cascade
from domain.spawn.request import StoreText
from domain.values.record import ContentRef, run_stream, session_stream
from domain.values.refusals import (
    NotYet,
    Permitted,
    ReadAgain,
    Refusal,
    Rejected,
    SessionIsClosed,
)

COMPLETIONS_MAX = 50
"""So many reports are told by one message; the next one tells the others."""

_NOT_ANNOUNCED: Mapping[MessageCause, str] = {
    "wake": "it yielded",
    "steer": "it was steered",
    "message": "it yielded, and a message came",
}


class RunIsActive(Rejected):
    """The session's last run is not announced yet: it takes no message until it is."""


class NoSession(Rejected):
    """The run never had a session that could be continued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent to a session. `text` is kept beside the log; `by` is who sends it. One that has
    waited is the first in the queue of the `last` run. With `cause` "wake" it tells what these
    children reported, its `completions`."""

    run_id: UUID
    text: ContentRef
    by: str
    config_revision: int
    max_children: int
    cause: MessageCause = "message"
    completions: tuple[UUID, ...] = ()
    has_waited: bool = False


@dataclass(frozen=True, slots=True)
class ContinuationDecision:
    """What was recorded, and the refusal when it was one."""

    changes: tuple[tuple[str, AnyEvent], ...]
    refusal: Refusal | None


def must_be_open(session: Session, last: Run, now: datetime | None = None) -> None:
    """Raises `SessionIsClosed` for a session that was put away or is about to be (by `now`, if that
    is known)."""
    if session.stage == "closed" or last.stage == "archived" or _is_closing(last, now):
        raise SessionIsClosed(
            f"session {session.display_key} is closed and takes no messages; spawn a new child"
        )


def must_wait(session: Session, last: Run) -> bool:
    """Whether a message waits: the session's last run, or any that it waits for, is not done, or
    other messages are before it. Behind a run that has yielded none waits."""
    if last.queue:
        return True
    return not last.is_paused and (last.stage not in SETTLED or bool(session.unsettled))


def must_take_messages(session: Session, last: Run, now: datetime | None = None) -> None:
    """Raises what `must_be_open` raises, and `RunIsActive` when a message has to wait."""
    must_be_open(session, last, now)
    if must_wait(session, last):
        raise RunIsActive(
            f"run {last.run_id} of this session is not announced yet; wait for it"
            " (wait=30s&until=announced), then send the message again"
        )


def _is_closing(last: Run, now: datetime | None) -> bool:
    """Also before somebody has come to it: what hangs on the session is undone with its end, and
    whoever puts it away may be at it. Behind a run for which messages wait it is put away after
    them."""
    if last.put_away_from is not None or _ends_with_a_stop(last):
        return True
    if last.queue:
        return False
    at, announced = last.archive_at, last.announced_at
    return at is not None and announced is not None and at <= max(announced, now or announced)


def _ends_with_a_stop(last: Run) -> bool:
    """Whether the session is put away as soon as its last run, which was stopped, is announced."""
    if last.stage == "announced" or (last.options.mode != "session" and last.cleanup != "delete"):
        return False
    if last.outcome is None:
        return last.stop_requested_by is not None
    return last.outcome == "stopped" and not last.is_steered


def _must_not_be_announced_now(requester: Session, runs: Mapping[UUID, Run]) -> None:
    """A run that waits for nothing any more is announced as it is: it can wait for nobody new.
    One that still waits for others waits for this one, too."""
    if requester.run_id is None:
        return
    above = runs.get(requester.run_id)
    if above is None:
        raise ReadAgain("the session above went on meanwhile; read it and ask again")
    if above.stage == "ended" and not above.pending_descendants and not above.is_paused:
        raise RunIsActive(
            f"run {above.run_id}, of the session that spawned this one, is being announced;"
            " wait for it (wait=30s&until=announced), then send the message again"
        )


def message_received(message: Message, last: Run, requester: Session) -> MessageReceived:
    """The message as it is recorded, with what holds for its run of the run before it."""
    assert last.child_session_key is not None
    assert last.agent_id is not None
    return MessageReceived(
        run_id=message.run_id,
        session_id=last.session_id,
        child_session_key=last.child_session_key,
        continues=last.run_id,
        opened_by=last.opened_by or last.run_id,
        requester=last.requester.changed({"run_id": requester.run_id}),
        agent_id=last.agent_id,
        depth=last.depth,
        label=last.label,
        message=message.text,
        model_argument=last.model_argument,
        thinking_argument=last.thinking_argument,
        thread=last.thread,
        context_mode=last.context_mode,
        delivery_origin=last.delivery_origin,
        options=last.options,
        facts=ContinuationFacts(
            active_children=requester.active_children, max_children=message.max_children
        ),
        config_revision=message.config_revision,
        by=message.by,
        cause=message.cause,
        completions=message.completions,
        queued=tuple(one for one in last.queue or () if one.run_id != message.run_id),
        opened_at=last.opened_at or last.created_at,
    )


def continue_session(
    sessions: Mapping[str, Session],
    runs: Mapping[UUID, Run],
    message: Message,
    last: Run,
    planned: ContinuationPlanned | RefusedChild,
    keep: StoreText,
    at: datetime | None = None,
) -> ContinuationDecision:
    """Judge and record a message. `last` is the run that it is to continue, as `planned` was made
    from it; `ReadAgain` when another has become the last one meanwhile. `at` is the time now.

    Raises `SessionIsClosed` and `RunIsActive`.
    """
    assert last.child_session_key is not None
    session = sessions.get(last.child_session_key)
    now = runs.get(last.run_id)
    requester = sessions.get(last.requester.session_key)
    if session is None or now is None or requester is None:
        raise ReadAgain("the session is not on record as it was read; ask again")
    if session.run_id != last.run_id:
        raise ReadAgain("the session went on meanwhile; read it and ask again")
    _must_be_next(message, session, now, at)
    if not now.is_paused:
        _must_not_be_announced_now(requester, runs)
    received = message_received(message, now, requester)
    own = run_stream(message.run_id)
    changes: list[tuple[str, AnyEvent]] = [(own, received)]
    verdict = Permitted() if now.is_paused else admit(CONTINUATION, received.facts)
    facts = None
    if isinstance(verdict, Permitted) and isinstance(planned, RefusedChild):
        verdict, facts = planned.refusal, planned.facts
    if isinstance(verdict, Refusal):
        changes.append((own, _refused_event(verdict, facts, keep)))
        if message.has_waited or message.cause == "wake":
            changes += _failed(sessions, runs, now, message, verdict, keep)
        return ContinuationDecision(tuple(changes), verdict)
    assert isinstance(planned, ContinuationPlanned)
    admission = AdmitContinuation(
        message.run_id, message.max_children, replaces=now.run_id if now.is_paused else None
    )
    # Of a run that was announced the children were told with it.
    settled = message.completions if now.is_paused else session.reports
    going_on = ContinueSession(message.run_id, planned.role, planned.control_scope, settled)
    on_session, above = session_stream(session.session_key), session_stream(requester.session_key)
    changes += [(above, event) for event in decide_session(requester, admission)]
    changes.append((run_stream(now.run_id), RunContinued(run_id=message.run_id)))
    if now.is_paused:
        changes.append((run_stream(now.run_id), _not_announced(now, message)))
    changes += [(on_session, event) for event in decide_session(session, going_on)]
    changes += _acknowledged(runs, message)
    changes.append((own, planned))
    changes.append((own, RunQueued(lane=planned.plan.lane, lane_depth=received.depth)))
    return ContinuationDecision(tuple(changes), None)


def _must_be_next(message: Message, session: Session, last: Run, at: datetime | None) -> None:
    """A message that has waited is the next one; one that tells of children tells of all that have
    reported; another one is taken by a session that nothing else is the next for."""
    if message.has_waited:
        must_be_open(session, last, at)
        if not last.queue or last.queue[0].run_id != message.run_id:
            raise NotYet("it does not wait any more, or another message is before it")
        if last.stage != "announced" and not last.is_paused:
            raise NotYet("the run before it is not over yet")
        if not last.is_paused and session.unsettled:
            raise NotYet("a child of the session is at work")
        return
    if message.cause == "wake":
        if not last.is_paused or last.wake_at is None or last.queue:
            raise NotYet("it is not to be woken any more")
        if message.completions != session.reports[:COMPLETIONS_MAX]:
            raise ReadAgain("more children have reported meanwhile; read them and ask again")
        return
    must_take_messages(session, last, at)


def _not_announced(last: Run, message: Message) -> RunAnnounced:
    """Nobody is told of a run in whose place its session goes on."""
    return RunAnnounced(
        disposition="skipped",
        reason=f"{_NOT_ANNOUNCED[message.cause]}; run {message.run_id} goes on in its place",
        status="success" if last.outcome == "success" else "error",
        dedupe_key=dedupe_key(last),
    )


def _acknowledged(runs: Mapping[UUID, Run], message: Message) -> list[tuple[str, AnyEvent]]:
    """Whose announcement is told by the message has been taken by its reader."""
    taken: list[tuple[str, AnyEvent]] = []
    command = AcknowledgeAnnouncement(by=f"run {message.run_id}")
    for run_id in message.completions:
        run = runs.get(run_id)
        if run is None or run.inbox is None or run.inbox.disposition != "inbox":
            continue
        taken += [(run_stream(run_id), event) for event in decide_run(run, command)]
    return taken


def _failed(
    sessions: Mapping[str, Session],
    runs: Mapping[UUID, Run],
    last: Run,
    message: Message,
    refusal: Refusal,
    keep: StoreText,
) -> list[tuple[str, AnyEvent]]:
    """Nobody waits for the answer: the run before it is announced after all, with the reason."""
    command = FailContinuation(run_id=message.run_id, error=keep("refusal", refusal.text))
    return decide_cascade(CascadeState(runs, sessions), last.run_id, command)


def _refused_event(refusal: Refusal, facts: PlanFacts | None, keep: StoreText) -> SpawnRefused:
    return SpawnRefused(
        rule=refusal.rule,
        status=refusal.status,
        step="admission" if facts is None else "preparation",
        text=keep("refusal", refusal.text),
        inputs={"current": refusal.current, "limit": refusal.limit},
        facts=facts,
    )
