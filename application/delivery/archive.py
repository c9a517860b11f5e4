"""Archives runs when their time has come."""

import logging
from uuid import UUID

from application.delivery.transcript_files import TranscriptFileWriter
from application.log.unit_of_work import UnitOfWork
from application.ports.transcripts import ARCHIVED_MARK, Transcripts
from domain.run.commands import ArchiveRun
from domain.values.refusals import WrongStage

_log = logging.getLogger("spawnlog.archiving")


class Archiver:
    """Archives announced runs."""

    def __init__(
        self, work: UnitOfWork, transcripts: Transcripts, files: TranscriptFileWriter
    ) -> None:
        self._work = work
        self._transcripts = transcripts
        self._files = files

    async def archive(self, run_id: UUID) -> None:
        """Record it, with the name that the transcript's file has from then on; it is renamed
        behind that."""
        run = await self._work.run(run_id)
        if run.stage != "announced" or run.archive_at is None:
            return
        path = run.transcript_path
        if path is not None:
            path += ARCHIVED_MARK + run.archive_at.strftime("%Y-%m-%dT%H-%M-%S-%fZ")
        if run.fork is not None and run.agent_id is not None:
            # It stays with a run that never started, and with one whose server died as it ended.
            await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        reason = "cleanup" if run.cleanup == "delete" else "due"
        try:
            appended = await self._work.record(
                run, (ArchiveRun(reason=reason, transcript_path=path),)
            )
        except WrongStage as why:
            # A message was faster, for one: the session goes on.
            _log.info("run %s is not archived now: %s", run_id, why)
            return
        self._files.add(appended.runs[run_id], appended.position)
