"""External runs: claimed, reported and ended over HTTP by an executor outside this server.

The executor is the holder, under the name with which it claimed. Its lease is stored beside those
of the servers and only the executor renews it. The run does not depend on any server process: every
server answers from the record, and recovery ends runs whose lease has expired.
"""

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from application.coordination.coordination import Coordination
from application.execution.end import RunFinalizer
from application.execution.launch import LaunchComposer
from application.execution.written_extents import WrittenExtents
from application.log.envelope import SYSTEM, Actor
from application.log.event_log import Decision, DecisionContext, LaneQuery, LogUnavailableError
from application.log.unit_of_work import UnitOfWork, provenance_of, with_fresh_reads
from application.ports.configurations import MissingSecretError
from application.ports.credentials import REDACTED
from application.ports.identifiers import ChildTokens
from application.ports.runtimes import (
    Launch,
    LaunchError,
    RuntimeEnd,
    TranscriptEntry,
    message_entry,
)
from application.ports.transcripts import RecordedEntry, Transcripts
from domain.context.fork import told_entry
from domain.delivery.transcript import (
    LINE_BYTES_MAX,
    MessageEntry,
    ParsedEntry,
    ResultEntry,
    RuntimeReading,
    UsageEntry,
    usage_of_body,
)
from domain.run.commands import ClaimRun
from domain.run.decide import NOT_CLAIMED, decide
from domain.run.facts import EXTERNAL_LANE, RunOutcome
from domain.run.lifecycle import OVER
from domain.run.state import PAUSES, Run
from domain.values.json_text import compact_json
from domain.values.record import run_stream
from domain.values.refusals import LostClaim, NotYet, Rejected, StopWanted, WrongStage
from domain.values.text import replace_unstorable

HOLDER_PREFIX = "external:"
LEASE_SECONDS = 60
LEASE_SECONDS_MIN = 5
LEASE_SECONDS_MAX = 3_600
GRACE_SECONDS = 300
"""Time for an executor to report again if its lease expired while the server or its database was
away."""
REPORT_ENTRIES_MAX = 1_000
ENTRIES_MAX = 100_000
TRANSCRIPT_BYTES_MAX = 64 * 1024 * 1024
"""The same limit as for the output of a command."""
RESULT_BYTES_MAX = 1024 * 1024
UNCLAIMED_AT_ONCE_MAX = 200
REPORTED = "reported"
_PAGE_ENTRIES = 1_000
_CHANGES_TOO_FAST = "the run changes too fast; retry in a moment"
_log = logging.getLogger("spawnlog.external")


# Reasons to refuse a report.


class NotExternal(Rejected):
    """The run is executed by a server."""

    def __init__(self) -> None:
        super().__init__(
            "this run is executed by the server: only runs of an agent whose runtime is of type"
            ' "external" are claimed and reported'
        )


class NotOffered(Rejected):
    """The run is in preparation, or waits for other runs or a slot."""


class ClaimedElsewhere(Rejected):
    """Another executor has claimed the run."""

    def __init__(self) -> None:
        super().__init__("another executor has claimed this run; claim another run")


class ClaimOver(Rejected):
    """The caller's claim was replaced, or its lease has expired."""


class RunOver(Rejected):
    """The run has ended without this report."""

    def __init__(self, run: Run) -> None:
        how = "was refused" if run.stage == "refused" else f"has ended as {run.outcome}"
        why = f" ({run.end_reason})" if run.end_reason else ""
        super().__init__(f"the run {how}{why}: stop executing it; further reports are not recorded")


class TranscriptGap(Rejected):
    """A report leaves out earlier entries."""

    def __init__(self, following: int) -> None:
        super().__init__(f"expected entry {following} next; report from there")


class ReportTooLarge(Rejected):
    """The report exceeds the limits of a transcript or result."""


# Answers to an executor.


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A claimed run, with everything that the executor needs to execute it."""

    epoch: int
    launch: Launch
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Answer to a heartbeat.

    Attributes:
        stop: Why the executor must end the run; None if it continues. If set, the lease is not
            renewed, and the rest of it is the time to report the end.
        by: Who requested the stop.
        reason: The reason given with it.
    """

    lease_seconds: float
    stop: Literal["stopped", "steered", "yielded"] | None = None
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedEnd:
    """The end of a run as its executor reports it.

    Attributes:
        result: The result; None to take the last one in the transcript.
        usages: Token usages; None to take those in the transcript.
    """

    outcome: RunOutcome
    result: str | None = None
    error: str | None = None
    usages: tuple[UsageEntry, ...] | None = None


class ExternalRuns:
    """Service for the claims and reports of executors. Any server can answer them."""

    def __init__(
        self,
        work: UnitOfWork,
        coordination: Coordination,
        launching: LaunchComposer,
        transcripts: Transcripts,
        sealing: RunFinalizer,
        tokens: ChildTokens,
    ) -> None:
        self._work = work
        self._coordination = coordination
        self._launching = launching
        self._transcripts = transcripts
        self._sealing = sealing
        self._tokens = tokens
        self._written = WrittenExtents(transcripts)

    async def claim(
        self, run_id: UUID, executor: str, lease_seconds: float, actor: Actor
    ) -> ClaimedRun:
        """Claim the run for an executor and record its start.

        Idempotent: while its lease is valid, the same executor gets the same answer again.

        Raises:
            NotExternal: If a server executes the run.
            NotOffered: If the run cannot be claimed yet.
            ClaimedElsewhere: If another executor has it.
            ClaimOver: If the run's time limit is over.
            RunOver: If it has ended.
        """
        return await with_fresh_reads(
            lambda _: self._try_claim(run_id, executor, lease_seconds, actor),
            _CHANGES_TOO_FAST,
            conflicts=(LostClaim, WrongStage),
        )

    async def _try_claim(
        self, run_id: UUID, executor: str, lease_seconds: float, actor: Actor
    ) -> ClaimedRun:
        run = await self._external(run_id)
        if run.stage in OVER:
            raise RunOver(run)
        if run.stage not in ("queued", "started"):
            raise NotOffered(
                "the run is in preparation or waits for other runs; claim it in a moment"
            )
        if run.holder is None:
            run = await self._take(run, executor, lease_seconds, actor)
        elif not await self._is_holder(run, executor, actor):
            raise ClaimedElsewhere
        elif not _is_to_end(run):
            await self._renew_claim_lease(run, lease_seconds)
        launch = await self._start(run, actor) if run.stage == "queued" else None
        run = await self._work.run(run_id)
        if launch is None:
            launch = await self._launch_again(run)
        if not _is_to_end(run):
            await self._renew_claim_lease(run, lease_seconds)
        return ClaimedRun(run.epoch, launch, lease_seconds)

    async def _is_holder(self, run: Run, executor: str, actor: Actor) -> bool:
        """Return True if this executor made the claim: same name, and same token as recorded.

        The name alone is not enough: it is no secret, but the answer to a claim is.
        """
        assert run.holder is not None
        if not run.holder.startswith(f"{HOLDER_PREFIX}{executor}:"):
            return False
        claimed = await self._work.log.event_of(run_stream(run.run_id), run.epoch)
        return claimed is not None and claimed.envelope.provenance.actor == actor

    async def _external(self, run_id: UUID) -> Run:
        run = await self._work.run(run_id)
        if run.plan is not None and run.plan.lane != EXTERNAL_LANE:
            raise NotExternal
        return run

    async def _take(self, run: Run, executor: str, lease_seconds: float, actor: Actor) -> Run:
        """Claim the run from its lane if a slot is free. The lease is created before the claim that
        needs it."""
        limit = run.plan.run_timeout_seconds if run.plan is not None else 0
        lease_seconds = min(lease_seconds, limit) if limit else lease_seconds
        holder = f"{HOLDER_PREFIX}{executor}:{self._work.identities.event_id().hex[-8:]}"
        await self._coordination.renew(holder, url=None, lease_seconds=lease_seconds)
        configuration = self._work.configurations.current().configuration
        width = configuration.subagent_defaults.max_concurrent
        assert run.lane is not None
        assert run.lane_depth is not None

        def take(world: DecisionContext) -> Decision[None]:
            assert world.lane is not None
            command = ClaimRun(holder=holder, lane_width=width, lane_running=world.lane.running)
            events = decide(world.runs[run.run_id], command)
            return Decision(None, [(run_stream(run.run_id), event) for event in events])

        try:
            appended = await self._work.submit(
                (run_stream(run.run_id),),
                take,
                provenance_of(run, actor),
                lane=LaneQuery(run.lane, run.lane_depth, 1),
            )
        except NotYet as full:
            await self._coordination.forget(holder)
            raise NotOffered(f"{full}; claim it when another run has ended") from None
        return appended.runs[run.run_id]

    async def _start(self, run: Run, actor: Actor) -> Launch:
        """Record the start of the run and return its launch. End the run if it cannot be
        launched."""
        try:
            text_store, prepared = await self._launching.prepare_with_texts(run)
            first_entry = self._transcripts.unwritten((message_entry(prepared.launch.message),))
            await self._work.record_start(run, prepared.start, text_store, first_entry, actor=actor)
        except (LaunchError, MissingSecretError) as cannot:
            raise RunOver(await self._sealing.end(run, _not_launched(cannot))) from None
        except StopWanted:
            end = RuntimeEnd(outcome="stopped", reason="stopped")
            raise RunOver(await self._sealing.end(run, end)) from None
        return prepared.launch

    async def _launch_again(self, run: Run) -> Launch:
        """Return the launch that the executor was given, or would have been given."""
        try:
            _, prepared = await self._launching.prepare_with_texts(run)
        except (LaunchError, MissingSecretError) as cannot:
            # The run is executing, so a launch that cannot be repeated does not end it.
            text = f"the input of the run cannot be returned again: {cannot}; report its end"
            raise NotOffered(text) from None
        assert run.system_prompt is not None
        assert run.message is not None
        texts = await self._work.contents.texts([run.system_prompt, run.message])
        return replace(
            prepared.launch,
            system_prompt=texts.get(run.system_prompt.id, prepared.launch.system_prompt),
            message=texts.get(run.message.id, prepared.launch.message),
        )

    async def heartbeat(self, run_id: UUID, epoch: int, lease_seconds: float) -> Heartbeat:
        """Renew the lease, or return why it is not renewed.

        Raises:
            ClaimOver: If the claim was replaced, or the run's time limit is over.
            RunOver: If the run has ended.
        """
        run = await self._claimed(run_id, epoch)
        stop: Literal["stopped", "steered", "yielded"] | None = None
        by, reason = run.stop_requested_by, None
        if run.stop_requested_by is not None:
            stop = "stopped"
            if run.stop_reason is not None:
                reason = await self._work.contents.text(run.stop_reason)
        elif run.is_steered:
            stop, by = "steered", run.steered_by
        elif run.yielded_by is not None:
            stop, by = "yielded", run.yielded_by
        if stop is None:
            await self._renew_claim_lease(run, lease_seconds)
        return Heartbeat(lease_seconds, stop, by, reason)

    async def report(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> int:
        """Write entries to the transcript. Entries that exist already are skipped.

        Args:
            first: Number of the first of these entries among all reported entries, from 1.

        Returns:
            The number of the next entry to report.

        Raises:
            ClaimOver: If the claim was replaced.
            RunOver: If the run has ended.
            TranscriptGap: If earlier entries are missing.
            ReportTooLarge: If the limits of a transcript are exceeded.
        """
        run = await self._claimed(run_id, epoch)
        message_number = told_entry(run.fork)
        written = await self._written.of(run_id, epoch)
        reported = max(written.last - message_number, 0)
        if first > reported + 1:
            raise TranscriptGap(reported + 1)
        fresh = [self._masked(run, entry) for entry in entries[reported + 1 - first :]]
        _require_room(written.bytes, written.last, fresh)
        if fresh and not await self._transcripts.append(
            run_id, epoch, message_number + reported + 1, fresh
        ):
            raise await self._why_not(run_id, epoch)
        return reported + len(fresh) + 1

    async def end(self, run_id: UUID, epoch: int, end: ReportedEnd, actor: Actor) -> Run:
        """End the run with the outcome that its executor reports. Idempotent.

        Raises:
            ClaimOver: If the claim was replaced.
            RunOver: If the run has ended otherwise.
            ReportTooLarge: If the result is too long.
        """
        return await with_fresh_reads(
            lambda _: self._try_end(run_id, epoch, end, actor),
            _CHANGES_TOO_FAST,
            conflicts=(LostClaim, WrongStage),
        )

    async def _try_end(self, run_id: UUID, epoch: int, end: ReportedEnd, actor: Actor) -> Run:
        run = await self._external(run_id)
        if run.stage in OVER and run.epoch == epoch and await self._is_reported(run):
            return run
        run = await self._claimed(run_id, epoch)
        reading = await self._read(run)
        result = end.result if (end.result or "").strip() else reading.result
        if len((result or "").encode()) > RESULT_BYTES_MAX:
            raise ReportTooLarge(f"a result may have at most {RESULT_BYTES_MAX} bytes")
        # The outcome `stopped` requires a recorded stop request.
        was_stopped = end.outcome != "stopped" or run.stop_requested_by is not None
        outcome: RunOutcome = end.outcome if was_stopped or _is_to_end(run) else "error"
        reported = RuntimeEnd(
            outcome=outcome,
            reason=REPORTED,
            result=self._without_token(run, result) if result else None,
            error=self._without_token(run, end.error) if end.error else None,
            usages=reading.usages if end.usages is None else self._usages(run, end.usages),
        )
        ended = await self._sealing.end(run, reported, actor=actor)
        await self._forget_lease(run)
        return ended

    async def _is_reported(self, run: Run) -> bool:
        """Return True if the executor ended the run.

        The reason alone is ambiguous, because a steered run has the same reason when the server
        gives it up. Then the actor is the system.
        """
        if run.end_reason not in (REPORTED, *PAUSES):
            return False
        ended = await self._work.log.first("RunEnded", run.run_id)
        return ended is not None and ended.envelope.provenance.actor != SYSTEM

    async def _forget_lease(self, run: Run) -> None:
        assert run.holder is not None
        with contextlib.suppress(LogUnavailableError):
            await self._coordination.forget(run.holder)

    async def _claimed(self, run_id: UUID, epoch: int) -> Run:
        """Return the started run if `epoch` is its current claim."""
        run = await self._external(run_id)
        if run.stage in OVER:
            raise RunOver(run)
        if run.holder is None or not run.holder.startswith(HOLDER_PREFIX):
            raise ClaimOver("this run is not claimed; claim it first")
        if run.epoch != epoch:
            raise ClaimOver(f"claim {epoch} is not the current claim; stop executing this run")
        if run.stage != "started":
            raise ClaimOver("the claim is not completed; repeat it")
        return run

    async def _why_not(self, run_id: UUID, epoch: int) -> Rejected:
        try:
            await self._claimed(run_id, epoch)
        except Rejected as rejected:
            return rejected
        return ClaimOver(f"claim {epoch} was replaced; stop executing this run")

    async def _renew_claim_lease(self, run: Run, lease_seconds: float) -> None:
        """Extend the lease, capped by the run timeout.

        An expired lease is renewed too: until the end is recorded, no other executor has the run.
        """
        assert run.holder is not None
        renewed = await self._coordination.renew(
            run.holder,
            url=None,
            lease_seconds=lease_seconds,
            not_after=deadline_of(run),
        )
        if not renewed:
            raise ClaimOver("the run has reached its time limit; stop executing it")

    async def _read(self, run: Run) -> RuntimeReading:
        reading, after = RuntimeReading(), told_entry(run.fork)
        while page := await self._transcripts.read(
            run.run_id, after=after, limit=_PAGE_ENTRIES, kinds=("message", "usage", "result")
        ):
            for entry in page:
                reading = reading.after(_parsed(entry))
            after = page[-1].sequence
        return reading

    def _masked(self, run: Run, entry: TranscriptEntry) -> TranscriptEntry:
        body = {
            name: self._without_token(run, value) if isinstance(value, str) else value
            for name, value in entry.body.items()
        }
        return TranscriptEntry(entry.kind, body)

    def _usages(self, run: Run, usages: Sequence[UsageEntry]) -> tuple[UsageEntry, ...]:
        return tuple(
            replace(usage, model=self._without_token(run, usage.model)) if usage.model else usage
            for usage in usages
        )

    def _without_token(self, run: Run, text: str) -> str:
        """Return the text without the child token, the only secret that an executor is given."""
        return replace_unstorable(text).replace(self._tokens.mint(run.run_id, run.epoch), REDACTED)

    async def end_unclaimed(self) -> int:
        """End runs that waited too long for an executor. Return the number of runs ended."""
        settings = self._work.configurations.current().configuration.spawnlog
        seconds = settings.external_claim_seconds
        ended = 0
        for run_id in await self._coordination.unclaimed_runs(
            seconds=seconds, limit=UNCLAIMED_AT_ONCE_MAX
        ):
            end = RuntimeEnd(
                outcome="error",
                reason=NOT_CLAIMED,
                error=(
                    f"no executor claimed it within {seconds:g} s (spawnlog.externalClaimSeconds)"
                ),
            )
            try:
                await self._sealing.end(await self._work.run(run_id), end)
            except Rejected as claimed:
                _log.info("unclaimed run %s is not ended: %s", run_id, claimed)
            except LogUnavailableError:
                raise
            except Exception:
                # Continue with the other runs.
                _log.exception("unclaimed run %s cannot be ended", run_id)
            else:
                ended += 1
        return ended

    async def end_lost(
        self, run: Run, lease_until: datetime | None, *, could_be_heard: bool = True
    ) -> None:
        """End a run whose lease expired at `lease_until`.

        If this server could not have received a renewal by then, give the executor `GRACE_SECONDS`
        first.
        """
        deadline = deadline_of(run)
        is_too_long = deadline is not None and lease_until is not None and lease_until >= deadline
        if not could_be_heard and not is_too_long:
            assert run.holder is not None
            await self._coordination.renew(
                run.holder,
                url=None,
                lease_seconds=GRACE_SECONDS,
                not_after=deadline,
            )
            return
        if is_too_long:
            assert run.plan is not None
            limit = run.plan.run_timeout_seconds
            text = f"it took longer than its limit of {limit} s (runTimeoutSeconds)"
            end = RuntimeEnd(outcome="timeout", reason="timeout", error=text)
        else:
            text = f"interrupted: its executor stopped sending heartbeats ({run.holder})"
            end = RuntimeEnd(outcome="error", reason="interrupted", error=text)
        if run.started_at is None:
            await self._sealing.end(run, end)
        else:
            # The length of the lease is unknown, and so is the time of the last heartbeat.
            reached = lease_until if is_too_long else None
            await self._sealing.end_for_lost_holder(
                run, end, renewed_at=reached, lease_until=lease_until
            )
        await self._forget_lease(run)


def _not_launched(cannot: LaunchError | MissingSecretError) -> RuntimeEnd:
    reason = cannot.reason if isinstance(cannot, LaunchError) else "not_executable"
    return RuntimeEnd(outcome="error", reason=reason, error=str(cannot))


def deadline_of(run: Run) -> datetime | None:
    """Return when the run's timeout is reached; None without a timeout, or before the start."""
    limit = run.plan.run_timeout_seconds if run.plan is not None else 0
    if run.started_at is None or not limit:
        return None
    return run.started_at + timedelta(seconds=limit)


def _require_room(size: int, count: int, entries: Sequence[TranscriptEntry]) -> None:
    for entry in entries:
        length = len(compact_json(dict(entry.body)).encode(errors="replace"))
        if length > LINE_BYTES_MAX:
            raise ReportTooLarge(f"an entry may have at most {LINE_BYTES_MAX} bytes; split it")
        size += length
    if size > TRANSCRIPT_BYTES_MAX or count + len(entries) > ENTRIES_MAX:
        raise ReportTooLarge(
            f"a transcript may have at most {ENTRIES_MAX} entries and {TRANSCRIPT_BYTES_MAX}"
            " bytes; report the end"
        )


def _parsed(entry: RecordedEntry) -> ParsedEntry:
    body = entry.body
    if entry.kind == "result":
        return ResultEntry(str(body["text"]))
    if entry.kind == "message":
        says = body.get("role") == "assistant"
        return MessageEntry("assistant" if says else "user", str(body["text"]))
    return usage_of_body(body)


def _is_to_end(run: Run) -> bool:
    """Return True if the executor must end the run, so that its lease is not renewed."""
    return run.stop_requested_by is not None or run.is_steered or run.yielded_by is not None
