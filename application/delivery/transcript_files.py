"""The files of transcripts, written behind the ends of their runs."""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from application.concurrency.periodic import PeriodicTask
from application.concurrency.tasks import with_timeout
from application.coordination.coordination import Coordination, DueFile
from application.log.event_log import LogUnavailable
from application.ports.registry import Registry
from application.ports.transcripts import TranscriptFile, Transcripts
from domain.run.state import Run

FILES_AT_ONCE_MAX = 50
QUEUE_FILES_MAX = 10_000
QUEUE_BYTES_MAX = 64 * 1024 * 1024
"""Lines of so many bytes wait in memory at most; those of further runs are read from the rows."""


GATHER_SECONDS = 0.25
"""For so long files are gathered before they are written."""


PENDING_SECONDS = 2.0
"""So often those are looked for that nobody has written in time."""


_log = logging.getLogger("spawnlog.transcripts")


class _QueuedFile(NamedTuple):
    due: DueFile
    file: TranscriptFile


class TranscriptFileWriter:
    """Writes the files of runs that this process has ended or archived, and those that others have
    left.

    That a file is due is a row of the append that makes it so, and goes when it is written. So
    nobody waits for a disk, and what a process leaves that dies is done by any other."""

    def __init__(
        self, registry: Registry, transcripts: Transcripts, coordination: Coordination
    ) -> None:
        self._registry = registry
        self._transcripts = transcripts
        self._coordination = coordination
        self._queue: dict[UUID, _QueuedFile] = {}
        self._queued_bytes = 0
        self._one_at_a_time = asyncio.Lock()
        self._writing = PeriodicTask("transcript files", self._write_queued, PENDING_SECONDS)
        self._pending = PeriodicTask("due transcript files", self._write_due, PENDING_SECONDS)

    def add(self, run: Run, lines: bytes | None = None) -> None:
        """A run was ended or archived by this process."""
        file = _file_of(run, lines)
        if file is None:
            return
        before = self._queue.pop(run.run_id, None)
        if before is not None:
            self._queued_bytes -= len(before.file.lines or b"")
            lines = lines or before.file.lines
        if len(self._queue) >= QUEUE_FILES_MAX:
            return
        if lines is not None and self._queued_bytes + len(lines) > QUEUE_BYTES_MAX:
            lines = None
        self._queued_bytes += len(lines or b"")
        file = TranscriptFile(file.run_id, file.path, file.size_bytes, lines)
        self._queue[run.run_id] = _QueuedFile(_due_file(run), file)
        self._writing.notify()

    def start(self) -> None:
        """Write what is added, and look for what is left."""
        self._writing.start()
        self._pending.start()

    async def finish(self, seconds: float) -> None:
        """Write what is left of the queue, and wait for what is being written, so long at most; the
        rest is due to others."""
        try:
            await with_timeout(self._write_queued(), seconds)
        except (LogUnavailable, TimeoutError) as away:
            _log.warning("files of transcripts are written later: %s", away)

    async def close(self) -> None:
        """Stop."""
        await self._writing.close()
        await self._pending.close()

    async def _write_queued(self) -> None:
        if self._queue:
            # Nobody waits for them, and together they cost a fraction of what each does alone.
            await asyncio.sleep(GATHER_SECONDS)
        async with self._one_at_a_time:
            while self._queue:
                taken = list(self._queue.values())[:FILES_AT_ONCE_MAX]
                for one in taken:
                    del self._queue[one.due.run_id]
                    self._queued_bytes -= len(one.file.lines or b"")
                await self._write(taken)

    async def _write_due(self) -> None:
        while due := await self._coordination.due_files(limit=FILES_AT_ONCE_MAX):
            for one in await self._read_runs(due):
                await self._write_alone(one)
            if len(due) < FILES_AT_ONCE_MAX:
                return

    async def _write_alone(self, one: _QueuedFile) -> None:
        """One that was left may be one that cannot be read: it keeps nobody else waiting."""
        try:
            await self._write([one], are_left=True)
        except LogUnavailable:
            raise
        except Exception:
            _log.exception("the transcript of run %s cannot be read", one.due.run_id)

    async def _read_runs(self, due: Sequence[DueFile]) -> list[_QueuedFile]:
        found: list[_QueuedFile] = []
        for one in due:
            run = await self._registry.run(one.run_id)
            file = _file_of(run) if run is not None else None
            if run is not None and file is not None:
                found.append(_QueuedFile(_due_file(run), file))
        return found

    async def _write(self, queued: Sequence[_QueuedFile], *, are_left: bool = False) -> None:
        files = [one.file for one in queued]
        failures = await self._transcripts.write_files(files, are_left=are_left)
        written: list[DueFile] = []
        for one, failure in zip(queued, failures, strict=True):
            if failure is None:
                written.append(one.due)
            else:
                text = "the transcript of run %s cannot be written as a file now: %s"
                _log.error(text, one.due.run_id, failure.strerror)
        changed = await self._coordination.files_written(written)
        if changed:
            # Archived meanwhile by another server, which may have missed what was written here.
            now = await self._read_runs(changed)
            await self._transcripts.write_files([one.file for one in now])


def _due_file(run: Run) -> DueFile:
    return DueFile(run.run_id, run.stage == "archived")


def _file_of(run: Run, lines: bytes | None = None) -> TranscriptFile | None:
    if run.transcript is None or run.transcript_path is None:
        return None
    return TranscriptFile(run.run_id, run.transcript_path, run.transcript.bytes, lines)
