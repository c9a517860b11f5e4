"""Runs that somebody else executes: claimed from outside, reported from outside, ended here.

No process of this server belongs to such a run, so none of them takes it along when it ends. The
holder is the executor, by the name under which it claimed: its lease stands beside those of the
servers, and is prolonged by its word alone. Whatever server is asked goes by the record; recovery
ends what is not prolonged any more.
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
from application.log.event_log import Decision, LaneQuery, LogUnavailable, World
from application.log.unit_of_work import UnitOfWork, provenance_of, with_fresh_reads
from application.ports.configurations import SecretMissing
from application.ports.credentials import REDACTED
from application.ports.identifiers import ChildTokens
from application.ports.runtimes import (
    CannotLaunch,
    Launch,
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
"""So long an executor has to be heard again by a server that was away, or had no database, when its
lease ran out."""
REPORT_ENTRIES_MAX = 1_000
ENTRIES_MAX = 100_000
TRANSCRIPT_BYTES_MAX = 64 * 1024 * 1024
"""As much as all output of a command may be."""
RESULT_BYTES_MAX = 1024 * 1024
UNCLAIMED_AT_ONCE_MAX = 200
REPORTED = "reported"
_PAGE_ENTRIES = 1_000
_CHANGES_TOO_FAST = "the run changes too fast; ask again in a moment"
_log = logging.getLogger("spawnlog.external")


# Why a report is not taken.


class NotExternal(Rejected):
    """The run is executed by a server."""

    def __init__(self) -> None:
        super().__init__(
            "this run is executed by the server: only runs of an agent whose runtime is of type"
            ' "external" are claimed and reported'
        )


class NotOffered(Rejected):
    """The run waits: for its preparation, for other runs, or for a place in its lane."""


class ClaimedElsewhere(Rejected):
    """Another executor has the run."""

    def __init__(self) -> None:
        super().__init__("another executor has claimed this run; take another one")


class ClaimOver(Rejected):
    """The claim of whoever reports is not the present one, or its lease is over."""


class RunOver(Rejected):
    """The run has ended without what is reported now."""

    def __init__(self, run: Run) -> None:
        how = "was refused" if run.stage == "refused" else f"has ended as {run.outcome}"
        why = f" ({run.end_reason})" if run.end_reason else ""
        super().__init__(f"the run {how}{why}: stop executing it, nothing more of it is recorded")


class TranscriptGap(Rejected):
    """Entries before those that are reported are missing."""

    def __init__(self, following: int) -> None:
        super().__init__(f"entry {following} is the next one to be reported; send from there on")


class ReportTooLarge(Rejected):
    """More is reported of the run than is kept of one."""


# What an executor is told.


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run in the hands of an executor, and everything that it needs to execute it."""

    epoch: int
    launch: Launch
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Whether the executor is to go on. With a `stop` the lease is not prolonged: what is left of
    it is the time to report the end. `reason` is what was said with it."""

    lease_seconds: float
    stop: Literal["stopped", "steered", "yielded"] | None = None
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedEnd:
    """What came of a run, by its executor. `result` None: what the transcript says last; `usages`
    None: what the transcript says."""

    outcome: RunOutcome
    result: str | None = None
    error: str | None = None
    usages: tuple[UsageEntry, ...] | None = None


class ExternalRuns:
    """Takes claims and reports, at whichever server they arrive."""

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

    # Claims.

    async def claim(
        self, run_id: UUID, executor: str, lease_seconds: float, actor: Actor
    ) -> ClaimedRun:
        """Put the run into the hands of an executor and record its start. The same executor is
        given the same again, for as long as its lease holds.

        Raises `NotExternal`, `NotOffered`, `ClaimedElsewhere`, `ClaimOver`, `RunOver`.
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
            raise NotOffered("the run is prepared, or waits for others; claim it in a moment")
        if run.holder is None:
            run = await self._take(run, executor, lease_seconds, actor)
        elif not await self._is_holder(run, executor, actor):
            raise ClaimedElsewhere
        elif not _is_to_end(run):
            await self._prolong(run, lease_seconds)
        launch = await self._start(run, actor) if run.stage == "queued" else None
        run = await self._work.run(run_id)
        if launch is None:
            launch = await self._launch_again(run)
        if not _is_to_end(run):
            await self._prolong(run, lease_seconds)
        return ClaimedRun(run.epoch, launch, lease_seconds)

    async def _is_holder(self, run: Run, executor: str, actor: Actor) -> bool:
        """Whether this one has claimed it: by its name, and with the token that did, which is on
        record. A name is no secret, and what a claim is answered is one."""
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
        """Out of the lane, when there is room. The lease is there before what needs it."""
        limit = run.plan.run_timeout_seconds if run.plan is not None else 0
        lease_seconds = min(lease_seconds, limit) if limit else lease_seconds
        holder = f"{HOLDER_PREFIX}{executor}:{self._work.identities.event_id().hex[-8:]}"
        await self._coordination.renew(holder, url=None, lease_seconds=lease_seconds)
        configuration = self._work.configurations.current().configuration
        width = configuration.subagent_defaults.max_concurrent
        assert run.lane is not None
        assert run.lane_depth is not None

        def take(world: World) -> Decision[None]:
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
            raise NotOffered(f"{full}; claim it when another one has ended") from None
        return appended.runs[run.run_id]

    async def _start(self, run: Run, actor: Actor) -> Launch:
        """Its start, with what it is given; what cannot be given is the end of it."""
        try:
            text_store, prepared = await self._launching.prepare_with_texts(run)
            told = self._transcripts.unwritten((message_entry(prepared.launch.message),))
            await self._work.record_start(run, prepared.start, text_store, told, actor=actor)
        except (CannotLaunch, SecretMissing) as cannot:
            raise RunOver(await self._sealing.end(run, _not_launched(cannot))) from None
        except StopWanted:
            end = RuntimeEnd(outcome="stopped", reason="stopped")
            raise RunOver(await self._sealing.end(run, end)) from None
        return prepared.launch

    async def _launch_again(self, run: Run) -> Launch:
        """What the executor was given, or would have been if it had been reached."""
        try:
            _, prepared = await self._launching.prepare_with_texts(run)
        except (CannotLaunch, SecretMissing) as cannot:
            # It is at work: what cannot be given again is no reason to end it.
            text = f"what the run was given cannot be given again: {cannot}; report its end"
            raise NotOffered(text) from None
        assert run.system_prompt is not None
        assert run.message is not None
        texts = await self._work.contents.texts([run.system_prompt, run.message])
        return replace(
            prepared.launch,
            system_prompt=texts.get(run.system_prompt.id, prepared.launch.system_prompt),
            message=texts.get(run.message.id, prepared.launch.message),
        )

    # Reports.

    async def heartbeat(self, run_id: UUID, epoch: int, lease_seconds: float) -> Heartbeat:
        """Prolong the lease, or say why not. Raises `ClaimOver`, `RunOver`."""
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
            await self._prolong(run, lease_seconds)
        return Heartbeat(lease_seconds, stop, by, reason)

    async def report(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> int:
        """Write entries down; `first` is the number of the first one among all that were reported,
        from 1 on. Those that are there already stay as they are. Gives the number of the next one.

        Raises `ClaimOver`, `RunOver`, `TranscriptGap`, `ReportTooLarge`.
        """
        run = await self._claimed(run_id, epoch)
        told = told_entry(run.fork)
        written = await self._written.of(run_id, epoch)
        reported = max(written.last - told, 0)
        if first > reported + 1:
            raise TranscriptGap(reported + 1)
        fresh = [self._masked(run, one) for one in entries[reported + 1 - first :]]
        _must_have_room(written.bytes, written.last, fresh)
        if fresh and not await self._transcripts.append(run_id, epoch, told + reported + 1, fresh):
            raise await self._why_not(run_id, epoch)
        return reported + len(fresh) + 1

    async def end(self, run_id: UUID, epoch: int, end: ReportedEnd, actor: Actor) -> Run:
        """The run is over, as its executor says; what was said before is said again.

        Raises `ClaimOver`, `RunOver`, `ReportTooLarge`.
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
            raise ReportTooLarge(f"a result may have {RESULT_BYTES_MAX} bytes at most")
        # Stopped is what somebody wanted who is on record.
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
        """Whether its executor ended it. The reason does not say so: a run that was steered ends as
        that, given up or not; but what is given up is ended on nobody's word."""
        if run.end_reason not in (REPORTED, *PAUSES):
            return False
        ended = await self._work.log.first("RunEnded", run.run_id)
        return ended is not None and ended.envelope.provenance.actor != SYSTEM

    async def _forget_lease(self, run: Run) -> None:
        assert run.holder is not None
        with contextlib.suppress(LogUnavailable):
            await self._coordination.forget(run.holder)

    async def _claimed(self, run_id: UUID, epoch: int) -> Run:
        """The run, in the hands of whoever has this claim."""
        run = await self._external(run_id)
        if run.stage in OVER:
            raise RunOver(run)
        if run.holder is None or not run.holder.startswith(HOLDER_PREFIX):
            raise ClaimOver("nobody has claimed this run; claim it first")
        if run.epoch != epoch:
            raise ClaimOver(f"claim {epoch} is not the present one; stop executing this run")
        if run.stage != "started":
            raise ClaimOver("the claim was not answered yet; repeat it")
        return run

    async def _why_not(self, run_id: UUID, epoch: int) -> Rejected:
        try:
            await self._claimed(run_id, epoch)
        except Rejected as rejected:
            return rejected
        return ClaimOver(f"claim {epoch} was replaced; stop executing this run")

    async def _prolong(self, run: Run, lease_seconds: float) -> None:
        """Never beyond the run's own limit: what is over then has taken too long. A lease that is
        over is had back: until the end is on record nobody else has the run."""
        assert run.holder is not None
        renewed = await self._coordination.renew(
            run.holder,
            url=None,
            lease_seconds=lease_seconds,
            not_after=deadline_of(run),
        )
        if not renewed:
            raise ClaimOver("the time limit of the run is over; stop executing it")

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
            replace(one, model=self._without_token(run, one.model)) if one.model else one
            for one in usages
        )

    def _without_token(self, run: Run, text: str) -> str:
        """The one secret that an executor is given stays out of what it says."""
        return replace_unstorable(text).replace(self._tokens.mint(run.run_id, run.epoch), REDACTED)

    # What nobody came for.

    async def end_unclaimed(self) -> int:
        """End runs that have waited too long for an executor; gives how many."""
        settings = self._work.configurations.current().configuration.spawnlog
        seconds = settings.external_claim_seconds
        ended = 0
        for run_id in await self._coordination.unclaimed_runs(
            seconds=seconds, limit=UNCLAIMED_AT_ONCE_MAX
        ):
            end = RuntimeEnd(
                outcome="error",
                reason=NOT_CLAIMED,
                error=f"nobody claimed it within {seconds:g} s (spawnlog.externalClaimSeconds)",
            )
            try:
                await self._sealing.end(await self._work.run(run_id), end)
            except Rejected as claimed:
                _log.info("run %s is not given up: %s", run_id, claimed)
            except LogUnavailable:
                raise
            except Exception:
                # Those behind it are not held up by one that cannot be ended.
                _log.exception("run %s cannot be given up", run_id)
            else:
                ended += 1
        return ended

    async def end_lost(
        self, run: Run, lease_until: datetime | None, *, could_be_heard: bool = True
    ) -> None:
        """End a run whose executor did not prolong its lease, which was over at `lease_until`; when
        nobody here could have heard it by then, it has `GRACE_SECONDS` to be heard."""
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
            text = f"interrupted: its executor gave no sign of life any more ({run.holder})"
            end = RuntimeEnd(outcome="error", reason="interrupted", error=text)
        if run.started_at is None:
            await self._sealing.end(run, end)
        else:
            # How long a lease was is not known any more: its time ends with its last entry.
            reached = lease_until if end.outcome == "timeout" else None
            await self._sealing.end_in_its_stead(run, end, reached)
        await self._forget_lease(run)


def _not_launched(cannot: CannotLaunch | SecretMissing) -> RuntimeEnd:
    reason = cannot.reason if isinstance(cannot, CannotLaunch) else "not_executable"
    return RuntimeEnd(outcome="error", reason=reason, error=str(cannot))


def deadline_of(run: Run) -> datetime | None:
    """When the run has taken as long as it may; None without a limit, and before it started."""
    limit = run.plan.run_timeout_seconds if run.plan is not None else 0
    if run.started_at is None or not limit:
        return None
    return run.started_at + timedelta(seconds=limit)


def _must_have_room(size: int, count: int, entries: Sequence[TranscriptEntry]) -> None:
    for entry in entries:
        length = len(compact_json(dict(entry.body)).encode(errors="replace"))
        if length > LINE_BYTES_MAX:
            raise ReportTooLarge(f"an entry may have {LINE_BYTES_MAX} bytes at most; split it")
        size += length
    if size > TRANSCRIPT_BYTES_MAX or count + len(entries) > ENTRIES_MAX:
        raise ReportTooLarge(
            f"a transcript may have {ENTRIES_MAX} entries and {TRANSCRIPT_BYTES_MAX} bytes at most;"
            " report the end"
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
    """Whether its executor is to end it: its lease is not prolonged then."""
    return run.stop_requested_by is not None or run.is_steered or run.yielded_by is not None
