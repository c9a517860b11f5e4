"""Running log with everything that is read beside it, in memory or in a database."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from uuid_utils.compat import uuid7

from application.coordination.coordination import Coordination
from application.log.envelope import RecordedEvent
from application.log.texts import Contents
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import Configurations
from application.ports.files import StagedFiles
from application.ports.registry import Registry
from application.ports.transcripts import Transcripts
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.builders.configurations import PlacedConfigurations
from tests.support.memory.coordination import MemoryCoordination
from tests.support.memory.log import MemoryLog, MemoryTail
from tests.support.memory.read_model import MemoryContents, MemoryRegistry, MemoryStagedFiles
from tests.support.memory.store import Line, Store
from tests.support.memory.transcripts import MemoryTranscripts
from tests.support.servers.running_log import RunningLog


@dataclass(frozen=True)
class MemoryServedLog:
    """Running log in memory."""

    store: Store
    log: MemoryLog
    line: Line = field(default_factory=Line)

    @property
    def tail(self) -> MemoryTail:
        return self.log.tail

    async def events(self) -> Sequence[RecordedEvent]:
        """Return all recorded events; assert that positions have no gaps."""
        positions = [event.envelope.position for event in self.store.events]
        assert positions == list(range(1, len(positions) + 1))
        return list(self.store.events)

    async def types(self) -> list[str]:
        return [recorded.envelope.type for recorded in self.store.events]

    async def commits(self) -> int:
        return len(self.store.commits)

    def other(self) -> AbstractAsyncContextManager["MemoryServedLog"]:
        return serving_in_memory(self.store)

    def registry(self) -> Registry:
        return MemoryRegistry(self.store, self.line)

    def contents(self) -> Contents:
        return MemoryContents(self.store, self.line)

    def coordination(self) -> Coordination:
        return MemoryCoordination(self.store, self.line)

    def staged(self) -> StagedFiles:
        return MemoryStagedFiles(self.store, self.line)

    def transcripts(self, folder: Path) -> Transcripts:
        """Return the transcripts; the folder stays empty."""
        return MemoryTranscripts(self.store, self.line)


ServedLog = RunningLog | MemoryServedLog
"""Log as one process has it, with its ports."""


def work_on(
    running: ServedLog,
    configurations: Configurations | None = None,
    registry: Registry | None = None,
) -> UnitOfWork:
    """Return the unit of work of a log, by default under the built-in configuration."""
    if configurations is None:
        placed = configurations = PlacedConfigurations(Path("/nowhere"))
        placed.read({})
    return UnitOfWork(
        running.log,
        RandomIdentities(),
        registry or running.registry(),
        running.contents(),
        configurations,
    )


@asynccontextmanager
async def serving_in_memory(store: Store) -> AsyncIterator[MemoryServedLog]:
    """Yield a log that writes and follows until the end of the block."""
    line = Line()
    log = MemoryLog(store, line, new_id=uuid7)
    await log.start()
    try:
        yield MemoryServedLog(store, log, line)
    finally:
        await log.close()
