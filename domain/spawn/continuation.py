"""Continuation of a session by a message: the decision, and the events it records.

A message starts a new run of the session after the previous run is announced. By then no ancestor
waits for that run and none of its children is active. So the new run takes a place of its own among
the children of the session's requester; that cap is the only admission rule.

If the previous run has yielded or was steered, the new run replaces it. The previous run is
announced as skipped in the same append and hands over its place.
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
"""How many reports of children one wake message carries; the rest follow in the next one."""

_NOT_ANNOUNCED: Mapping[MessageCause, str] = {
    "wake": "it yielded",
    "steer": "it was steered",
    "message": "it yielded, and a message came",
}


class RunIsActive(Rejected):
    """The session cannot take the message yet, because a run has to be announced first."""


class NoSession(Rejected):
    """The run never had a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Message to a session.

    Attributes:
        run_id: The id of the run that will process it.
        by: The sender.
        max_children: The cap on active children of the session's requester.
        completions: With `cause` "wake": the children whose reports it carries.
        has_waited: True if it comes from the queue of the last run, where it must be first.
    """

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
    """Changes to record, and the refusal if the message was refused."""

    changes: tuple[tuple[str, AnyEvent], ...]
    refusal: Refusal | None


def require_open(session: Session, last: Run, now: datetime | None = None) -> None:
    """Raise `SessionIsClosed` if the session is closed or about to be archived.

    Without `now`, an archive time after the announcement counts as not reached.
    """
    if session.stage == "closed" or last.stage == "archived" or _is_closing(last, now):
        raise SessionIsClosed(
            f"session {session.display_key} is closed and takes no messages; spawn a new child"
        )


def message_waits(session: Session, last: Run) -> bool:
    """Return True if a message to the session has to wait.

    It waits for earlier messages, and until the last run and all its children are settled. If the
    last run is paused and the queue is empty, it does not wait.
    """
    if last.queue:
        return True
    return not last.is_paused and (last.stage not in SETTLED or bool(session.unsettled))


def require_message_capacity(session: Session, last: Run, now: datetime | None = None) -> None:
    """Raise unless the session can take a message now.

    Raises:
        SessionIsClosed: The session is closed or about to be archived.
        RunIsActive: The message would have to wait.
    """
    require_open(session, last, now)
    if message_waits(session, last):
        raise RunIsActive(
            f"run {last.run_id} of this session is not announced yet; wait for it"
            " (wait=30s&until=announced), then send the message again"
        )


def _is_closing(last: Run, now: datetime | None) -> bool:
    """Return True if the session is due to be archived, even if no worker has archived it yet.

    Its resources may be in the process of being undone. If messages wait, it is archived only after
    them.
    """
    if last.put_away_from is not None or _ends_with_a_stop(last):
        return True
    if last.queue:
        return False
    at, announced = last.archive_at, last.announced_at
    return at is not None and announced is not None and at <= max(announced, now or announced)


def _ends_with_a_stop(last: Run) -> bool:
    """Return True if the session is archived once its last run, a stopped one, is announced."""
    if last.stage == "announced" or (last.options.mode != "session" and last.cleanup != "delete"):
        return False
    if last.outcome is None:
        return last.stop_requested_by is not None
    return last.outcome == "stopped" and not last.is_steered


def _require_not_announcing(requester: Session, runs: Mapping[UUID, Run]) -> None:
    """Raise `RunIsActive` if the run above is being announced, because it can wait for no new run.

    If it still waits for other descendants, it will wait for the new run too.
    """
    if requester.run_id is None:
        return
    above = runs.get(requester.run_id)
    if above is None:
        raise ReadAgain("the parent session changed meanwhile; read it again and retry")
    if above.stage == "ended" and not above.pending_descendants and not above.is_paused:
        raise RunIsActive(
            f"run {above.run_id}, of the session that spawned this one, is being announced;"
            " wait for it (wait=30s&until=announced), then send the message again"
        )


def message_received(message: Message, last: Run, requester: Session) -> MessageReceived:
    """Return the event for a message; the rest of its fields come from the last run."""
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
        queued=tuple(queued for queued in last.queue or () if queued.run_id != message.run_id),
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
    """Decide whether a session continues with a message.

    Args:
        sessions: The session and that of its requester, by key.
        runs: The runs around them, with those of the message's completions.
        message: The message.
        last: The run to continue, in its state at the time of `planned`.
        planned: The plan of the new run, or its refusal.
        keep: Stores the text of a refusal.
        at: The time now.

    Raises:
        ReadAgain: The session has another last run meanwhile, or more children have reported.
        SessionIsClosed: The session is closed or about to be archived.
        RunIsActive: The message has to wait, or the run above is being announced.
        NotYet: A message that has waited, or a wake, is not next.
    """
    assert last.child_session_key is not None
    session = sessions.get(last.child_session_key)
    now = runs.get(last.run_id)
    requester = sessions.get(last.requester.session_key)
    if session is None or now is None or requester is None:
        raise ReadAgain("the session changed while it was read; retry")
    if session.run_id != last.run_id:
        raise ReadAgain("the session changed meanwhile; read it again and retry")
    _require_next(message, session, now, at)
    if not now.is_paused:
        _require_not_announcing(requester, runs)
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
    # If the last run was announced, its announcement included all reports of its children.
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


def _require_next(message: Message, session: Session, last: Run, at: datetime | None) -> None:
    """Raise unless the message is the next one for the session.

    A message that has waited must be first in the queue. A wake must carry all reports, up to
    `COMPLETIONS_MAX`. Any other message needs a session without queue and active run.
    """
    if message.has_waited:
        require_open(session, last, at)
        if not last.queue or last.queue[0].run_id != message.run_id:
            raise NotYet("the message is not queued anymore, or not first")
        if last.stage != "announced" and not last.is_paused:
            raise NotYet("the run before it is not over yet")
        if not last.is_paused and session.unsettled:
            raise NotYet("a child of the session is active")
        return
    if message.cause == "wake":
        if not last.is_paused or last.wake_at is None or last.queue:
            raise NotYet("the run needs no wake anymore")
        if message.completions != session.reports[:COMPLETIONS_MAX]:
            raise ReadAgain("more children have reported meanwhile; read them again and retry")
        return
    require_message_capacity(session, last, at)


def _not_announced(last: Run, message: Message) -> RunAnnounced:
    return RunAnnounced(
        disposition="skipped",
        reason=f"{_NOT_ANNOUNCED[message.cause]}; run {message.run_id} continues its session",
        status="success" if last.outcome == "success" else "error",
        dedupe_key=dedupe_key(last),
    )


def _acknowledged(runs: Mapping[UUID, Run], message: Message) -> list[tuple[str, AnyEvent]]:
    """Acknowledge the announcements of children whose reports the message carries."""
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
    """Announce the previous run after all, with the reason, since no caller waits for an answer."""
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
