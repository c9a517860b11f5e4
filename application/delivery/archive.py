"""Archives runs when they are due."""

import logging
from uuid import UUID

from application.delivery.transcript_files import TranscriptFileWriter
from application.log.event_log import Decision, DecisionContext, Submission
from application.log.unit_of_work import RunCommands, UnitOfWork, decide_commands
from application.ports.transcripts import ARCHIVED_MARK, Transcripts
from domain.run.commands import ArchiveRun
from domain.run.state import Run
from domain.values.refusals import NotYet, WrongStage

_log = logging.getLogger("spawnlog.archiving")


class Archiver:
    """Service that archives announced runs."""

    def __init__(
        self, work: UnitOfWork, transcripts: Transcripts, files: TranscriptFileWriter
    ) -> None:
        self._work = work
        self._transcripts = transcripts
        self._files = files

    def follow_up(self, run: Run) -> Submission[None] | None:
        """Return the archive of a run that is about to be announced; None if more than a record is
        needed.

        It is refused unless the archive is due at once.
        """
        if run.fork is not None:
            return None

        def decide(world: DecisionContext) -> Decision[None]:
            now = world.runs[run.run_id]
            if now.stage != "announced" or now.archive_at is None or now.archive_at > world.now:
                raise NotYet("archiving is postponed")
            return decide_commands(world, (RunCommands(now, (_archive_command(now),)),))

        return self._work.follow_up(run, decide)

    async def archive(self, run_id: UUID) -> None:
        """Record the archive with the new name of the transcript file, which is renamed
        afterwards."""
        run = await self._work.run(run_id)
        if run.stage != "announced" or run.archive_at is None:
            return
        if run.fork is not None and run.agent_id is not None:
            # The snapshot is left by a run that never started, or whose server died as it ended.
            await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        try:
            appended = await self._work.record(run, (_archive_command(run),))
        except WrongStage as why:
            # For example, a message continues the session.
            _log.info("run %s is not archived now: %s", run_id, why)
            return
        self._files.add(appended.runs[run_id])


def _archive_command(run: Run) -> ArchiveRun:
    """Return the command with the new path of the transcript file.

    The path is derived from the recorded time, so every process derives the same one.
    """
    path = run.transcript_path
    if path is not None and run.archive_at is not None:
        path += ARCHIVED_MARK + run.archive_at.strftime("%Y-%m-%dT%H-%M-%S-%fZ")
    return ArchiveRun(reason="cleanup" if run.cleanup == "delete" else "due", transcript_path=path)
