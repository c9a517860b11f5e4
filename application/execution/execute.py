"""Executes claimed runs: start them, write their transcripts, and record their ends.

The order makes it safe: prepare the guard process, record `RunStarted`, and only then execute. If a
process dies in between, the record says exactly how far it came.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from application.concurrency.answer_first import answer_given
from application.concurrency.tasks import wait_or_cancel
from application.coordination.lane import QueuedChild
from application.execution.end import RunFinalizer, UnwrittenOutput
from application.execution.entry_writer import EntryWriter
from application.execution.launch import LaunchComposer, PreparedLaunch
from application.log.event_log import Decision, DecisionContext, Following, LogUnavailableError
from application.log.retry import retry_while_unavailable
from application.log.texts import TextStore
from application.log.unit_of_work import (
    RunCommands,
    UnitOfWork,
    decide_commands,
    provenance_of,
    with_first_entry,
)
from application.ports.configurations import MissingSecretError
from application.ports.runtimes import (
    AgentRuntimes,
    Launch,
    LaunchError,
    RuntimeEnd,
    RuntimeSession,
    TranscriptEntry,
    message_entry,
)
from application.ports.transcripts import Transcripts, UnwrittenEntries
from domain.context.fork import told_entry
from domain.run.events import RunClaimed
from domain.run.state import Run
from domain.spawn.batch import speculative
from domain.values.refusals import LostClaim, Rejected, StopWanted, WrongStage

# If a runtime was killed, the reason for the kill determines the outcome.


def evaluate_end(
    end: RuntimeEnd,
    *,
    interrupted: str | None,
    stop_requested: bool,
    timed_out: bool,
    limit_seconds: int = 0,
) -> RuntimeEnd:
    """Return the end to record: the reported one, unless the runtime was killed."""
    if end.reason != "stopped":
        return end
    if interrupted is not None:
        text = f"interrupted: {interrupted}"
        return replace(end, outcome="error", reason="interrupted", error=text)
    if stop_requested:
        return replace(end, outcome="stopped", error=None)
    if timed_out:
        text = f"it took longer than its limit of {limit_seconds} s (runTimeoutSeconds)"
        return replace(end, outcome="timeout", reason="timeout", error=text)
    return end


ENDING_SECONDS_MAX = 15.0
YIELD_SECONDS_MAX = 5.0
"""Time for a yielded run to end by itself, so that none of its output is lost."""
KEY_SECONDS_MAX = 0.5
"""After this time, a session's key is read again before texts are stored under it."""

_log = logging.getLogger("spawnlog.executing")


def _new_signal() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def _give(signal: asyncio.Future[None]) -> None:
    if not signal.done():
        signal.set_result(None)


@dataclass(slots=True)
class _Execution:
    """A run that this process executes."""

    run: Run
    child: QueuedChild | None = None
    start: "PreparedStart | None" = None
    taken_at: float = field(default_factory=time.monotonic)
    session: RuntimeSession | None = None
    first_entry: UnwrittenEntries | None = None
    stop: asyncio.Future[None] = field(default_factory=_new_signal)
    yielded: asyncio.Future[None] = field(default_factory=_new_signal)
    interrupted: str | None = None
    unwritten: UnwrittenOutput | None = None
    writer: EntryWriter | None = None
    let_go: bool = False
    task: "asyncio.Task[None] | None" = None

    def is_abandoned(self) -> bool:
        """Return True if nothing may be recorded about the run any more."""
        return self.let_go

    def take_text_store(self) -> TextStore | None:
        """Return the text store of the start; None after the first call.

        None unless its key was recorded a moment ago and the agent answered at once: otherwise the
        texts may have been erased since.
        """
        start, self.start = self.start, None
        is_new = time.monotonic() - self.taken_at < KEY_SECONDS_MAX
        return start.text_store if start and is_new and self.unwritten is not None else None


@dataclass(frozen=True, slots=True)
class PreparedStart:
    """The start of a run, decided ahead of its claim, and the launch to execute once it is
    recorded.

    `text_store` has the key of the run's session.
    """

    launch: Launch
    text_store: TextStore
    run: Run
    decision: Decision[None]
    first_entry: UnwrittenEntries
    command_id: UUID

    def following(self, now: datetime) -> Following:
        """Return the append that records the start at `now`."""
        decision = with_first_entry(self.decision, self.first_entry, self.run, now)
        about = frozenset((self.run.run_id,))
        return Following(self.command_id, provenance_of(self.run), decision, about)


class RunExecutor:
    """Executor of the runs that this process holds."""

    def __init__(
        self,
        work: UnitOfWork,
        launching: LaunchComposer,
        runtimes: AgentRuntimes,
        transcripts: Transcripts,
        sealing: RunFinalizer,
    ) -> None:
        self._work = work
        self._launching = launching
        self._runtimes = runtimes
        self._transcripts = transcripts
        self._sealing = sealing
        self._held: dict[UUID, _Execution] = {}
        self._is_closed = False

    @property
    def held(self) -> frozenset[UUID]:
        """Return the ids of the runs in execution."""
        return frozenset(self._held)

    def take(
        self, run: Run, *, child: QueuedChild | None = None, start: PreparedStart | None = None
    ) -> None:
        """Execute a claimed run; no-op if it is already held.

        Args:
            child: Known facts of a run that was queued just now.
            start: The recorded start of a run that was started with its claim.
        """
        if run.run_id in self._held or self._is_closed:
            return
        execution = _Execution(run, child=child, start=start)
        self._held[run.run_id] = execution
        execution.task = asyncio.create_task(self._execute(execution), name=f"run {run.run_id}")

    def stop(self, run_id: UUID) -> None:
        """End a run whose stop request is recorded."""
        execution = self._held.get(run_id)
        if execution is not None:
            _give(execution.stop)

    def let_go(self, run_id: UUID) -> None:
        """Kill the child of a run whose end is recorded, if it is held here. Another server took
        the run over."""
        execution = self._held.get(run_id)
        if execution is not None:
            execution.let_go = True
            _give(execution.stop)

    def end_turn(self, run_id: UUID) -> None:
        """Give a run whose yield is recorded a moment to end by itself."""
        execution = self._held.get(run_id)
        if execution is not None:
            _give(execution.yielded)

    async def abandon_all(self) -> None:
        """Kill all children after the lease is lost, and record nothing more about their runs."""
        for execution in self._held.values():
            execution.let_go = True
            _give(execution.stop)
        await self._all_ended()

    def close(self) -> None:
        """Execute no more runs. Runs claimed later are left to other processes."""
        self._is_closed = True

    async def wait_idle(self, seconds: float) -> None:
        """Wait up to `seconds` for runs to end by themselves."""
        tasks = [execution.task for execution in self._held.values() if execution.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def interrupt_all(self, why: str) -> None:
        """Kill all children, and end their runs as interrupted."""
        for execution in self._held.values():
            execution.interrupted = why
            _give(execution.stop)
        await self._all_ended()

    async def _all_ended(self) -> None:
        tasks = [execution.task for execution in self._held.values() if execution.task is not None]
        await wait_or_cancel(tasks, ENDING_SECONDS_MAX)

    async def _execute(self, execution: _Execution) -> None:
        run_id = execution.run.run_id
        try:
            await answer_given()
            end = await self._begin_and_follow(execution)
            if not execution.let_go:
                await self._record_end(execution, end)
        except (LostClaim, WrongStage) as lost:
            _log.warning("run %s is no longer ours: %s", run_id, lost)
        except LogUnavailableError as away:
            _log.warning("run %s was released: %s", run_id, away)
        except Exception:
            _log.exception("run %s: execution failed", run_id)
            if not execution.let_go:
                await self._record_failure(execution)
        finally:
            if execution.session is not None:
                await execution.session.kill()
            self._held.pop(run_id, None)
            self._transcripts.flushes.remove(run_id)
            if execution.writer is not None:
                execution.writer.end()

    async def _record_failure(self, execution: _Execution) -> None:
        end = RuntimeEnd(
            outcome="error",
            reason="interrupted",
            error="interrupted: an internal error; the server's log has the details",
        )
        if execution.session is not None:
            await execution.session.kill()
        with contextlib.suppress(Exception):
            await self._record_end(execution, end)

    async def _begin_and_follow(self, execution: _Execution) -> RuntimeEnd:
        try:
            began = await self._begin(execution)
        except LaunchError as cannot:
            return RuntimeEnd(outcome="error", reason=cannot.reason, error=str(cannot))
        except MissingSecretError as missing:
            return RuntimeEnd(outcome="error", reason="not_executable", error=str(missing))
        except StopWanted:
            return RuntimeEnd(outcome="stopped", reason="stopped")
        if execution.let_go:
            return RuntimeEnd(outcome="error", reason="interrupted")
        return await self._follow(execution, began)

    async def prepare_start(self, child: QueuedChild, holder: str) -> PreparedStart | None:
        """Prepare the start of a run that is about to be queued and claimed by `holder`.

        Return None if something must be ready before that, or if the run cannot be launched.
        """
        if child.is_sharing:
            return None
        run = speculative(child.run, RunClaimed(holder=holder, attempt=1))
        launch = await self._launch_in_process(run, child)
        if launch is None:
            return None
        text_store, prepared = launch
        alone = DecisionContext({run.run_id: run}, {}, run.created_at)
        return PreparedStart(
            prepared.launch,
            text_store.empty_copy(),
            run,
            decide_commands(alone, (RunCommands(run, (prepared.start,), text_store),)),
            self._transcripts.unwritten((message_entry(prepared.launch.message),)),
            self._work.identities.event_id(),
        )

    async def _launch_in_process(
        self, run: Run, child: QueuedChild
    ) -> tuple[TextStore, PreparedLaunch] | None:
        runtime = await self._launching.runtime_of(run)
        if runtime is None or not self._runtimes.is_in_process(runtime):
            return None
        try:
            return await self._launching.prepare_with_texts(run, child, is_recorded=False)
        except (LaunchError, MissingSecretError):
            # After the claim, the start fails in the same way and that is recorded.
            return None

    async def _begin(self, execution: _Execution) -> RuntimeSession:
        run = execution.run
        if execution.start is not None:
            execution.first_entry = execution.start.first_entry
            execution.session = await self._runtimes.open(execution.start.launch)
            if not execution.let_go:
                execution.session.go()
            return execution.session
        text_store, prepared = await retry_while_unavailable(
            lambda: self._launching.prepare_with_texts(run, execution.child),
            given_up=execution.is_abandoned,
        )
        execution.child = None
        first_entry = execution.first_entry = self._transcripts.unwritten(
            (message_entry(prepared.launch.message),)
        )
        session = await self._runtimes.open(prepared.launch)
        execution.session = session
        appended = await retry_while_unavailable(
            lambda: self._work.record_start(run, prepared.start, text_store, first_entry),
            given_up=execution.is_abandoned,
        )
        execution.run = appended.runs[run.run_id]
        if not execution.let_go:
            session.go()
        return session

    async def _follow(self, execution: _Execution, session: RuntimeSession) -> RuntimeEnd:
        stopping, yielding = execution.stop, execution.yielded
        ready = None if stopping.done() or yielding.done() else session.ready_entries()
        if ready is not None:
            # The child has ended, so nothing can interrupt it and no task is needed.
            if not await self._write_ready(execution, ready):
                raise LostClaim(0, execution.run.epoch)
            return await session.end()
        execution.start = None
        plan = execution.run.plan
        limit = plan.run_timeout_seconds if plan else 0
        writing = asyncio.create_task(self._write_down(execution, session))
        waited: tuple[asyncio.Future[Any], ...] = (writing, stopping, yielding)
        try:
            done, _ = await asyncio.wait(
                waited,
                timeout=limit or None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if done == {yielding}:
                await asyncio.wait(
                    waited[:2],
                    timeout=YIELD_SECONDS_MAX,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if not writing.done():
                await session.kill()
            fenced = not await writing
            end = await session.end()
        finally:
            writing.cancel()
        if fenced:
            raise LostClaim(0, execution.run.epoch)
        return evaluate_end(
            end,
            interrupted=execution.interrupted,
            stop_requested=stopping.done(),
            # Only this timer decides; the loop's clock may be ahead of it.
            timed_out=not done,
            limit_seconds=limit,
        )

    async def _write_down(self, execution: _Execution, session: RuntimeSession) -> bool:
        """Write the child's entries. Return True if this process still holds the claim.

        If another process has taken the claim over, the child is killed. Output that is complete
        when the child ends is written with the end.
        """
        writer = self._writer_of(execution)
        if not await writer.write(session.entries()):
            await session.kill()
            return False
        self._note_unwritten(execution, writer)
        return True

    async def _write_ready(self, execution: _Execution, entries: Sequence[TranscriptEntry]) -> bool:
        writer = self._writer_of(execution)
        is_ours = await writer.write_ready(entries)
        self._note_unwritten(execution, writer)
        return is_ours

    def _note_unwritten(self, execution: _Execution, writer: EntryWriter) -> None:
        if writer.unwritten is not None:
            assert execution.first_entry is not None
            execution.unwritten = UnwrittenOutput(execution.first_entry, writer.unwritten)

    def _writer_of(self, execution: _Execution) -> EntryWriter:
        """Return a writer for the entries after the message, which the start has written."""
        run, transcripts = execution.run, self._transcripts
        message_number = told_entry(run.fork)
        writer = EntryWriter(
            lambda first, entries: transcripts.append(run.run_id, run.epoch, first, entries),
            written=message_number,
            keeps_for_end=message_number == 1,
            given_up=execution.is_abandoned,
        )
        execution.writer = writer
        transcripts.flushes.add(run.run_id, writer.flush)
        return writer

    async def _record_end(self, execution: _Execution, end: RuntimeEnd) -> None:
        async def record() -> None:
            text_store = execution.take_text_store()
            await self._sealing.end(execution.run, end, execution.unwritten, text_store=text_store)

        try:
            await retry_while_unavailable(record, given_up=execution.is_abandoned)
        except (LostClaim, WrongStage):
            raise
        except Rejected as rejected:
            _log.warning("the end of %s is not recorded: %s", execution.run.run_id, rejected)
