"""Puts sessions away when their time has come."""

import logging
from uuid import UUID

from application.log.unit_of_work import UnitOfWork
from application.ports.transcripts import Transcripts
from domain.run.commands import ArchiveRun
from domain.values.refusals import WrongStage

_log = logging.getLogger("spawnlog.archiving")


class Archiver:
    """Archives announced runs."""

    def __init__(self, work: UnitOfWork, transcripts: Transcripts) -> None:
        self._work = work
        self._transcripts = transcripts

    async def archive(self, run_id: UUID) -> None:
        """Rename the transcript, then record it. Repeating it changes nothing: the name is made
        from the time that is on record, not from the clock."""
        run = await self._work.run(run_id)
        if run.stage != "announced" or run.archive_at is None:
            return
        path = run.transcript_path
        if path is not None:
            stamp = run.archive_at.strftime("%Y-%m-%dT%H-%M-%S-%fZ")
            path = await self._transcripts.archive(path, stamp)
        if run.fork is not None and run.agent_id is not None:
            # It stays with a run that never started, and with one whose server died as it ended.
            await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        reason = "cleanup" if run.cleanup == "delete" else "due"
        try:
            await self._work.record(run, (ArchiveRun(reason=reason, transcript_path=path),))
        except WrongStage as why:
            _log.info("run %s is not archived now: %s", run_id, why)
            await self._restore(run_id, path)

    async def _restore(self, run_id: UUID, path: str | None) -> None:
        """A message was faster: the session goes on, and what was said in it belongs to it."""
        run = await self._work.run(run_id)
        if path is not None and run.stage == "announced" and run.continued_by is not None:
            await self._transcripts.restore(path)
