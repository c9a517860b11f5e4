"""A family in a real log, as `FamilyLog` is one in memory."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from application.log.envelope import SYSTEM, Actor, Provenance
from application.log.event_log import (
    Appended,
    Decision,
    DecisionContext,
    EventLog,
    LaneQuery,
    Reservation,
    StoredAnswer,
    Submission,
    TreeQuery,
)
from application.log.unit_of_work import CommandLog
from application.ports.registry import LanePlace
from application.ports.transcripts import UnwrittenEntries
from application.spawn.admit import decide_admission
from domain.run.commands import RunCommand
from domain.run.facts import SUBAGENT_LANE
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.decide import SpawnDecision
from domain.values.record import run_stream, session_stream
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import child_key, policy, spawn_request
from tests.support.builders.storytelling import ROOT, run_id

LANE = SUBAGENT_LANE


class LoggedFamily:
    """A family in a real log.

    Runs have the names of the test; `main` is the root session. `first` is the number of the first
    run's id, so that several families fit into one log.
    """

    def __init__(
        self, log: EventLog, *, root: str = ROOT, first: int = 1, **policy_changes: Any
    ) -> None:
        self.log = log
        self.root = root
        self.policy = policy(**policy_changes)
        self.runs: dict[UUID, Run] = {}
        self.sessions: dict[str, Session] = {}
        self._ids: dict[str, UUID] = {}
        self._next = first

    def id(self, name: str) -> UUID:
        return self._ids[name]

    def names(self, runs: Iterable[Run | LanePlace]) -> list[str]:
        called = {run_id: name for name, run_id in self._ids.items()}
        return [called[run.run_id] for run in runs]

    def run(self, name: str) -> Run:
        return self.runs[self._ids[name]]

    def adopt(self, run: Run) -> str:
        self._ids[str(run.run_id)] = run.run_id
        self.runs[run.run_id] = run
        return str(run.run_id)

    def call(self, name: str) -> UUID:
        self._ids[name] = run_id(self._next)
        self._next += 1
        return self._ids[name]

    def key(self, name: str) -> str:
        if name == "main":
            return self.root
        run = self.runs.get(self._ids[name])
        return (run and run.child_session_key) or child_key(self._ids[name])

    def session_id(self, name: str) -> UUID:
        return run_id(100_000 + self._ids[name].int % 2**32)

    async def spawn(
        self,
        name: str,
        by: str = "main",
        *,
        actor: Actor = SYSTEM,
        traceparent: str | None = None,
        reservation: Reservation | None = None,
        answer: StoredAnswer | None = None,
        **changes: Any,
    ) -> Appended[SpawnDecision]:
        """Spawn a child for a session; its contents are stored under a key of its own."""
        self.call(name)
        asker = self.key(by)
        parent = session.run_id if (session := self.sessions.get(asker)) is not None else None
        request = spawn_request(
            run_id=self.id(name), session_id=self.session_id(name), requester_key=asker, **changes
        )
        key = content_key_of(request.session_id)

        def decide(world: DecisionContext) -> Decision[SpawnDecision]:
            decision = decide_admission(world, (request,), (key,), self.policy, uuid7)
            return decision._replace(answer=answer)

        others = {dependency.run_id for dependency in request.dependencies} | {*request.ancestors}
        others |= {parent} if parent else set()
        submission = Submission(
            command_id=uuid7(),
            streams=(run_stream(request.run_id), session_stream(asker), *map(run_stream, others)),
            decide=decide,
            tree=TreeQuery(self.root) if request.dependencies else None,
            provenance=Provenance(
                actor=actor,
                correlation=self.root,
                run_id=request.run_id,
                traceparent=traceparent,
                config_revision=1,
            ),
            reservation=reservation,
        )
        return self.heard(await self.log.submit(submission))

    async def tell(
        self,
        name: str,
        *commands: RunCommand,
        actor: Actor = SYSTEM,
        spawn_answer: StoredAnswer | None = None,
    ) -> Appended[None]:
        """Ask something of a run; several commands are decided in turn and recorded as one."""
        run = self.run(name)
        commanded = CommandLog(self.log, RandomIdentities())
        return self.heard(
            await commanded.record(run, commands, actor=actor, spawn_answer=spawn_answer)
        )

    def heard(self, appended: Appended[Any]) -> Appended[Any]:
        for run in appended.runs.values():
            known = self.runs.get(run.run_id)
            if known is None or known.version < run.version:
                self.runs[run.run_id] = run
        for session in appended.sessions.values():
            before = self.sessions.get(session.session_key)
            if before is None or before.version < session.version:
                self.sessions[session.session_key] = session
        return appended

    async def resolve(self, name: str, **changes: Any) -> None:
        await self.tell(name, ask.resolve(self.run(name).epoch, **changes))

    async def create(self, name: str, **changes: Any) -> None:
        run = self.run(name)
        depth = run.requester.depth + 1
        limit = self.policy.max_spawn_depth
        commands: list[RunCommand] = []
        if run.stage == "requested":
            commands.append(ask.resolve(run.epoch))
        if run.child_session_key is None:
            commands.append(ask.prepare(run.epoch, child_session_key=child_key(run.run_id)))
        where = {"depth": depth, "max_depth": limit, "lane": LANE}
        create = ask.create(run.epoch, **{**where, **changes})
        await self.tell(name, *commands, create)

    async def furnish(self, name: str, by: str = "main") -> None:
        await self.spawn(name, by)
        epoch = self.run(name).epoch
        key = child_key(self.id(name))
        await self.tell(
            name,
            ask.resolve(epoch),
            ask.prepare(epoch, child_session_key=key, steps=("workspace", "attachments")),
            ask.begin_step(epoch, step="workspace"),
        )
        await self.tell(name, ask.take_step(epoch, step="workspace"), ask.begin_step(epoch))

    async def queue(self, name: str, by: str = "main") -> None:
        await self.spawn(name, by)
        await self.create(name)

    async def begin(self, name: str, by: str = "main", **request: Any) -> None:
        """Spawn a child, which asks for this, and bring it to where its runtime executes."""
        await self.spawn(name, by, **request)
        await self.create(name)
        await self.execute(name)

    async def execute(self, name: str) -> None:
        """Claim a queued run, and start it."""
        await self.tell(name, ask.claim())
        await self.start(name)

    async def start(self, name: str) -> None:
        await self.tell(name, ask.start(self.run(name).epoch))

    async def start_told(self, name: str, unwritten_entries: UnwrittenEntries) -> None:
        """Start a claimed run, whose transcript begins with its message."""
        run = self.run(name)
        commanded = CommandLog(self.log, RandomIdentities())
        self.heard(await commanded.record_start(run, ask.start(run.epoch), None, unwritten_entries))

    async def end(self, name: str, **changes: Any) -> None:
        await self.tell(name, ask.end(self.run(name).epoch, **changes))

    async def announce(self, name: str) -> None:
        await self.tell(name, ask.announce())

    async def live(self, name: str, by: str = "main") -> None:
        """Live a whole life, from the request to the archive."""
        await self.begin(name, by)
        await self.end(name)
        await self.announce(name)
        await self.tell(name, ask.archive())


def content_key_of(session_id: UUID) -> bytes:
    return session_id.bytes * 2


def lane(depth: int = 1, take: int = 8) -> LaneQuery:
    return LaneQuery(LANE, depth, take)
