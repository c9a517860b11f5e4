"""The step that lets a child begin with the conversation of who asked for it."""

import asyncio

from application.log.unit_of_work import UnitOfWork
from application.parent_transcripts import Parent, ParentTranscripts
from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import Transcripts
from application.steps.step import StepPlace, StepRefused, StepResult, UndoFailed
from application.wished_context import read_context_request
from domain.context.fork import (
    SESSION_KIND,
    fork_failed_refusal,
    no_transcript_refusal,
    other_agent_refusal,
    unreadable_transcript_refusal,
)
from domain.delivery.provided_transcript import NotATranscript
from domain.run.facts import ForkFacts, Plan, StepName, StepState, UndoOutcome
from domain.run.state import Run
from domain.values.refusals import LostClaim

LIMIT_SECONDS = 30.0


class ContextForkStep:
    """Implements `StepMaker`. The entries become the first of the child's own transcript, and lie
    in a file for its runtime."""

    name: StepName = "context_fork"
    limit_seconds = LIMIT_SECONDS

    def __init__(self, work: UnitOfWork, transcripts: Transcripts) -> None:
        self._work = work
        self._transcripts = transcripts
        self._parents = ParentTranscripts(work, transcripts)

    async def place(self, run: Run, _: Plan) -> StepPlace | None:
        """The file, when the child is to begin with something. What was asked for and cannot be is
        refused before anything is made."""
        wish = await read_context_request(self._work, run)
        if wish.mode == "isolated":
            return None
        if not run.is_of_same_agent:
            if wish.is_explicit:
                raise StepRefused(other_agent_refusal())
            return None
        if wish.is_explicit and not await self._parents.is_there(run):
            raise StepRefused(no_transcript_refusal())
        assert run.agent_id is not None
        return StepPlace(*self._transcripts.fork_snapshot_place(run.session_id, run.agent_id))

    async def make(self, run: Run, _: StepState, *, is_resumed: bool) -> StepResult:
        """Write the rows and the file; with too much, or nothing, the child starts without."""
        try:
            async with asyncio.timeout(self.limit_seconds):
                return await self._fork_result(run, is_resumed=is_resumed)
        except (OSError, TimeoutError):
            raise StepRefused(fork_failed_refusal()) from None
        except NotATranscript:
            raise StepRefused(unreadable_transcript_refusal()) from None

    async def undo(self, run: Run, _: StepState) -> UndoOutcome:
        """Remove the rows and the file."""
        assert run.agent_id is not None
        had_rows = await self._transcripts.drop_fork(run.run_id)
        try:
            had_file = await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UndoFailed(f"the forked transcript cannot be removed: {reason}") from None
        return "undone" if had_rows or had_file else "nothing_there"

    async def _fork_result(self, run: Run, *, is_resumed: bool) -> StepResult:
        parent = await self._parents.of(run)
        if parent is None and run.context_argument is not None:
            raise StepRefused(no_transcript_refusal())
        if parent is not None and parent.extent.fits:
            return await self._fork(run, parent)
        if is_resumed:
            await self._write(run, ())
        facts = ForkFacts(
            source_session_id=parent.session_id if parent else None,
            position=run.created_position,
            entries=parent.extent.entries if parent else 0,
            tokens=parent.extent.tokens if parent else None,
            mode="isolated",
        )
        return StepResult(outcome="isolated", made=False, fork=facts)

    async def _fork(self, run: Run, parent: Parent) -> StepResult:
        entries = await self._parents.entries(parent)
        facts = ForkFacts(
            source_session_id=parent.session_id,
            position=run.created_position,
            entries=len(entries),
            tokens=parent.extent.tokens,
            mode="fork",
        )
        await self._write(run, (_header(run, parent, facts), *entries))
        assert run.agent_id is not None
        await self._transcripts.write_fork_snapshot(
            run.run_id,
            session_id=run.session_id,
            agent_id=run.agent_id,
            count=len(entries) + 1,
        )
        return StepResult(outcome="forked", fork=facts)

    async def _write(self, run: Run, entries: tuple[TranscriptEntry, ...]) -> None:
        """In place of what an attempt before has left."""
        assert run.agent_id is not None
        await self._transcripts.drop_fork_snapshot(run.session_id, run.agent_id)
        if not await self._transcripts.fork(run.run_id, run.epoch, entries):
            raise LostClaim(0, run.epoch)


def _header(run: Run, parent: Parent, facts: ForkFacts) -> TranscriptEntry:
    body: dict[str, object] = {
        "parentSessionKey": run.requester.session_key,
        "parentSessionId": str(parent.session_id),
        "entries": facts.entries,
        "tokens": facts.tokens,
    }
    if parent.run_id is not None:
        body["parentRunId"] = str(parent.run_id)
    return TranscriptEntry(SESSION_KIND, body)
