"""Admission: permit or refuse a spawn, decided under the log's lock by the newest configuration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from application.coordination.lease_owner import LeaseOwner
from application.log.answers import SpawnRefusal, refusal_response
from application.log.envelope import Actor, Provenance
from application.log.event_log import (
    Content,
    ContentKey,
    Decision,
    DecisionContext,
    LogUnavailableError,
    Reservation,
    StoredAnswer,
    TreeQuery,
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

_MOVED = "the configuration changed while the request was read; retry"


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A resolved request to admit. `keys` are the text keys of its runs, in their order."""

    resolved: ResolvedSpawn
    actor: Actor
    reservation: Reservation | None
    traceparent: str | None
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AdmissionResult:
    """The result of an admission.

    Attributes:
        runs: The runs as recorded.
        position: Position of the append.
        refusal: The answer, if the request was refused.
        ahead: The rest of the spawn, if it was prepared ahead.
    """

    runs: tuple[Run, ...]
    position: int
    refusal: StoredAnswer | None
    ahead: PreparedSpawn | None


@dataclass(frozen=True, slots=True)
class _Basis:
    """State of the requester that an admission was decided from: its session and run, if any."""

    key: str
    session: Session | None
    run: Run | None

    def world(self, config_version: int) -> DecisionContext:
        """Return a record that contains nothing else."""
        return DecisionContext(
            runs={self.run.run_id: self.run} if self.run is not None else {},
            sessions={self.key: self.session} if self.session is not None else {},
            now=PROVISIONAL,
            config_version=config_version,
        )

    def is_as_in(self, world: DecisionContext) -> bool:
        """Return True if the record still has these versions. A state at a version never
        changes."""
        session = world.sessions.get(self.key)
        run = world.runs.get(self.run.run_id) if self.run is not None else None
        return _version(session) == _version(self.session) and _version(run) == _version(self.run)


def _version(state: Session | Run | None) -> int:
    return state.version if state is not None else 0


class Admission:
    """Admission of spawn requests. Each is recorded with its decision in one append.

    `flushes` writes buffered entries of a running requester.
    """

    def __init__(
        self,
        work: UnitOfWork,
        holder: LeaseOwner,
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
        """Decide under `pinned`, or under the log's revision if that is later.

        Raises:
            AlreadyReserved: If the idempotency key was used before.
            SessionIsClosed: If the requester's session is closed.
            LogUnavailableError: If the log cannot be reached or changes too fast.
        """
        requester = admission.resolved.requester_key
        registry = self._work.registry
        # A guess that the decision checks under the lock. Most sessions that are not in memory are
        # not on record.
        known = registry.last_seen_session(requester)

        async def attempt(conflict: Rejected | None) -> AdmissionResult:
            nonlocal known, pinned
            if isinstance(conflict, ConfigurationMoved):
                pinned = await self._later_revision(pinned, conflict.revision)
            elif conflict is not None:
                # Another process recorded the session, or it continued with another run: retry with
                # its current state.
                known = await registry.session(requester)
            return await self._attempt(admission, known, pinned)

        return await with_fresh_reads(
            attempt, _MOVED, conflicts=(AgentOnRecord, ReadAgain, ConfigurationMoved)
        )

    async def _later_revision(
        self, pinned: PinnedConfiguration, revision: int
    ) -> PinnedConfiguration:
        """Return the revision that replaced `pinned`. Refuse if it maps session keys
        differently."""
        newer = await self._work.configurations.at(revision)
        if newer.session_naming != pinned.session_naming:
            raise LogUnavailableError(_MOVED)
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
            # A fork takes the entries that are written at the time of admission.
            await self._flushes.flush(parent.run_id)
        root = known.root_session_key if known else command.requester_key
        asks_for = resolved.dependencies
        # All runs of a batch have the same dependencies.
        names = await resolve_references(self._work, asks_for, command.requester_key, root, parent)
        commands = tuple(apply_references(command, names) for command in commands)
        command = commands[0]
        minted = [run_stream(command.run_id) for command in commands]
        streams = [*minted, session_stream(command.requester_key)]
        streams += [run_stream(dependency.run_id) for dependency in names.dependencies]
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
            # A spawn without a run above it cannot close a dependency cycle.
            tree=TreeQuery(root) if names.ancestors else None,
            reservation=admission.reservation,
            about=frozenset(command.run_id for command in commands),
            minted=minted,
            unseen=[command.requester_key] if known is None else (),
        )
        runs = tuple(appended.runs[command.run_id] for command in commands)
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
    ) -> Callable[[DecisionContext], Decision[SpawnDecision]]:
        command, new_id = commands[0], self._work.identities.event_id

        def decide(world: DecisionContext) -> Decision[SpawnDecision]:
            pinned.require_current(world.config_version)
            on_record = world.sessions.get(command.requester_key)
            if basis.session is None and on_record is not None:
                # The requester's parent, and so its tree, was unknown when this was submitted.
                raise AgentOnRecord(on_record.agent_id)
            if ahead is not None and basis.is_as_in(world):
                decision = ahead.admission
            else:
                contents = ahead.admission.contents if ahead is not None else ()
                decision = decide_admission(world, commands, keys, policy, new_id, contents)
            if decision.result.refusal:
                # A refused spawn has nothing else to write.
                return decision
            if ahead is not None:
                return decision._replace(following=ahead.following(world, decision))
            if files is None:
                return decision
            staged = [file for command in commands for file in files.staged(command.run_id)]
            return decision._replace(staged=staged)

        return decide


def decide_admission(
    world: DecisionContext,
    commands: Sequence[RequestSpawn],
    keys: Sequence[bytes],
    policy: SpawnPolicy,
    new_id: Callable[[], UUID],
    contents: Sequence[Content] = (),
) -> Decision[SpawnDecision]:
    """Permit or refuse the runs of one request.

    Args:
        keys: The text keys of the runs, in their order.
        new_id: Creates content ids.
        contents: Texts of an earlier attempt, which keep their ids.
    """
    members = list(zip(commands, keys, strict=True))
    text_stores = [
        TextStore(
            command.session_id,
            key,
            new_id,
            [known for known in contents if known.session_id == command.session_id],
        )
        for command, key in members
    ]
    spawns = [
        (command, text_store.store)
        for command, text_store in zip(commands, text_stores, strict=True)
    ]
    answered = request_spawns(world.sessions, world.runs, spawns, policy, world.tree)
    return Decision(
        answered,
        answered.changes,
        [text for command in text_stores for text in command.contents],
        [ContentKey(command.session_id, key) for command, key in members],
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
