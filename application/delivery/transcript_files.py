"""Writes transcript files asynchronously, after runs have ended."""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from application.concurrency.periodic import PeriodicTask
from application.concurrency.tasks import with_timeout
from application.coordination.coordination import Coordination, DueFile
from application.log.event_log import LogUnavailableError
from application.ports.registry import Registry
from application.ports.transcripts import TranscriptFile, Transcripts
from domain.run.state import Run

FILES_AT_ONCE_MAX = 50
QUEUE_FILES_MAX = 10_000
QUEUE_BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of lines kept in memory. Lines of further runs are read from the rows."""


GATHER_SECONDS = 0.25
"""Delay to collect files, so that they are written together."""


PENDING_SECONDS = 2.0
"""Interval of the search for files that were not written in time."""


_log = logging.getLogger("spawnlog.transcripts")


class _QueuedFile(NamedTuple):
    due: DueFile
    file: TranscriptFile


class TranscriptFileWriter:
    """Background writer of transcript files.

    It writes the files of runs that this process ended or archived, and those that other processes
    left.

    The append that ends or archives a run creates a row for the due file, which is deleted when the
    file is written. So no run waits for a disk, and any process can finish the work of a process
    that died.
    """

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
        """Queue the file of a run that this process ended or archived."""
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
        self._writing.start()
        self._pending.start()

    async def finish(self, seconds: float) -> None:
        """Write the queue, waiting at most `seconds`. Other processes write the rest."""
        try:
            await with_timeout(self._write_queued(), seconds)
        except (LogUnavailableError, TimeoutError) as away:
            _log.warning("transcript files will be written later: %s", away)

    async def close(self) -> None:
        await self._writing.close()
        await self._pending.close()

    async def _write_queued(self) -> None:
        if self._queue:
            # The files are not urgent, and writing them together costs a fraction of the time.
            await asyncio.sleep(GATHER_SECONDS)
        async with self._one_at_a_time:
            while self._queue:
                taken = list(self._queue.values())[:FILES_AT_ONCE_MAX]
                for queued in taken:
                    del self._queue[queued.due.run_id]
                    self._queued_bytes -= len(queued.file.lines or b"")
                await self._write(taken)

    async def _write_due(self) -> None:
        while due := await self._coordination.due_files(limit=FILES_AT_ONCE_MAX):
            for queued in await self._read_runs(due):
                await self._write_alone(queued)
            if len(due) < FILES_AT_ONCE_MAX:
                return

    async def _write_alone(self, queued: _QueuedFile) -> None:
        """Write one file by itself, so that an unreadable one does not block the others."""
        try:
            await self._write([queued], are_left=True)
        except LogUnavailableError:
            raise
        except Exception:
            _log.exception("the transcript of run %s cannot be read", queued.due.run_id)

    async def _read_runs(self, due: Sequence[DueFile]) -> list[_QueuedFile]:
        found: list[_QueuedFile] = []
        for file_row in due:
            run = await self._registry.run(file_row.run_id)
            file = _file_of(run) if run is not None else None
            if run is not None and file is not None:
                found.append(_QueuedFile(_due_file(run), file))
        return found

    async def _write(self, queued: Sequence[_QueuedFile], *, are_left: bool = False) -> None:
        files = [queued_file.file for queued_file in queued]
        failures = await self._transcripts.write_files(files, are_left=are_left)
        written: list[DueFile] = []
        for queued_file, failure in zip(queued, failures, strict=True):
            if failure is None:
                written.append(queued_file.due)
            else:
                text = "the transcript file of run %s cannot be written now: %s"
                _log.error(text, queued_file.due.run_id, failure.strerror)
        changed = await self._coordination.files_written(written)
        if changed:
            # Another server archived the run meanwhile, and may not have seen the file written
            # here.
            now = await self._read_runs(changed)
            await self._transcripts.write_files([queued_file.file for queued_file in now])


def _due_file(run: Run) -> DueFile:
    return DueFile(run.run_id, run.stage == "archived")


def _file_of(run: Run, lines: bytes | None = None) -> TranscriptFile | None:
    if run.transcript is None or run.transcript_path is None:
        return None
    return TranscriptFile(run.run_id, run.transcript_path, run.transcript.bytes, lines)
