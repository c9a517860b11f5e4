"""Continues sessions: a message to a session becomes a new run."""

import contextlib
import logging
from dataclasses import dataclass
from uuid import UUID

from application.context.prompt_inputs import (
    BootstrapIngredients,
    bootstrap_ingredients,
    preamble_ingredients,
)
from application.coordination.lane import LanePlaces
from application.delivery.announce import findings_of
from application.log.answers import (
    SpawnRefusal,
    YieldedAnswer,
    continued_response,
    finished_response,
    queued_response,
    refusal_response,
    steered_response,
)
from application.log.envelope import SYSTEM, Actor, Provenance
from application.log.event_log import Decision, DecisionContext, Reservation, StoredAnswer
from application.log.texts import ContentsErased, TextStore
from application.log.unit_of_work import UnitOfWork, provenance_of, with_fresh_reads
from application.ports.configurations import PinnedConfiguration
from application.ports.credentials import Credentials
from application.ports.files import BootstrapFiles
from application.session.tool_policy import ToolGuard
from application.spawn.direct_delivery import delivers_directly
from domain.configuration.configuration import EffectiveAgent
from domain.delivery.wake import wake_message
from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.request import ChosenWorkspace
from domain.plan.tools import YIELD_TOOL
from domain.run.commands import FailContinuation, QueueMessage, YieldRun
from domain.run.continuation import CannotYield, require_steerable
from domain.run.decide import decide as decide_run
from domain.run.events import ContinuationPlanned, SessionCreated
from domain.run.evolve import initial_run
from domain.run.facts import HOOKS_OF_ENDS, Ingredient, MessageCause
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.batch import begun_runs
from domain.spawn.cascade import CascadeState, streams_of
from domain.spawn.cascade import decide as decide_cascade
from domain.spawn.continuation import (
    COMPLETIONS_MAX,
    Message,
    NoSession,
    RunIsActive,
    continue_session,
    message_received,
    message_waits,
    require_message_capacity,
    require_open,
)
from domain.spawn.pipeline import ChildFacts
from domain.spawn.stages import MESSAGE_STAGES, decide_child
from domain.values.record import Stamp, run_stream, session_stream
from domain.values.refusals import (
    ConfigurationMoved,
    NotYet,
    ReadAgain,
    Rejected,
    SessionIsClosed,
    WrongStage,
)
from domain.values.text import single_line


@dataclass(frozen=True, slots=True)
class SentMessage:
    """The run that a message began, the answer to its sender, and the position of both."""

    run: Run
    answer: StoredAnswer
    position: int


NAME_CHARACTERS_MAX = 72
WOKEN_BY = "its sub-agents"
YIELDED = "Turn yielded."
_BUSY = "the session changes too fast to be continued; retry in a moment"
_log = logging.getLogger("spawnlog.continuing")


@dataclass(frozen=True, slots=True)
class _MessageAttempt:
    """Facts from which a message is decided, and the texts to store with it."""

    last: Run
    requester: Session
    message: Message
    planned: ContinuationPlanned | RefusedChild
    text_store: TextStore
    pinned: PinnedConfiguration


@dataclass(frozen=True, slots=True)
class _OpenSession:
    """A session that continues, its last run, and the session that spawned it."""

    session: Session
    last: Run
    requester: Session


class SessionContinuation:
    """Service for messages to sessions. It also continues sessions with waiting messages."""

    def __init__(
        self,
        work: UnitOfWork,
        bootstrap: BootstrapFiles,
        credentials: Credentials,
        lanes: LanePlaces,
    ) -> None:
        self._work = work
        self._bootstrap = bootstrap
        self._credentials = credentials
        self._lanes = lanes

    async def send(
        self,
        run: Run,
        text: str,
        actor: Actor,
        reservation: Reservation | None = None,
        traceparent: str | None = None,
    ) -> SentMessage:
        """Continue the session of `run` with a message, in one append. If its last run is active,
        queue the message.

        `run` may be any run of the session. Before the append, nothing is done that cannot be
        repeated.

        Raises:
            NoSession: If the run never had a session.
            SessionIsClosed: If the session is closed.
            QueueFull: If too many messages wait.
            AlreadyReserved, LogUnavailable: From the log.
        """
        run_id, pinned = self._work.identities.run_id(), self._work.configurations.current()

        async def send(conflict: Rejected | None) -> SentMessage:
            nonlocal pinned
            if isinstance(conflict, ConfigurationMoved):
                pinned = await self._work.configurations.at(conflict.revision)
            try:
                attempt = await self._attempt(run, run_id, text, actor, pinned)
            except RunIsActive:
                return await self._queue(
                    run, run_id, text, actor, "message", reservation, traceparent
                )
            except Rejected as why:
                await self._work.require_new(provenance_of(run, actor), reservation, why)
                raise
            try:
                return await self._submit(attempt, actor, reservation, traceparent)
            except RunIsActive as active:
                raise ReadAgain(str(active)) from active

        return await with_fresh_reads(send, _BUSY, conflicts=(ReadAgain, ConfigurationMoved))

    async def steer(
        self,
        run: Run,
        text: str,
        actor: Actor,
        reservation: Reservation | None = None,
        traceparent: str | None = None,
    ) -> SentMessage:
        """End the active run of the session of `run`, and continue with the message in its place.
        No-op if the run is over.

        Raises:
            SteerTooLong: If the message is too long.
            SteeredTooSoon: If the last steer was too recent.
            Rejected: As raised by `send`.
        """
        require_steerable(text)
        run_id = self._work.identities.run_id()

        async def steer(_: Rejected | None) -> SentMessage:
            return await self._queue(run, run_id, text, actor, "steer", reservation, traceparent)

        return await with_fresh_reads(steer, _BUSY)

    async def yield_turn(
        self,
        session: Session,
        message: str | None,
        actor: Actor,
        reservation: Reservation | None = None,
    ) -> SentMessage:
        """End the turn of the session's active run, which then waits for its children.

        Raises:
            CannotYield: If the session has no active run that can yield.
        """

        async def ask(_: Rejected | None) -> SentMessage:
            return await self._yield(session.session_key, message, actor, reservation)

        return await with_fresh_reads(ask, _BUSY)

    async def go_on(self, run_id: UUID) -> None:
        """Continue the session after a run: with the first waiting message, else with its
        children's reports.

        If that is impossible, record the failure, so that the run is announced.
        """
        pinned = self._work.configurations.current()

        async def go_on(conflict: Rejected | None) -> None:
            nonlocal pinned
            if isinstance(conflict, ConfigurationMoved):
                pinned = await self._work.configurations.at(conflict.revision)
            last = await self._work.run(run_id)
            attempt = await self._next_attempt(last, pinned)
            if attempt is not None:
                sent = last.queue[0].traceparent if last.queue else None
                await self._submit(attempt, SYSTEM, None, sent)

        try:
            await with_fresh_reads(go_on, _BUSY, conflicts=(ReadAgain, ConfigurationMoved))
        except SessionIsClosed as why:
            _log.info("run %s: the session cannot continue: %s", run_id, why)
            last = await self._work.run(run_id)
            if last.is_paused:
                await self._give_up(last)
        except (NotYet, WrongStage, RunIsActive) as why:
            _log.info("run %s: the session cannot continue now: %s", run_id, why)
        except ContentsErased as erased:
            _log.warning("run %s: the session cannot continue: %s", run_id, erased)
            await self._give_up(await self._work.run(run_id))

    async def _next_attempt(self, last: Run, pinned: PinnedConfiguration) -> _MessageAttempt | None:
        if last.continued_by is not None or not (last.is_paused or last.stage == "announced"):
            return None
        opened = await self._open_session(last)
        text_store = await self._work.text_store(last)
        limit = pinned.configuration.subagent_defaults.max_children_per_agent
        if last.queue:
            first = last.queue[0]
            message = Message(
                run_id=first.run_id,
                text=first.message,
                by=first.by,
                config_revision=pinned.revision,
                max_children=limit,
                cause=first.cause,
                has_waited=True,
            )
        elif last.wake_at is not None:
            message = await self._wake(opened, text_store, pinned.revision, limit)
        else:
            return None
        planned = await self._plan(message, opened, text_store, pinned)
        return _MessageAttempt(last, opened.requester, message, planned, text_store, pinned)

    async def _wake(
        self, opened: _OpenSession, text_store: TextStore, revision: int, limit: int
    ) -> Message:
        """Return the message that wakes a session with its children's reports."""
        work, session, last = self._work, opened.session, opened.last
        completions = session.reports[:COMPLETIONS_MAX]
        children = [await work.run(run_id) for run_id in completions]
        reported = [child for child in children if _has_report(child)]
        # Reports that the session has read and acknowledged are left out.
        unread = [child for child in reported if not _is_read(child)]
        findings = await findings_of(work, unread)
        at_work = len(session.unsettled) + len(session.reports) - len(completions)
        name = last.label or (await work.contents.previews((last.task,))).get(last.task.id, "")
        text = wake_message(name, findings, at_work=at_work, has_read=len(unread) < len(reported))
        return Message(
            run_id=work.identities.run_id(),
            text=text_store.store("message", text),
            by=WOKEN_BY,
            config_revision=revision,
            max_children=limit,
            cause="wake",
            completions=completions,
        )

    async def _give_up(self, last: Run) -> None:
        """Record that the session cannot continue."""
        first = last.queue[0].run_id if last.queue else last.run_id
        with contextlib.suppress(Rejected):
            await self._work.record(last, (FailContinuation(run_id=first, error=None),))

    async def _open_session(self, run: Run) -> _OpenSession:
        work, key = self._work, run.child_session_key
        session = await work.registry.session(key) if key is not None else None
        if session is None or session.run_id is None or session.session_id != run.session_id:
            raise NoSession(f"run {run.run_id} has no session to continue")
        last = await work.run(session.run_id)
        requester = await work.registry.session(last.requester.session_key)
        assert requester is not None
        return _OpenSession(session, last, requester)

    async def _queue(
        self,
        run: Run,
        run_id: UUID,
        text: str,
        actor: Actor,
        cause: MessageCause,
        reservation: Reservation | None,
        traceparent: str | None,
    ) -> SentMessage:
        """Queue a message after the active run, which is ended if the message steers."""
        work, opened = self._work, await self._open_session(run)
        last = opened.last
        text_store = await work.text_store(last)
        name = last.label or (await work.contents.previews((last.task,))).get(last.task.id, "")
        shown = single_line(name, characters_max=NAME_CHARACTERS_MAX) or "subagent"
        own = session_stream(opened.session.session_key)

        def decide(world: DecisionContext) -> Decision[StoredAnswer]:
            now = world.runs[last.run_id]
            session = world.sessions[opened.session.session_key]
            if session.run_id != last.run_id:
                raise ReadAgain("the session changed meanwhile; read it again and retry")
            require_open(session, now, world.now)
            is_taken_at_once = not message_waits(session, now)
            if cause == "steer" and is_taken_at_once and not now.is_paused:
                finished = finished_response(now, shown)
                return Decision(finished, (), answer=finished)
            if cause == "message" and is_taken_at_once:
                raise ReadAgain(
                    "the previous run was announced meanwhile; send the message directly"
                )
            texts = text_store.empty_copy()
            command = QueueMessage(
                run_id=run_id,
                message=texts.store("message", text),
                by=actor.name,
                cause=cause,
                at=world.now,
                traceparent=traceparent,
            )
            changes = decide_cascade(CascadeState(world.runs, world.sessions), last.run_id, command)
            place = len(now.queue or ()) + 1
            answer = queued_response(now, run_id, place)
            if cause == "steer":
                answer = steered_response(now, run_id, shown)
            return Decision(answer, changes, texts.contents, answer=answer)

        appended = await work.submit(
            tuple(dict.fromkeys((*streams_of(last), own))),
            decide,
            provenance_of(last, actor)._replace(traceparent=traceparent),
            reservation=reservation,
        )
        return SentMessage(appended.runs[last.run_id], appended.result, appended.position)

    async def _yield(
        self, key: str, message: str | None, actor: Actor, reservation: Reservation | None
    ) -> SentMessage:
        work = self._work
        session = await work.registry.session(key)
        if session is None or session.run_id is None:
            raise CannotYield("No session context: this session has no run here that can yield")
        run = await work.run(session.run_id)
        await ToolGuard(work).require_permission(run.run_id, YIELD_TOOL, actor)

        def decide(world: DecisionContext) -> Decision[StoredAnswer]:
            own, now = world.sessions[key], world.runs[run.run_id]
            if own.run_id != run.run_id:
                raise ReadAgain("the session changed meanwhile; read it again and retry")
            command = YieldRun(by=actor.name, awaits=bool(own.unsettled or own.reports))
            events = decide_run(now, command)
            yielded = YieldedAnswer.from_source(
                now,
                status="yielded",
                message=message or YIELDED,
                session_key=now.child_session_key,
            )
            answer = StoredAnswer.of("yielded", yielded)
            changes = [(run_stream(run.run_id), event) for event in events]
            return Decision(answer, changes, answer=answer)

        appended = await work.submit(
            (run_stream(run.run_id), session_stream(key)),
            decide,
            provenance_of(run, actor),
            reservation=reservation,
        )
        return SentMessage(appended.runs[run.run_id], appended.result, appended.position)

    async def _attempt(
        self, run: Run, run_id: UUID, text: str, actor: Actor, pinned: PinnedConfiguration
    ) -> _MessageAttempt:
        opened = await self._open_session(run)
        require_message_capacity(opened.session, opened.last)
        text_store = await self._work.text_store(opened.last)
        message = Message(
            run_id=run_id,
            text=text_store.store("message", text),
            by=actor.name,
            config_revision=pinned.revision,
            max_children=pinned.configuration.subagent_defaults.max_children_per_agent,
        )
        planned = await self._plan(message, opened, text_store, pinned)
        return _MessageAttempt(opened.last, opened.requester, message, planned, text_store, pinned)

    async def _plan(
        self,
        message: Message,
        opened: _OpenSession,
        text_store: TextStore,
        pinned: PinnedConfiguration,
    ) -> ContinuationPlanned | RefusedChild:
        last = opened.last
        received = message_received(message, last, opened.requester)
        # The position is a placeholder; no plan depends on it.
        run = initial_run(received, Stamp(last.created_position, 1, last.created_at))
        assert last.agent_id is not None
        assert last.plan is not None
        argument, folder = run.thinking_argument, last.plan.workspace_dir
        agent = pinned.configuration.effective_agent(last.agent_id)
        # The run works in the folder of its predecessor.
        worked_in = WorkspaceFacts(
            source=last.plan.workspace_source, recorded=folder, chosen=folder
        )
        facts, found = decide_child(
            MESSAGE_STAGES,
            ChildFacts(
                run=run,
                configuration=pinned.configuration,
                requester_sandboxed=run.requester.sandboxed,
                thinking_argument=await self._work.contents.text(argument) if argument else None,
                agent_id=last.agent_id,
                credentials=await self._credentials.found(pinned, agent),
                workspace=ChosenWorkspace(worked_in),
            ),
        )
        if isinstance(found, RefusedChild):
            return found
        return await self._add_ingredients(run, opened.session, facts.plan, text_store, pinned)

    async def _add_ingredients(
        self,
        run: Run,
        session: Session,
        planned: PlannedChild,
        text_store: TextStore,
        pinned: PinnedConfiguration,
    ) -> ContinuationPlanned:
        agent, folder = planned.agent, planned.plan.workspace_dir
        bootstrap = await bootstrap_ingredients(run, folder, agent, self._bootstrap, text_store)
        preamble = await self._preamble(run, session, agent, text_store)
        message = Ingredient(source="message", position="task", content=run.task)
        hooks = pinned.configuration.spawnlog.hooks.configured
        return ContinuationPlanned(
            max_depth=agent.defaults.max_spawn_depth,
            role=planned.capabilities.role,
            control_scope=planned.capabilities.control_scope,
            plan=planned.plan,
            ingredients=(*preamble.ingredients, *bootstrap.ingredients, message),
            warnings=(*planned.warnings, *preamble.warnings, *bootstrap.warnings),
            facts=planned.facts,
            hooks=tuple(hook for hook in HOOKS_OF_ENDS if hook in hooks),
            direct_delivery=await delivers_directly(self._work, run, agent, run.delivery_origin),
        )

    async def _preamble(
        self, run: Run, session: Session, agent: EffectiveAgent, text_store: TextStore
    ) -> BootstrapIngredients:
        """Return the preamble: as cut at the first run, or as rewritten for the session since."""
        assert run.opened_by is not None
        if session.preamble_position is None:
            created = await self._work.event(SessionCreated, run.opened_by)
            kept = tuple(
                ingredient
                for ingredient in created.ingredients
                if ingredient.position == "preamble"
            )
            return BootstrapIngredients(kept)
        written = session.preamble
        text = await self._work.contents.text(written) if written is not None else None
        return preamble_ingredients(written, text, agent, text_store)

    async def _submit(
        self,
        attempt: _MessageAttempt,
        actor: Actor,
        reservation: Reservation | None,
        traceparent: str | None,
    ) -> SentMessage:
        last, message, pinned = attempt.last, attempt.message, attempt.pinned
        above = attempt.requester.run_id
        assert last.child_session_key is not None
        streams = (
            run_stream(message.run_id),
            run_stream(last.run_id),
            session_stream(last.child_session_key),
            session_stream(last.requester.session_key),
            *((run_stream(above),) if above is not None else ()),
            *(run_stream(run_id) for run_id in message.completions),
        )

        # The depth is the session's, so the lane is that of the previous run.
        room = None
        if isinstance(attempt.planned, ContinuationPlanned):
            room = await self._lanes.room(attempt.planned.plan.lane, last.depth)

        def decide(world: DecisionContext) -> Decision[StoredAnswer]:
            pinned.require_current(world.config_version)
            decision = decide_message(world, message, last, attempt.planned, attempt.text_store)
            if room is None or world.lane is None:
                return decision
            run = begun_runs((message.run_id,), decision.changes, world.now).get(message.run_id)
            if run is None or run.stage != "queued":
                return decision
            claims = room.claims(world.lane, world.now, (run,), is_as_prepared=False)
            return decision._replace(following=claims)

        appended = await self._work.submit(
            streams,
            decide,
            Provenance(
                actor=actor,
                correlation=last.requester.root_session_key,
                causation=last.last_event_id,
                run_id=message.run_id,
                traceparent=traceparent,
                config_revision=pinned.revision,
            ),
            reservation=reservation,
            lane=room.query if room is not None else None,
        )
        run = appended.runs[message.run_id]
        if room is not None:
            room.execute((run,))
        return SentMessage(run, appended.result, appended.position)


def _has_report(run: Run) -> bool:
    return run.inbox is not None and run.inbox.disposition == "inbox"


def _is_read(run: Run) -> bool:
    return run.inbox is not None and run.inbox.acknowledged_at is not None


def decide_message(
    world: DecisionContext,
    message: Message,
    last: Run,
    planned: ContinuationPlanned | RefusedChild,
    text_store: TextStore,
) -> Decision[StoredAnswer]:
    """Continue the session after the run `last`, or refuse the message. Return the answer to the
    sender.

    `text_store` has the texts that the message and the plan refer to.
    """
    own = text_store.empty_copy()
    judged = continue_session(
        world.sessions, world.runs, message, last, planned, own.store, world.now
    )
    if judged.refusal is not None:
        refusal = judged.refusal
        answer = refusal_response(
            SpawnRefusal(
                run_id=message.run_id,
                rule=refusal.rule,
                status=refusal.status,
                text=refusal.text,
                current=refusal.current,
                limit=refusal.limit,
            )
        )
    else:
        assert isinstance(planned, ContinuationPlanned)
        answer = continued_response(
            last, message.run_id, planned.warnings, planned.plan.model_applied
        )
    return Decision(answer, judged.changes, (*text_store.contents, *own.contents), answer=answer)
