"""Goes on with a session: a message to it becomes a new run."""

from dataclasses import dataclass
from uuid import UUID

from application.context.prompt_inputs import bootstrap_ingredients
from application.coordination.lane import LanePlaces, QueuedRuns
from application.log.answers import SpawnRefusal, continued_response, refusal_response
from application.log.envelope import Actor, Provenance
from application.log.event_log import Decision, Reservation, StoredAnswer, World
from application.log.texts import TextStore
from application.log.unit_of_work import UnitOfWork, provenance_of, with_fresh_reads
from application.ports.configurations import PinnedConfiguration
from application.ports.credentials import Credentials
from application.ports.files import BootstrapFiles
from application.spawn.create import LANE
from application.spawn.direct_delivery import delivers_directly
from application.spawn.plan import plan_continuation
from domain.plan.child import IneligiblePlan, PlannedChild
from domain.run.events import ContinuationPlanned, SessionCreated
from domain.run.evolve import initial_run
from domain.run.facts import Ingredient
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.continuation import (
    Message,
    NoSession,
    continue_session,
    message_received,
    must_take_messages,
)
from domain.values.record import Stamp, run_stream, session_stream
from domain.values.refusals import ConfigurationMoved, ReadAgain, Rejected


@dataclass(frozen=True, slots=True)
class SentMessage:
    """What came of a message: its run, how its sender is answered, and at which position."""

    run: Run
    answer: StoredAnswer
    position: int


@dataclass(frozen=True, slots=True)
class _MessageAttempt:
    """What a message is decided from, and all that is kept beside the log with it."""

    last: Run
    requester: Session
    message: Message
    planned: ContinuationPlanned | IneligiblePlan
    text_store: TextStore
    pinned: PinnedConfiguration


class SessionContinuation:
    """Takes messages to sessions."""

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
        """Go on with the session of `run`, whichever of its runs that is, in one append.

        Nothing is done that could not be repeated until that is made. Raises `NoSession` for a run
        that never had one, `SessionIsClosed`, `RunIsActive`, and what the log raises.
        """
        run_id, pinned = self._work.identities.run_id(), self._work.configurations.current()

        async def send(conflict: Rejected | None) -> SentMessage:
            nonlocal pinned
            if isinstance(conflict, ConfigurationMoved):
                pinned = await self._work.configurations.at(conflict.revision)
            try:
                attempt = await self._attempt(run, run_id, text, actor, pinned)
            except Rejected as why:
                await self._work.must_be_new(provenance_of(run, actor), reservation, why)
                raise
            return await self._submit(attempt, actor, reservation, traceparent)

        return await with_fresh_reads(
            send,
            "the session changes too fast to be continued; ask again in a moment",
            conflicts=(ReadAgain, ConfigurationMoved),
        )

    async def _attempt(
        self, run: Run, run_id: UUID, text: str, actor: Actor, pinned: PinnedConfiguration
    ) -> _MessageAttempt:
        work = self._work
        key = run.child_session_key
        session = await work.registry.session(key) if key is not None else None
        if session is None or session.run_id is None or session.session_id != run.session_id:
            raise NoSession(f"run {run.run_id} has no session that could be continued")
        last = await work.run(session.run_id)
        must_take_messages(session, last)
        requester = await work.registry.session(last.requester.session_key)
        assert requester is not None
        text_store = await work.text_store(last)
        message = Message(
            run_id=run_id,
            text=text_store.store("message", text),
            by=actor.name,
            config_revision=pinned.revision,
            max_children=pinned.configuration.subagent_defaults.max_children_per_agent,
        )
        planned = await self._plan(message, last, requester, text_store, pinned)
        return _MessageAttempt(last, requester, message, planned, text_store, pinned)

    async def _plan(
        self,
        message: Message,
        last: Run,
        requester: Session,
        text_store: TextStore,
        pinned: PinnedConfiguration,
    ) -> ContinuationPlanned | IneligiblePlan:
        received = message_received(message, last, requester)
        # Where it will stand is not known yet, and no plan depends on it.
        run = initial_run(received, Stamp(last.created_position, 1, last.created_at))
        assert last.agent_id is not None
        assert last.plan is not None
        argument = run.thinking_argument
        agent = pinned.configuration.effective_agent(last.agent_id)
        planned = plan_continuation(
            run,
            agent,
            pinned,
            last.plan,
            await self._work.contents.text(argument) if argument else None,
            await self._credentials.found(pinned, agent),
        )
        if isinstance(planned, IneligiblePlan):
            return planned
        return await self._add_ingredients(run, planned, text_store, pinned)

    async def _add_ingredients(
        self, run: Run, planned: PlannedChild, text_store: TextStore, pinned: PinnedConfiguration
    ) -> ContinuationPlanned:
        agent, folder = planned.agent, planned.plan.workspace_dir
        bootstrap = await bootstrap_ingredients(run, folder, agent, self._bootstrap, text_store)
        message = Ingredient(source="message", position="task", content=run.task)
        hooks = pinned.configuration.spawnlog.hooks.configured
        return ContinuationPlanned(
            max_depth=agent.defaults.max_spawn_depth,
            role=planned.capabilities.role,
            control_scope=planned.capabilities.control_scope,
            plan=planned.plan,
            ingredients=(*await self._preamble(run), *bootstrap.ingredients, message),
            warnings=(*planned.warnings, *bootstrap.warnings),
            facts=planned.facts,
            hooks=("subagentEnded",) if "subagentEnded" in hooks else (),
            direct_delivery=await delivers_directly(self._work, run, agent, run.delivery_origin),
        )

    async def _preamble(self, run: Run) -> tuple[Ingredient, ...]:
        """What stood in front of the system prompt from the beginning, as it was cut then."""
        assert run.opened_by is not None
        created = await self._work.event(SessionCreated, run.opened_by)
        return tuple(one for one in created.ingredients if one.position == "preamble")

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
        )

        def decide(world: World) -> Decision[StoredAnswer]:
            pinned.must_be_current(world.config_version)
            return decide_message(world, message, last, attempt.planned, attempt.text_store)

        # It is as deep as the session, and so in the lane that the run before it was in.
        places = await self._lanes.take(QueuedRuns((message.run_id,), LANE, last.depth))
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
            follow_ups=places.follow_ups if places is not None else (),
        )
        run = appended.runs[message.run_id]
        if places is not None:
            places.execute((run,))
        return SentMessage(run, appended.result, appended.position)


def decide_message(
    world: World,
    message: Message,
    last: Run,
    planned: ContinuationPlanned | IneligiblePlan,
    text_store: TextStore,
) -> Decision[StoredAnswer]:
    """Go on after the `last` run, or refuse the message; `text_store` has the texts that it and the
    plan refer to. Gives how the sender is answered."""
    own = text_store.empty_copy()
    judged = continue_session(
        world.sessions, world.runs, message, last, planned, LANE, own.store, world.now
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
