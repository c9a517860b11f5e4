"""Whether a session goes on with a message, decided from the record, and what is recorded then.

A message starts a new run of the session once the one before it is announced. So nobody above waits
for that one any more, and none of its children is at work: the new run takes a place of its own
among the children of the session that spawned it, and that is the only rule of admission.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.event_types import AnyEvent
from domain.plan.child import IneligiblePlan
from domain.run.events import (
    ContinuationFacts,
    ContinuationPlanned,
    MessageReceived,
    RunContinued,
    RunQueued,
    SpawnRefused,
)
from domain.run.lifecycle import SETTLED
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.session.decide import AdmitContinuation, ContinueSession
from domain.session.decide import decide as decide_session
from domain.session.state import Session
from domain.spawn.admission import CONTINUATION, admit
from domain.spawn.request import StoreText
from domain.values.record import ContentRef, run_stream, session_stream
from domain.values.refusals import ReadAgain, Refusal, Rejected, SessionIsClosed


class RunIsActive(Rejected):
    """The session's last run is not announced yet: it takes no message until it is."""


class NoSession(Rejected):
    """The run never had a session that could be continued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent to a session. `text` is kept beside the log; `by` is who sends it."""

    run_id: UUID
    text: ContentRef
    by: str
    config_revision: int
    max_children: int


@dataclass(frozen=True, slots=True)
class ContinuationDecision:
    """What was recorded, and the refusal when it was one."""

    changes: tuple[tuple[str, AnyEvent], ...]
    refusal: Refusal | None


def must_take_messages(session: Session, last: Run, now: datetime | None = None) -> None:
    """Raises `SessionIsClosed` for a session that was put away or is about to be (by `now`, if that
    is known), `RunIsActive` when its last run, or any that it waits for, is not done."""
    if session.stage == "closed" or last.stage == "archived" or _is_closing(last, now):
        raise SessionIsClosed(
            f"session {session.display_key} is closed and takes no messages; spawn a new child"
        )
    if last.stage not in SETTLED or session.unsettled:
        raise RunIsActive(
            f"run {last.run_id} of this session is not announced yet; wait for it"
            " (wait=30s&until=announced), then send the message again"
        )


def _is_closing(last: Run, now: datetime | None) -> bool:
    """Also before somebody has come to it: what hangs on the session is undone with its end, and
    whoever puts it away may be at it."""
    if last.put_away_from is not None:
        return True
    at, announced = last.archive_at, last.announced_at
    return at is not None and announced is not None and at <= max(announced, now or announced)


def _must_not_be_announced_now(requester: Session, runs: Mapping[UUID, Run]) -> None:
    """A run that waits for nothing any more is announced as it is: it can wait for nobody new.
    One that still waits for others waits for this one, too."""
    if requester.run_id is None:
        return
    above = runs.get(requester.run_id)
    if above is None:
        raise ReadAgain("the session above went on meanwhile; read it and ask again")
    if above.stage == "ended" and not above.pending_descendants:
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
        light_context=last.light_context,
        thread=last.thread,
        context_mode=last.context_mode,
        delivery_origin=last.delivery_origin,
        options=last.options,
        facts=ContinuationFacts(
            active_children=requester.active_children, max_children=message.max_children
        ),
        config_revision=message.config_revision,
        by=message.by,
    )


def continue_session(
    sessions: Mapping[str, Session],
    runs: Mapping[UUID, Run],
    message: Message,
    last: Run,
    planned: ContinuationPlanned | IneligiblePlan,
    lane: str,
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
    must_take_messages(session, now, at)
    _must_not_be_announced_now(requester, runs)
    received = message_received(message, now, requester)
    own = run_stream(message.run_id)
    changes: list[tuple[str, AnyEvent]] = [(own, received)]
    verdict = admit(CONTINUATION, received.facts)
    if isinstance(verdict, Refusal):
        changes.append((own, _refused_event(verdict, None, keep)))
        return ContinuationDecision(tuple(changes), verdict)
    if isinstance(planned, IneligiblePlan):
        changes.append((own, _refused_event(planned.refusal, planned.facts, keep)))
        return ContinuationDecision(tuple(changes), planned.refusal)
    admission = AdmitContinuation(message.run_id, message.max_children)
    going_on = ContinueSession(message.run_id, planned.role, planned.control_scope)
    on_session, above = session_stream(session.session_key), session_stream(requester.session_key)
    changes += [(above, event) for event in decide_session(requester, admission)]
    changes.append((run_stream(now.run_id), RunContinued(run_id=message.run_id)))
    changes += [(on_session, event) for event in decide_session(session, going_on)]
    changes.append((own, planned))
    changes.append((own, RunQueued(lane=lane, lane_depth=received.depth)))
    return ContinuationDecision(tuple(changes), None)


def _refused_event(refusal: Refusal, facts: PlanFacts | None, keep: StoreText) -> SpawnRefused:
    return SpawnRefused(
        rule=refusal.rule,
        status=refusal.status,
        step="admission" if facts is None else "preparation",
        text=keep("refusal", refusal.text),
        inputs={"current": refusal.current, "limit": refusal.limit},
        facts=facts,
    )
