"""A spawn from the request to the answer."""

import asyncio
import logging
from dataclasses import dataclass, replace
from uuid import UUID

from application.answers import SpawnRefusal, accepted_run, refusal_of, refused
from application.envelope import Actor, Provenance
from application.holder import Holder
from application.keeping import Keeper
from application.ports.configurations import PinnedConfiguration
from application.ports.event_log import (
    Answer,
    ContentKey,
    Decision,
    LogUnavailable,
    Reservation,
    Submission,
    World,
)
from application.prepared_run import PreparedRun
from application.preparing import CallerIsThere, Preparing
from application.settling import settled
from application.spawn_request import InHand, SpawnRequest, command_of
from application.work import Work
from domain.refusals import AgentOnRecord, ConfigurationMoved
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn_command import SpawnPolicy
from domain.spawn_decision import SpawnAnswered, request_spawn
from domain.stream import run_stream, session_stream

ATTEMPTS_MAX = 5

_log = logging.getLogger("spawnlog.spawning")

_MOVED = "the configuration changed while the request was read; ask again"


@dataclass(frozen=True, slots=True)
class Spawned:
    """What came of it: the run, how its caller is answered, and the position of the append that
    decided it; None when others decided it."""

    run: Run
    answer: Answer
    position: int | None


class Spawning:
    """Takes requests, and holds their preparation."""

    def __init__(self, work: Work, preparing: Preparing, holder: Holder) -> None:
        self._work = work
        self._preparing = preparing
        self._holder = holder
        self._under_way: set[asyncio.Task[Spawned]] = set()

    async def spawn(
        self,
        request: SpawnRequest,
        actor: Actor,
        reservation: Reservation | None,
        caller_is_there: CallerIsThere,
        traceparent: str | None = None,
        *,
        pinned: PinnedConfiguration,
    ) -> Spawned:
        """Admit, prepare, answer. A caller that goes away cancels nothing.

        `pinned` is the revision under which the request was read. When the log is at a later one
        by now, that one decides, provided that the request reads the same under it.

        Raises what the log raises: `AlreadyReserved`, `SessionIsClosed`, `LogUnavailable`.
        """
        task = asyncio.create_task(
            self._spawn(request, actor, reservation, caller_is_there, traceparent, pinned)
        )
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise LogUnavailable(
                "the service is stopping; the spawn goes on: ask again under its Idempotency-Key"
            ) from None

    def _ended(self, task: "asyncio.Task[Spawned]") -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.debug("a spawn ended with %r", task.exception())

    async def settle(self, seconds: float) -> None:
        """Wait until every spawn under way is answered, so long at most. The others are left as
        they are recorded, for whoever takes them over."""
        await settled(self._under_way, seconds)

    async def _spawn(
        self,
        request: SpawnRequest,
        actor: Actor,
        reservation: Reservation | None,
        caller_is_there: CallerIsThere,
        traceparent: str | None,
        pinned: PinnedConfiguration,
    ) -> Spawned:
        key = self._work.identities.content_key()
        in_hand = InHand(key, request.task, request.workspace_argument)
        known = await self._known(request.requester_key)
        for _ in range(ATTEMPTS_MAX):
            try:
                answered, run, position = await self._admit(
                    request, known, actor, reservation, pinned, traceparent, key
                )
                break
            except AgentOnRecord:
                # The session is on record, and nothing was known of it here: once more with that.
                known = await self._work.registry.session(request.requester_key)
            except ConfigurationMoved as moved:
                pinned = await self._followed(pinned, moved.revision)
        else:
            raise LogUnavailable(_MOVED)
        refusal = _first_answer(run.run_id, answered)
        if refusal is not None:
            return Spawned(run, refusal, position)
        return await self._answered(await self._preparing.prepare(run, caller_is_there, in_hand))

    async def _known(self, key: str) -> Session | None:
        """The requester's session; None for one that this process had nothing to do with. Most of
        those are not on record, which is seen anyway when the spawn is decided."""
        registry = self._work.registry
        return await registry.session(key) if registry.remembers(key) else None

    async def _followed(self, pinned: PinnedConfiguration, revision: int) -> PinnedConfiguration:
        """The revision that came after the one the request was read under."""
        newer = await self._work.configurations.at(revision)
        if _naming_of(newer) != _naming_of(pinned):
            raise LogUnavailable(_MOVED)
        return newer

    async def _admit(
        self,
        request: SpawnRequest,
        known: Session | None,
        actor: Actor,
        reservation: Reservation | None,
        pinned: PinnedConfiguration,
        traceparent: str | None,
        key: bytes,
    ) -> tuple[SpawnAnswered, Run, int]:
        ids = self._work.identities
        if known is not None:
            request = replace(request, requester_agent_id=known.agent_id)
        command = command_of(request, actor, pinned, ids, self._holder.name)
        policy = policy_of(pinned, command.requester_agent_id)

        def decide(world: World) -> Decision[SpawnAnswered]:
            if world.config_version > pinned.revision:
                raise ConfigurationMoved(world.config_version)
            on_record = world.sessions.get(command.requester_key)
            if known is None and on_record is not None:
                # Whose child it is, and so of which tree, was not known when this was asked for.
                raise AgentOnRecord(on_record.agent_id)
            keeper = Keeper(command.session_id, key, ids.event_id)
            answered = request_spawn(world.sessions, world.runs, command, policy, keeper.keep)
            return Decision(
                answered,
                answered.changes,
                keeper.kept,
                (ContentKey(command.session_id, key),),
                answer=_first_answer(command.run_id, answered),
                reserve_run=command.run_id,
            )

        parent = await self._work.registry.run(known.run_id) if known and known.run_id else None
        streams = [run_stream(command.run_id), session_stream(command.requester_key)]
        if parent is not None:
            streams.append(run_stream(parent.run_id))
        appended = await self._work.log.submit(
            Submission(
                command_id=ids.event_id(),
                streams=tuple(streams),
                decide=decide,
                provenance=Provenance(
                    actor=actor,
                    correlation=known.root_session_key if known else command.requester_key,
                    causation=parent.last_event_id if parent else None,
                    run_id=command.run_id,
                    traceparent=traceparent,
                    config_revision=pinned.revision,
                ),
                reservation=reservation,
            )
        )
        return appended.result, appended.runs[command.run_id], appended.position

    async def _answered(self, prepared: PreparedRun) -> Spawned:
        run = prepared.run
        if run.stage in PREPARING:
            raise LogUnavailable(
                "another server has taken this spawn over; ask again with the same"
                f" Idempotency-Key, or read run {run.run_id}"
            )
        if run.refusal is None:
            return Spawned(run, accepted_run(run), prepared.position)
        text = await self._work.contents.text(run.refusal.text)
        return Spawned(run, refused(refusal_of(run, text)), prepared.position)


def policy_of(pinned: PinnedConfiguration, requester_agent_id: str) -> SpawnPolicy:
    """What the configuration says about this requester's spawns."""
    configuration = pinned.configuration
    own = configuration.subagents_for(requester_agent_id)
    defaults = configuration.subagent_defaults
    return SpawnPolicy(
        max_spawn_depth=defaults.max_spawn_depth,
        max_children=defaults.max_children_per_agent,
        require_agent_id=own.require_agent_id,
        allow_agents=own.allow_agents,
        require_agent_id_from=own.require_agent_id_from,
        allow_agents_from=own.allow_agents_from,
    )


def _naming_of(pinned: PinnedConfiguration) -> tuple[str, str, str]:
    """What decides which session a key stands for."""
    configuration = pinned.configuration
    session = configuration.session
    return session.main_key, session.scope, configuration.default_agent_id


def _first_answer(run_id: UUID, answered: SpawnAnswered) -> Answer | None:
    refusal = answered.refusal
    if refusal is None:
        return None
    return refused(
        SpawnRefusal(
            run_id=run_id,
            rule=refusal.rule,
            status=refusal.status,
            text=refusal.text,
            current=refusal.current,
            limit=refusal.limit,
        )
    )
