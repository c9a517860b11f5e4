"""Decisions while a run waits in its lane and executes."""

from domain.run.commands import (
    ClaimRun,
    EndRun,
    StartRun,
    StopRun,
)
from domain.run.dedupe import dedupe_key
from domain.run.events import (
    RunClaimed,
    RunEnded,
    RunEvent,
    RunStarted,
    StopRequested,
)
from domain.run.holding import must_hold
from domain.run.lifecycle import OVER, PREPARING
from domain.run.request_events import SpawnRefused
from domain.run.state import Run
from domain.values.refusals import LostClaim, NotYet, StopWanted, WrongStage


def claim_run(run: Run, command: ClaimRun) -> tuple[RunEvent, ...]:
    """Out of the lane, when there is room; or over from a claim that lost its holder."""
    if run.stage != "queued":
        raise WrongStage("claim the run", run.stage)
    if run.holder is not None and run.epoch != command.lost_epoch:
        raise LostClaim(run.epoch, command.lost_epoch or 0)
    takes_over = run.holder is not None
    if not takes_over and command.lane_running >= command.lane_width:
        raise NotYet(f"the lane is full ({command.lane_running}/{command.lane_width})")
    return (
        RunClaimed(
            holder=command.holder,
            attempt=run.attempt + 1 if takes_over else 1,
            lane_width=None if takes_over else command.lane_width,
            lane_running=None if takes_over else command.lane_running,
        ),
    )


def start_run(run: Run, command: StartRun) -> tuple[RunEvent, ...]:
    """The child executes once this is recorded."""
    must_hold(run, command.epoch)
    if run.holder is None:
        raise WrongStage("start the run", "not claimed")
    if run.stop_requested_by is not None:
        raise StopWanted(f"stopped by {run.stop_requested_by} before it started")
    return (
        RunStarted(
            runtime=command.runtime,
            system_prompt=command.system_prompt,
            message=command.message,
            parts=command.parts,
            shared_context_position=command.shared_context_position,
            shared_context=command.shared_context,
        ),
    )


def stop_run(run: Run, command: StopRun) -> tuple[RunEvent, ...]:
    """At once while nothing executes; else the holder is told."""
    if run.stage in OVER:
        return ()
    if run.stage in PREPARING:
        return (
            SpawnRefused(
                rule="stopped",
                status="error",
                step=run.stage,
                text=command.text,
                announcement=command.announcement,
                dedupe_key=dedupe_key(run) if command.announcement else None,
            ),
        )
    if run.holder is None or run.stage == "session-created":
        # Until it is claimed from its lane nobody executes it: there is nobody to ask.
        return (
            RunEnded(
                outcome="stopped",
                reason="stopped",
                error=command.reason,
                stopped_by=command.by,
                stopped_by_requester=command.by_requester,
            ),
        )
    if run.stop_requested_by is not None:
        return ()
    return (StopRequested(by=command.by, by_requester=command.by_requester, reason=command.reason),)


def end_run(run: Run, command: EndRun) -> tuple[RunEvent, ...]:
    """What came of the run."""
    must_hold(run, command.epoch)
    if run.holder is None:
        raise WrongStage("end the run", "not claimed")
    outcome = command.outcome
    if run.stop_requested_by is not None and command.reason == "interrupted":
        # Nobody is left to say how it ended, but it had been told to stop.
        outcome = "stopped"
    return (
        RunEnded(
            outcome=outcome,
            reason=command.reason,
            exit_code=command.exit_code,
            signal=command.signal,
            result=command.result,
            error=command.error,
            usage=command.usage,
            transcript=command.transcript,
            pending_descendants=command.pending_descendants,
        ),
    )
