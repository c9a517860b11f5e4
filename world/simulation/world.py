"""Servers of the whole application in one simulated world, composed as in production."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from application.coordination.lease_owner import LeaseOwner
from application.log.envelope import RecordedEvent
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.hooks import HookAnswer
from application.ports.runtimes import Launch, RuntimeSession, TranscriptEntry
from application.ports.scripts import Mask, ScriptFinished, ScriptRun
from application.ports.transcripts import SealedTranscript
from application.ports.webhooks import WebhookAnswer, WebhookError
from application.session.stop import StopService
from application.spawn.service import SpawnService
from application.workers.supervisor import Supervisor
from domain.configuration.configuration import EffectiveAgent
from domain.configuration.runtimes import Runtime
from domain.delivery.hook_payloads import HookCall
from domain.delivery.webhook import WebhookMessage
from domain.run.events import PreparationResumed, RunClaimed, RunStarted, SpawnRequested
from infrastructure.outbound.runtimes.scripted import ScriptedRuntimes, ScriptedSession
from infrastructure.server.compose import WorkerDependencies, build_workers
from tests.support.builders.configurations import load_values
from tests.support.builders.run_preparers import NoCredentials
from tests.support.faults.interruption import uninterrupted
from tests.support.memory.coordination import MemoryCoordination
from tests.support.memory.log import MemoryLog
from tests.support.memory.read_model import MemoryContents, MemoryRegistry, MemoryStagedFiles
from tests.support.memory.store import LOCK_STEPS, Fault, Line, LineLost, Store, StoreSession
from tests.support.memory.transcripts import MemoryTranscripts
from world.simulation.virtual_time import SimulatedProcess, VirtualLoop
from world.society.agents import HOOKS, society

CAP = 3
LEASE_SECONDS = 1.5
PACES = {"quick": (), "slow": (100, 100), "long": (500,) * 5, "failing": (100, 100)}
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SILENCE_SECONDS_MAX = 1.0
BOUND = {
    "status": "ok",
    "threadBindingReady": True,
    "deliveryOrigin": {"to": "thread:9", "threadId": "9"},
}


@lru_cache(maxsize=1)
def configuration() -> PinnedConfiguration:
    """Return the configuration: a society with a narrow lane."""
    values = society(
        PACES,
        cap=CAP,
        hooks={name: {"url": f"http://hooks.test/{name}"} for name in HOOKS},
        maxSpawnDepth=2,
        maxConcurrent=2,
        leaseSeconds=LEASE_SECONDS,
    )
    loaded = load_values(values, folder=Path("/simulated"))
    return PinnedConfiguration(1, loaded.configuration, {})


class FixedConfigurations:
    """Implements `Configurations` with one revision."""

    def current(self) -> PinnedConfiguration:
        return configuration()

    async def at(self, revision: int) -> PinnedConfiguration:
        return configuration()

    async def in_force(self, position: int) -> PinnedConfiguration:
        return configuration()

    async def is_kept(self, revision: int) -> bool:
        """Return True: no revision is erased."""
        return True


class NowhereWorkspaces:
    """Implements `Workspaces`: every agent works in a folder that does not exist."""

    def workspace_of(
        self,
        pinned: PinnedConfiguration,
        agent: EffectiveAgent,
        *,
        recorded: str | None = None,
        requested: str | None = None,
    ) -> str:
        return f"/simulated/{agent.id}"


class NumberedIdentities:
    """Implements `Identities` from a seed."""

    def __init__(self, die: random.Random) -> None:
        self._die = die

    def run_id(self) -> UUID:
        """Return a UUID of version 4."""
        return UUID(int=self._die.getrandbits(128), version=4)

    event_id = run_id

    def content_key(self) -> bytes:
        """Return 32 bytes."""
        return self._die.randbytes(32)


class PlainTokens:
    """Implements `ChildTokens` with tokens that are never used."""

    def mint(self, run_id: UUID, epoch: int) -> str:
        """Return the name of the claim."""
        return f"{run_id}.{epoch}"


class NoScripts:
    """Implements `ScriptRunner` and `ScriptSecrets` for a configuration without scripts."""

    async def run(self, request: ScriptRun) -> ScriptFinished:
        raise AssertionError("no script is configured")

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        """Return a mask that changes nothing."""
        return lambda text: text


class NoFolders:
    """Implements `WorkspaceFolders`, `BootstrapFiles` and `AttachmentFiles` with empty folders.

    Nothing is attached. Folders of slow agents are mostly missing, and take some time to create.
    """

    def __init__(self, die: random.Random) -> None:
        self._die = die

    async def missing(self, path: str) -> tuple[str, str] | None:
        """Return the folder to create, at random, for an agent that takes time."""
        root, _, name = path.rpartition("/")
        return (root, name) if name in ("slow", "long") and self._die.random() < 0.7 else None

    async def is_still(self, path: str) -> bool:
        return True

    async def make(self, root: str, relative: str) -> bool:
        """Return False, as if another process had created the folder meanwhile."""
        await asyncio.sleep(self._die.expovariate(5))
        return False

    async def remove_if_empty(self, root: str, relative: str) -> Any:
        return "left_in_place"

    async def read(self, folder: str, chars_max: int) -> tuple[Any, ...]:
        return ()

    async def write(self, *_: Any, **__: Any) -> None:
        raise AssertionError("nothing is attached")

    async def remove(self, *_: Any, **__: Any) -> Any:
        return "nothing_there"


class SimulatedLine(Line):
    """A line that is slow at random, breaks now and then, and is cut while the store is away."""

    def __init__(self, world: "World", process: SimulatedProcess) -> None:
        self._world = world
        self.process = process

    async def send(self) -> None:
        """Delay or lose a request."""
        await self._travel(1)

    receive = send
    """Delay or lose an answer; the request is executed all the same."""

    async def confirm(self) -> None:
        """Delay or lose the confirmation of a commit, which is lost most often."""
        await self._travel(6)

    def late_seconds(self) -> float | None:
        """Return the delay of a notification in seconds, or None if it is lost."""
        luck = self._world.die.random()
        if luck < 0.1:
            return None
        return 0.0 if luck < 0.7 else self._world.die.expovariate(40)

    async def _travel(self, danger: int) -> None:
        world = self._world
        if world.is_over:
            raise asyncio.CancelledError
        luck = world.die.random()
        if luck > 0.4:
            await asyncio.sleep(0 if luck < 0.88 else world.die.expovariate(60))
        is_lost = world.losses > 0 and world.die.random() < world.losses * danger
        if is_lost or world.is_store_away:
            world.store.break_off(self)
            raise LineLost


@dataclass(eq=False)
class CountedRuntimes:
    """Implements `AgentRuntimes`: scripted runtimes that count executions.

    Some start slowly, so that other events find a run that is claimed and not started.
    """

    world: "World"
    scripted: ScriptedRuntimes

    def is_in_process(self, runtime: Runtime) -> bool:
        """Return whether this server runs the child in its own process."""
        return self.scripted.is_in_process(runtime)

    async def open(self, launch: Launch) -> RuntimeSession:
        """Open a session, sometimes after a delay.

        Raises:
            LaunchError: The runtime cannot start.
        """
        if self.world.die.random() < 0.5:
            await asyncio.sleep(self.world.die.expovariate(10))
        session = await self.scripted.open(launch)
        return _CountedSession(session, launch.run_id, self.world.executed)


class _CountedSession:
    def __init__(self, session: ScriptedSession, run_id: UUID, executed: Counter[UUID]) -> None:
        self._session, self._run_id, self._executed = session, run_id, executed
        self.entries, self.end, self.kill = session.entries, session.end, session.kill
        self.ready_entries = session.ready_entries

    def go(self) -> None:
        self._executed[self._run_id] += 1
        self._session.go()


class Hooks:
    """Implements `HookClient`: every hook agrees."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def ask(self, pinned: PinnedConfiguration, call: HookCall) -> HookAnswer:
        """Answer a hook, binding the requested thread."""
        await asyncio.sleep(0.01)
        return HookAnswer(200, BOUND if call.hook == "subagentSpawning" else None)


class SimulatedTranscripts(MemoryTranscripts):
    """Transcripts of a server that may stop in the middle of writing."""

    def __init__(self, server: "SimulatedServer", store: Store, line: Line) -> None:
        super().__init__(store, line)
        self._server = server

    async def append(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> bool:
        """Return False if the claim was replaced."""
        self._server.world.writing(self._server)
        await asyncio.sleep(0)
        return await super().append(run_id, epoch, first, entries)

    async def seal(self, run_id: UUID, *, key: bytes) -> SealedTranscript:
        """Return the seal of a run's entries. Another server may wake before it is recorded."""
        sealed = await super().seal(run_id, key=key)
        await self._server.world.sealing(self._server)
        return sealed


class NoWebhooks:
    """Implements `WebhookClient` without a configured webhook."""

    async def send(
        self, pinned: PinnedConfiguration, webhook_id: str, message: WebhookMessage
    ) -> WebhookAnswer:
        raise WebhookError("the webhook is not configured")


class SimulatedServer:
    """One life of a server process."""

    def __init__(self, world: "World", number: int) -> None:
        self.number = number
        self.process = SimulatedProcess(f"server-{number}")
        self.line = SimulatedLine(world, self.process)
        self.is_up = False
        self.freezes_when_holding = False
        self.freezes_when_writing = False
        self.stops_behind: tuple[str, Callable[[SimulatedServer], None]] | None = None
        self.world = world
        self.last_append: frozenset[str] = frozenset()
        self.pending: list[asyncio.Future[Any]] = []
        ids, store, line = world.identities, world.store, self.line
        world.lives += 1
        self.name = f"server-{number}.{world.lives}"
        self.log = MemoryLog(store, line, new_id=ids.event_id, on_append=self._note_append)
        self.log.end_with(world.wrong.append)
        self.registry = MemoryRegistry(store, line, self.log.remembered)
        contents = MemoryContents(store, line)
        self.work = UnitOfWork(self.log, ids, self.registry, contents, FixedConfigurations())
        names = itertools.count()
        holder = LeaseOwner(lambda: f"{self.name}.{next(names)}")
        transcripts, folders = SimulatedTranscripts(self, store, line), NoFolders(world.die)
        coordination = MemoryCoordination(store, line)
        self.workers = build_workers(
            self.work,
            WorkerDependencies(
                coordination=coordination,
                transcripts=transcripts,
                scripts=NoScripts(),
                script_secrets=NoScripts(),
                runtimes=CountedRuntimes(world, ScriptedRuntimes()),
                tokens=PlainTokens(),
                credentials=NoCredentials(),
                folders=folders,
                workspaces=NowhereWorkspaces(),
                attachments=folders,
                staged=MemoryStagedFiles(store, line),
                bootstrap=folders,
                hooks=Hooks(line),
                webhooks=NoWebhooks(),
                interruption=uninterrupted,
                holder=holder,
                lease_seconds=LEASE_SECONDS,
                url=None,
            ),
        )
        self.spawning = SpawnService(
            self.work, self.workers.preparing, self.workers.dispatching, holder, transcripts.flushes
        )
        self.stopping = StopService(self.work, self.workers.preparing)
        self.supervisor = Supervisor(
            self.workers,
            coordination,
            self.log.tail,
            holder=holder,
            lease_seconds=LEASE_SECONDS,
            follow_configuration=_follow_nothing,
            alive=lambda: None,
        )

    def _note_append(self, events: Sequence[RecordedEvent]) -> None:
        self.world.recorded_by.update((event.envelope.position, self.name) for event in events)
        self.last_append = frozenset(event.envelope.type for event in events)
        started = {
            event.envelope.provenance.run_id
            for event in events
            if isinstance(event.event, RunStarted)
        }
        for recorded in events:
            is_taken = isinstance(recorded.event, RunClaimed | PreparationResumed | SpawnRequested)
            # The holder of runs that were started at once records nothing more for a while.
            if is_taken and recorded.envelope.provenance.run_id not in started:
                self.world.holder_changed(self)

    async def _open(self) -> None:
        await self.log.start()
        while True:
            try:
                await self.supervisor.join()
                break
            except Exception:
                await asyncio.sleep(0.1)
        self.supervisor.start()
        self.is_up = True

    def start(self) -> None:
        self.process.start(self._open())

    def kill(self) -> None:
        """Kill the server as by SIGKILL: its connections break, and its callers get no answer."""
        self.process.is_dead, self.is_up = True, False
        self.world.store.break_off(self.line)
        self.hang_up()

    def hang_up(self) -> None:
        """Leave all pending calls without an answer."""
        for answer in self.pending:
            if not answer.done():
                answer.set_result(None)


async def _follow_nothing(revision: int) -> None:
    raise AssertionError("the configuration stays")


class World:
    """A store, its servers, and their faults."""

    def __init__(
        self, seed: int, loop: VirtualLoop, servers: int, faults: frozenset[Fault]
    ) -> None:
        self.seed = seed
        self._outside = copy_context()
        self.die = random.Random(f"{seed} world")
        self.loop = loop
        self.losses = 0.0
        self.away_until = 0.0
        self.is_over = False
        self.clock_error = 0.0
        self.lives = 0
        self.ticks = 0
        self.wrong: list[str] = []
        self.graves: list[SimulatedServer] = []
        self.recorded_by: dict[int, str] = {}
        self.executed: Counter[UUID] = Counter()
        self.happened: Counter[str] = Counter()
        self.killed_after: Counter[str] = Counter()
        self.identities = NumberedIdentities(random.Random(f"{seed} ids"))
        self.store = Store(now=self.now, faults=faults)
        self.store.on_step = self._stepped
        self.servers = [SimulatedServer(self, number) for number in range(servers)]

    def now(self) -> datetime:
        """Return the time of the database, whose clock may be set back and forth."""
        return BEGIN + timedelta(seconds=self.loop.time() + self.clock_error)

    @property
    def is_store_away(self) -> bool:
        """Return True while the store is unreachable."""
        return self.loop.time() < self.away_until

    def up(self) -> list[int]:
        """Return the numbers of the servers that can be asked."""
        return [server.number for server in self.servers if server.is_up]

    async def trouble(self) -> None:
        """Cause one fault after the other, forever."""
        acts = {
            self._kill: 3,
            self._freeze: 4,
            self._stop_with_lock: 2,
            self._lose: 2,
            self._cut: 1,
            self._set_clock: 1,
        }
        while True:
            await asyncio.sleep(self.die.expovariate(1.2))
            (act,) = self.die.choices(list(acts), weights=list(acts.values()))
            act()

    def _later(self, seconds: float, act: Callable[..., None], *about: object) -> None:
        """Schedule an act outside all servers, so that a frozen one does not delay it."""
        self.loop.call_later(seconds, act, *about, context=self._outside)

    def _kill(self) -> None:
        """Kill a server after a random number of steps."""
        self._soon(self._killed)

    def _soon(self, act: Callable[[SimulatedServer], None]) -> None:
        server = self.die.choice(self.servers)
        if not server.is_up:
            return
        at = server.process.steps + int(self.die.expovariate(1 / 40)) + 1

        def step(number: int) -> None:
            if number >= at:
                server.process.at_step = None
                act(server)

        server.process.at_step = step

    def _killed(self, server: SimulatedServer) -> None:
        self.happened["killed"] += 1
        self.killed_after.update(server.last_append | self._steps(server))
        server.kill()
        self._later(self.die.expovariate(2), self._restart, server.number)

    def _steps(self, server: SimulatedServer) -> frozenset[str]:
        """Return the last steps of a server's writers with the append lock."""
        sessions = (writer for writer in self.store.writers if writer.line is server.line)
        return frozenset(f"lock:{session.step}" for session in sessions)

    def _restart(self, number: int) -> None:
        if not self.is_over:
            self.graves.append(self.servers[number])
            self.servers[number] = SimulatedServer(self, number)
            self.servers[number].start()

    def _freeze(self) -> None:
        """Freeze a server anywhere, right after it has claimed a run, or before it writes
        entries.
        """
        luck, server = self.die.random(), self.die.choice(self.servers)
        if luck < 0.3:
            self._soon(self._frozen)
        elif luck < 0.6:
            server.freezes_when_holding = True
        else:
            server.freezes_when_writing = True

    def _stop_with_lock(self) -> None:
        """Kill or freeze a server when it reaches a step with the append lock."""
        step, act = self.die.choice(LOCK_STEPS), self.die.choice((self._killed, self._frozen))
        self.die.choice(self.servers).stops_behind = step, act

    def _stepped(self, session: StoreSession) -> None:
        for server in self.servers:
            if server.line is session.line and server.is_up and server.stops_behind is not None:
                step, act = server.stops_behind
                if session.step == step:
                    server.stops_behind = None
                    act(server)

    def writing(self, server: SimulatedServer) -> None:
        """Freeze a server that is about to write transcript entries, if that is planned."""
        if server.freezes_when_writing:
            server.freezes_when_writing = False
            self._frozen(server)

    def holder_changed(self, server: SimulatedServer) -> None:
        """React to a claim: freeze the server if that is planned, or thaw others.

        A frozen server may have held the run before; it wakes while the new holder is at the
        beginning.
        """
        if server.freezes_when_holding:
            server.freezes_when_holding = False
            self._frozen(server)
            return
        for peer in self.servers:
            if peer.process.is_frozen and self.die.random() < 0.6:
                self._later(self.die.expovariate(20), self._thaw, peer)

    async def sealing(self, server: SimulatedServer) -> None:
        """Thaw other servers while one has read a transcript and is about to end its run."""
        frozen = [item for item in self.servers if item.process.is_frozen and item is not server]
        for peer in frozen:
            self._later(self.die.expovariate(50), self._thaw, peer)
        if frozen:
            await asyncio.sleep(self.die.expovariate(20))

    def _frozen(self, server: SimulatedServer) -> None:
        self.happened["frozen"] += 1
        self.happened.update(f"frozen after {step}" for step in self._steps(server))
        server.process.is_frozen = True
        server.is_up = False
        self._later(SILENCE_SECONDS_MAX, self._break_off_if_frozen, server)
        self._later(self.die.expovariate(0.5 / LEASE_SECONDS), self._thaw, server)

    def _break_off_if_frozen(self, server: SimulatedServer) -> None:
        if server.process.is_frozen:
            self.store.break_off(server.line)
            self._later(SILENCE_SECONDS_MAX, self._break_off_if_frozen, server)

    def _thaw(self, server: SimulatedServer) -> None:
        if server.process.is_frozen:
            self.loop.thaw(server.process)
            server.is_up = True

    def _lose(self) -> None:
        """Let connections break for a while."""
        self.happened["lossy"] += 1
        self.losses = 0.05
        self._later(self.die.expovariate(1), self._lose_no_more)

    def _lose_no_more(self) -> None:
        self.losses = 0.0

    def _cut(self) -> None:
        """Make the store unreachable for a while, or restart it."""
        self.happened["away"] += 1
        self.away_until = self.loop.time() + self.die.expovariate(1.5)
        if Fault.COMMITS_NOT_DURABLE in self.store.faults:
            self.store.forget_last_commits(1)
        for server in self.servers:
            self.store.break_off(server.line)

    def _set_clock(self) -> None:
        self.happened["clock set"] += 1
        self.clock_error = self.die.uniform(-0.4, 0.4)

    async def heal(self) -> None:
        """End all faults, and wait until every server is up."""
        self.losses, self.away_until = 0.0, 0.0
        for server in self.servers:
            server.process.at_step = None
            server.freezes_when_holding = server.freezes_when_writing = False
            server.stops_behind = None
            self._thaw(server)
        while len(self.up()) < len(self.servers):
            await asyncio.sleep(0.2)
