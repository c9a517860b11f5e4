"""A spawn is permitted or refused: decided under the log's lock, by its newest configuration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from application.coordination.holder import Holder
from application.log.answers import SpawnRefusal, refusal_response
from application.log.envelope import Actor, Provenance
from application.log.event_log import (
    Content,
    ContentKey,
    Decision,
    LogUnavailable,
    Reservation,
    StoredAnswer,
    TreeQuery,
    World,
)
from application.log.texts import TextStore
from application.log.unit_of_work import UnitOfWork, with_fresh_reads
from application.ports.configurations import PinnedConfiguration
from application.ports.transcripts import EntryFlushes
from application.spawn.ahead import PROVISIONAL, AheadPreparer, PreparedSpawn
from application.spawn.attachments import EvaluatedAttachments, evaluate_attachments
from application.spawn.request import (
    apply_references,
    inputs_in_hand,
    resolve_references,
    spawn_commands,
)
from application.spawn.respawn import require_recorded_scripts
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.admission import SpawnPolicy, policy_of
from domain.spawn.decide import SpawnDecision, request_spawns
from domain.spawn.request import RequestSpawn, ResolvedSpawn
from domain.values.record import run_stream, session_stream
from domain.values.refusals import AgentOnRecord, ConfigurationMoved, ReadAgain, Rejected

_MOVED = "the configuration changed while the request was read; ask again"


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A request and what came with it; `keys` are those of the texts that are kept for each of its
    runs, in their order."""

    resolved: ResolvedSpawn
    actor: Actor
    reservation: Reservation | None
    traceparent: str | None
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AdmissionResult:
    """The runs as they were recorded, and at which position; `refusal` is the answer to a request
    that was refused, `ahead` what was prepared to follow."""

    runs: tuple[Run, ...]
    position: int
    refusal: StoredAnswer | None
    ahead: PreparedSpawn | None


@dataclass(frozen=True, slots=True)
class _Basis:
    """What an admission is decided from: the requester's session, if it is on record, and its run,
    if it has one."""

    key: str
    session: Session | None
    run: Run | None

    def world(self, config_version: int) -> World:
        """Return a record of nothing else."""
        return World(
            runs={self.run.run_id: self.run} if self.run is not None else {},
            sessions={self.key: self.session} if self.session is not None else {},
            now=PROVISIONAL,
            config_version=config_version,
        )

    def is_as_in(self, world: World) -> bool:
        """Return whether it is on record just so: a state at a version is the same for ever."""
        session = world.sessions.get(self.key)
        run = world.runs.get(self.run.run_id) if self.run is not None else None
        return _version(session) == _version(self.session) and _version(run) == _version(self.run)


def _version(state: Session | Run | None) -> int:
    return state.version if state is not None else 0


class Admission:
    """Records each request with its decision, in one append. `flushes` writes the entries of a
    requester at work that are not written yet."""

    def __init__(
        self,
        work: UnitOfWork,
        holder: Holder,
        ahead: AheadPreparer,
        flushes: EntryFlushes,
    ) -> None:
        self._work = work
        self._holder = holder
        self._ahead = ahead
        self._flushes = flushes

    async def admit(
        self, admission: AdmissionRequest, pinned: PinnedConfiguration
    ) -> AdmissionResult:
        """Decide under `pinned`, or under the log's revision when that is a later one.

        Raises what the log raises: `AlreadyReserved`, `SessionIsClosed`, `LogUnavailable`.
        """
        requester = admission.resolved.requester_key
        registry = self._work.registry
        # A guess: if the session is otherwise on record, the decision under the lock says so. Most
        # that this process does not remember are not on record.
        known = registry.last_seen_session(requester)

        async def attempt(conflict: Rejected | None) -> AdmissionResult:
            nonlocal known, pinned
            if isinstance(conflict, ConfigurationMoved):
                pinned = await self._later_revision(pinned, conflict.revision)
            elif conflict is not None:
                # The session is on record, and nothing was known of it here, or it went on with
                # another run since then: once more with what is so now.
                known = await registry.session(requester)
            return await self._attempt(admission, known, pinned)

        return await with_fresh_reads(
            attempt, _MOVED, conflicts=(AgentOnRecord, ReadAgain, ConfigurationMoved)
        )

    async def _later_revision(
        self, pinned: PinnedConfiguration, revision: int
    ) -> PinnedConfiguration:
        """Return the revision that came after the one the request was read under."""
        newer = await self._work.configurations.at(revision)
        if newer.session_naming != pinned.session_naming:
            raise LogUnavailable(_MOVED)
        return newer

    async def _attempt(
        self, admission: AdmissionRequest, known: Session | None, pinned: PinnedConfiguration
    ) -> AdmissionResult:
        resolved = admission.resolved
        if known is not None:
            resolved = replace(resolved, requester_agent_id=known.agent_id)
        await require_recorded_scripts(self._work, resolved, pinned)
        ids = self._work.identities
        files = await evaluate_attachments(resolved.request, pinned.configuration)
        commands = spawn_commands(
            resolved,
            admission.actor,
            pinned,
            ids,
            self._holder.name,
            files.verdict if files else None,
        )
        command = commands[0]
        parent = await self._work.registry.run(known.run_id) if known and known.run_id else None
        if parent is not None and (command.options.context == "fork" or command.thread):
            # The child begins with the entries that are written when it is admitted.
            await self._flushes.flush(parent.run_id)
        root = known.root_session_key if known else command.requester_key
        asks_for = resolved.dependencies
        # All of a batch wait for the same.
        names = await resolve_references(self._work, asks_for, command.requester_key, root, parent)
        commands = tuple(apply_references(one, names) for one in commands)
        command = commands[0]
        minted = [run_stream(one.run_id) for one in commands]
        streams = [*minted, session_stream(command.requester_key)]
        streams += [run_stream(one.run_id) for one in names.dependencies]
        streams += map(run_stream, names.ancestors)
        if parent is not None and not names.ancestors:
            streams.append(run_stream(parent.run_id))
        basis = _Basis(command.requester_key, known, parent)
        policy = policy_of(pinned.configuration, command.requester_agent_id)
        decision = partial(self._decision, commands, admission.keys, basis, pinned, policy, files)
        ahead = None
        if not names.dependencies and files is None:
            in_hand = inputs_in_hand(resolved, admission.keys)
            ahead = await self._ahead.prepare(basis.world(pinned.revision), decision(), in_hand)
        appended = await self._work.submit(
            streams,
            decision(ahead),
            Provenance(
                actor=admission.actor,
                correlation=root,
                causation=parent.last_event_id if parent else None,
                run_id=command.run_id,
                traceparent=admission.traceparent,
                config_revision=pinned.revision,
            ),
            lane=ahead.lane if ahead is not None else None,
            # Without a run above it nobody waits for the spawn, so it closes no ring.
            tree=TreeQuery(root) if names.ancestors else None,
            reservation=admission.reservation,
            about=frozenset(one.run_id for one in commands),
            minted=minted,
            unseen=[command.requester_key] if known is None else (),
        )
        runs = tuple(appended.runs[one.run_id] for one in commands)
        refusal = _refusal_answer(command, appended.result)
        return AdmissionResult(runs, appended.position, refusal, ahead)

    def _decision(
        self,
        commands: Sequence[RequestSpawn],
        keys: Sequence[bytes],
        basis: "_Basis",
        pinned: PinnedConfiguration,
        policy: SpawnPolicy,
        files: EvaluatedAttachments | None,
        ahead: PreparedSpawn | None = None,
    ) -> Callable[[World], Decision[SpawnDecision]]:
        command, new_id = commands[0], self._work.identities.event_id

        def decide(world: World) -> Decision[SpawnDecision]:
            pinned.must_be_current(world.config_version)
            on_record = world.sessions.get(command.requester_key)
            if basis.session is None and on_record is not None:
                # Whose child it is, and so of which tree, was not known when this was asked for.
                raise AgentOnRecord(on_record.agent_id)
            if ahead is not None and basis.is_as_in(world):
                decision = ahead.admission
            else:
                contents = ahead.admission.contents if ahead is not None else ()
                decision = decide_admission(world, commands, keys, policy, new_id, contents)
            if decision.result.refusal:
                # Nobody will write what belongs to a spawn that is refused.
                return decision
            if ahead is not None:
                return decision._replace(following=ahead.following(world, decision))
            if files is None:
                return decision
            staged = [file for one in commands for file in files.staged(one.run_id)]
            return decision._replace(staged=staged)

        return decide


def decide_admission(
    world: World,
    commands: Sequence[RequestSpawn],
    keys: Sequence[bytes],
    policy: SpawnPolicy,
    new_id: Callable[[], UUID],
    contents: Sequence[Content] = (),
) -> Decision[SpawnDecision]:
    """Permit or refuse what one request asks for. `keys` are those of the texts of each run, in
    their order; `new_id` mints the ids of contents, but for those that have been made before."""
    members = list(zip(commands, keys, strict=True))
    text_stores = [
        TextStore(
            one.session_id,
            key,
            new_id,
            [known for known in contents if known.session_id == one.session_id],
        )
        for one, key in members
    ]
    spawns = [
        (one, text_store.store) for one, text_store in zip(commands, text_stores, strict=True)
    ]
    answered = request_spawns(world.sessions, world.runs, spawns, policy, world.tree)
    return Decision(
        answered,
        answered.changes,
        [text for one in text_stores for text in one.contents],
        [ContentKey(one.session_id, key) for one, key in members],
        answer=_refusal_answer(commands[0], answered),
        reserve_run=commands[0].run_id,
    )


def _refusal_answer(command: RequestSpawn, answered: SpawnDecision) -> StoredAnswer | None:
    refusal = answered.refusal
    if refusal is None:
        return None
    return refusal_response(
        SpawnRefusal(
            run_id=command.run_id,
            rule=refusal.rule,
            status=refusal.status,
            text=refusal.text,
            current=refusal.current,
            limit=refusal.limit,
            batch_id=command.batch.batch_id if command.batch else None,
        )
    )
