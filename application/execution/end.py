"""End of a run: record `RunEnded` with the outcome and the seal of the transcript."""

import hashlib
import hmac
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from application.delivery.announce import Announcer
from application.delivery.archive import Archiver
from application.delivery.priced_usage import priced_usage
from application.delivery.transcript_files import TranscriptFileWriter
from application.log.envelope import SYSTEM, Actor
from application.log.event_log import TranscriptRows
from application.log.texts import ContentsErased, TextStore
from application.log.unit_of_work import UnitOfWork, with_fresh_reads
from application.ports.runtimes import RuntimeEnd, TranscriptEntry
from application.ports.transcripts import SealedTranscript, Transcripts, UnwrittenEntries
from domain.prompt.untrusted import freeze_result
from domain.run.commands import EndRun
from domain.run.facts import TranscriptSeal
from domain.run.state import Run
from domain.values.refusals import TranscriptGrew

ERROR_CHARACTERS_MAX = 10_000
GROWS = "the transcript of the run is still growing; retry in a moment"
_log = logging.getLogger("spawnlog.sealing")


@dataclass(slots=True)
class WrittenTranscript:
    """A transcript whose rows are all written and were read."""

    sealed: SealedTranscript
    path: str
    lines: bytes | None = None

    @property
    def last_entry(self) -> int:
        return self.sealed.last

    is_written_on = False

    def seal(self, _: datetime) -> TranscriptSeal:
        """Return the seal over the rows read."""
        sealed = self.sealed
        return TranscriptSeal(
            count=sealed.count, bytes=sealed.bytes, hmac=sealed.hmac, path=self.path
        )

    def rows(self, _: Run, __: datetime) -> tuple[TranscriptRows, ...]:
        """Return no rows, since all are written."""
        return ()


@dataclass(frozen=True, slots=True)
class UnwrittenOutput:
    """Output of a run whose transcript has only `first_entry` written. The end writes all other
    entries."""

    first_entry: UnwrittenEntries
    entries: Sequence[TranscriptEntry]


@dataclass(slots=True)
class UnwrittenTranscript:
    """A transcript with one written row, whose line is `first_entry`."""

    first_entry: bytes
    entries: UnwrittenEntries
    path: str
    key: bytes
    lines: bytes | None = None

    last_entry = 1

    @property
    def is_written_on(self) -> bool:
        """Return True if there are entries after the first."""
        return bool(self.entries.kinds)

    def seal(self, recorded_at: datetime) -> TranscriptSeal:
        """Seal the written row and the entries written with the end."""
        self.lines = self.first_entry + self.entries.lines(2, recorded_at)
        digest = hmac.new(self.key, self.lines, hashlib.sha256).hexdigest()
        count = 1 + len(self.entries.kinds)
        return TranscriptSeal(count=count, bytes=len(self.lines), hmac=digest, path=self.path)

    def rows(self, run: Run, recorded_at: datetime) -> tuple[TranscriptRows, ...]:
        """Return the rows of all entries but the first."""
        entries = self.entries
        instants = entries.instants(recorded_at)
        return (TranscriptRows(run.run_id, 2, instants, entries.kinds, entries.bodies),)


class RunFinalizer:
    """Service that ends runs, for their holder or on its behalf."""

    def __init__(
        self,
        work: UnitOfWork,
        transcripts: Transcripts,
        files: TranscriptFileWriter,
        announcing: Announcer,
        archiving: Archiver,
    ) -> None:
        self._work = work
        self._transcripts = transcripts
        self._files = files
        self._announcing = announcing
        self._archiving = archiving

    async def end(
        self,
        run: Run,
        end: RuntimeEnd,
        unwritten: UnwrittenOutput | None = None,
        *,
        actor: Actor = SYSTEM,
        text_store: TextStore | None = None,
    ) -> Run:
        """Seal the transcript and record the end. A second call is refused by the log.

        Args:
            end: How the execution ended.
            unwritten: The output, if only the first entry is written.
            actor: Who reported the end.
            text_store: Store of the run's session, if its key was on record a moment ago.

        Raises:
            LogUnavailableError: If entries arrive faster than they can be sealed.
        """
        return await with_fresh_reads(
            lambda conflict: self._seal_and_end(
                run, end, unwritten, actor=actor, known=None if conflict else text_store
            ),
            GROWS,
            conflicts=(TranscriptGrew,),
        )

    async def end_for_lost_holder(
        self,
        run: Run,
        end: RuntimeEnd,
        *,
        renewed_at: datetime | None = None,
        lease_until: datetime | None = None,
    ) -> Run:
        """End a run whose holder is gone.

        The run's time ends at its last sign of life: the last lease renewal, if known, or the last
        entry. If nothing was heard since the start, it ends at `lease_until`.
        """
        assert run.started_at is not None
        said_at = await self._transcripts.last_recorded_at(run.run_id)
        signs = (run.started_at, renewed_at, said_at)
        alive_until = max(at for at in signs if at is not None)
        if alive_until == run.started_at and lease_until is not None:
            alive_until = max(alive_until, lease_until)
        return await with_fresh_reads(
            lambda _: self._seal_and_end(run, end, None, alive_until),
            GROWS,
            conflicts=(TranscriptGrew,),
        )

    async def _seal_and_end(
        self,
        run: Run,
        end: RuntimeEnd,
        unwritten: UnwrittenOutput | None,
        alive_until: datetime | None = None,
        actor: Actor = SYSTEM,
        known: TextStore | None = None,
    ) -> Run:
        try:
            text_store = known or await self._work.text_store(run)
        except ContentsErased as erased:
            _log.warning("run %s ends without its texts: %s", run.run_id, erased)
            return await self._end_erased(run, end, actor)
        error = end.error[:ERROR_CHARACTERS_MAX] if end.error else None
        transcript = None
        if run.started_at is not None:
            transcript = await self._transcript(run, text_store.key, unwritten)
        # A blank result counts as none.
        result = freeze_result(end.result) if end.result and end.result.strip() else None
        command = EndRun(
            epoch=run.epoch,
            outcome=end.outcome,
            reason=end.reason,
            exit_code=end.exit_code,
            signal=end.signal,
            result=text_store.store("result", result) if result else None,
            error=text_store.store("error", error) if error else None,
            usage=await priced_usage(self._work, run, end.usages, warns=True),
            alive_until=alive_until,
        )
        # Follow-ups that need no further reads are recorded with the end.
        announcement = await self._announcing.follow_up(
            run,
            text_store,
            result=result or None,
            error=error or None,
            output_notes=end.notes,
        )
        archive = self._archiving.follow_up(run) if announcement is not None else None
        follow_ups = [follow_up for follow_up in (announcement, archive) if follow_up is not None]
        appended = await self._work.record_end(
            run, command, text_store, transcript, follow_ups, actor
        )
        if transcript is not None:
            self._files.add(appended.runs[run.run_id], transcript.lines)
        await self._drop_fork_snapshot(run)
        return appended.runs[run.run_id]

    async def _end_erased(self, run: Run, end: RuntimeEnd, actor: Actor) -> Run:
        """Record the end without texts, because they were erased."""
        command = EndRun(
            epoch=run.epoch,
            outcome=end.outcome,
            reason=end.reason,
            exit_code=end.exit_code,
            signal=end.signal,
            usage=await priced_usage(self._work, run, end.usages, warns=True),
        )
        appended = await self._work.record(run, (command,), actor=actor)
        await self._drop_fork_snapshot(run)
        return appended.runs[run.run_id]

    async def _drop_fork_snapshot(self, run: Run) -> None:
        """Delete the fork snapshot. If that fails, it is deleted with the session."""
        if run.fork is None:
            return
        assert run.agent_id is not None
        try:
            await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        except OSError as failure:
            _log.warning("run %s: a transcript file cannot be removed: %s", run.run_id, failure)

    async def _transcript(
        self, run: Run, key: bytes, unwritten: UnwrittenOutput | None
    ) -> WrittenTranscript | UnwrittenTranscript:
        assert run.agent_id is not None
        path = self._transcripts.file_path(
            run.run_id,
            session_id=run.session_id,
            agent_id=run.agent_id,
            continues=run.continues is not None,
        )
        if unwritten is not None and run.started_at is not None:
            line = unwritten.first_entry.lines(1, run.started_at)
            entries = self._transcripts.unwritten(unwritten.entries)
            return UnwrittenTranscript(line, entries, path, key)
        return WrittenTranscript(await self._transcripts.seal(run.run_id, key=key), path)
