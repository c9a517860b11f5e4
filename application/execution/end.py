"""The end of a run: its transcript is sealed, then `RunEnded` says what came of it."""

import logging

from application.log.texts import ContentsErased
from application.log.unit_of_work import UnitOfWork, with_fresh_reads
from application.ports.runtimes import RuntimeEnd
from application.ports.transcripts import SealedTranscript, Transcripts
from domain.prompt.untrusted import freeze_result
from domain.run.commands import EndRun
from domain.run.facts import TranscriptSeal
from domain.run.state import Run
from domain.values.refusals import TranscriptGrew

ERROR_CHARACTERS_MAX = 10_000
_log = logging.getLogger("spawnlog.sealing")


class RunFinalizer:
    """Ends runs, for their holder or in its stead."""

    def __init__(self, work: UnitOfWork, transcripts: Transcripts) -> None:
        self._work = work
        self._transcripts = transcripts

    async def end(self, run: Run, end: RuntimeEnd) -> Run:
        """Seal and record. May be repeated: the file is the same, the second append is refused.
        Raises `LogUnavailable` when entries come faster than they are sealed."""
        return await with_fresh_reads(
            lambda _: self._seal_and_end(run, end),
            "the transcript of the run grows while it is sealed; it is ended in a moment",
            conflicts=(TranscriptGrew,),
        )

    async def _seal_and_end(self, run: Run, end: RuntimeEnd) -> Run:
        try:
            text_store = await self._work.text_store(run)
        except ContentsErased as erased:
            _log.warning("run %s ends without its texts: %s", run.run_id, erased)
            return await self._end_erased(run, end)
        error = end.error[:ERROR_CHARACTERS_MAX] if end.error else None
        sealed = None
        try:
            sealed = await self._seal_transcript(run) if run.started_at is not None else None
        except OSError as failure:
            # The entries stay in the database; the run must end all the same.
            _log.error("the transcript of %s cannot be written: %s", run.run_id, failure)
            note = f"the transcript file cannot be written: {failure.strerror}"
            error = f"{error}\n{note}" if error else note
        result = freeze_result(end.result) if end.result else None
        command = EndRun(
            epoch=run.epoch,
            outcome=end.outcome,
            reason=end.reason,
            exit_code=end.exit_code,
            signal=end.signal,
            result=text_store.store("result", result) if result else None,
            error=text_store.store("error", error) if error else None,
            usage=end.usage,
            transcript=_seal_of(sealed) if sealed else None,
        )
        appended = await self._work.record_end(
            run, command, text_store, last_entry=sealed.last if sealed else None
        )
        await self._drop_fork_snapshot(run)
        return appended.runs[run.run_id]

    async def _end_erased(self, run: Run, end: RuntimeEnd) -> Run:
        """Nothing may be said of it any more, but that it is over and how."""
        command = EndRun(
            epoch=run.epoch,
            outcome=end.outcome,
            reason=end.reason,
            exit_code=end.exit_code,
            signal=end.signal,
            usage=end.usage,
        )
        appended = await self._work.record(run, (command,))
        await self._drop_fork_snapshot(run)
        return appended.runs[run.run_id]

    async def _drop_fork_snapshot(self, run: Run) -> None:
        """The file of what it began with is not needed any more. One that stays goes with the
        session."""
        if run.fork is None:
            return
        assert run.agent_id is not None
        try:
            await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        except OSError as failure:
            _log.warning("run %s: a file of its transcript stays: %s", run.run_id, failure)

    async def _seal_transcript(self, run: Run) -> SealedTranscript:
        assert run.agent_id is not None
        key = await self._work.contents.key(run.session_id)
        assert key is not None
        return await self._transcripts.seal(
            run.run_id,
            session_id=run.session_id,
            agent_id=run.agent_id,
            key=key,
            continues=run.continues is not None,
        )


def _seal_of(sealed: SealedTranscript) -> TranscriptSeal:
    return TranscriptSeal(
        count=sealed.count, bytes=sealed.bytes, hmac=sealed.hmac, path=sealed.path
    )
