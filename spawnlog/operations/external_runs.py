"""External runs: claimed, kept, told about and ended by whoever executes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from spawnlog.core.request import Request, path_of, sent_body

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from infrastructure.inbound.http.schemas.answers import (
        ClaimedAnswer,
        EndedAnswer,
        HeartbeatAnswer,
        ReportedAnswer,
    )
    from spawnlog.operations.bodies import EntryObject, UsageObject


def claim_run(
    run_id: str | UUID, executor: str, *, lease_seconds: float | None = None
) -> Request[ClaimedAnswer]:
    """Claim a run to execute it."""
    body = {"executor": executor, "leaseSeconds": lease_seconds}
    return _report("claimRun", run_id, "claim", body, "ClaimedAnswer")


def prolong_claim(
    run_id: str | UUID, epoch: int, *, lease_seconds: float | None = None
) -> Request[HeartbeatAnswer]:
    """Prolong a claim."""
    body = {"epoch": epoch, "leaseSeconds": lease_seconds}
    return _report("prolongClaim", run_id, "heartbeat", body, "HeartbeatAnswer")


def report_transcript(
    run_id: str | UUID, epoch: int, first: int, entries: Sequence[EntryObject]
) -> Request[ReportedAnswer]:
    """Report what the child said."""
    body = {"epoch": epoch, "first": first, "entries": entries}
    return _report("reportTranscript", run_id, "transcript", body, "ReportedAnswer")


def end_run(
    run_id: str | UUID,
    epoch: int,
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"],
    *,
    result: str | None = None,
    error: str | None = None,
    usage: Sequence[UsageObject] | None = None,
) -> Request[EndedAnswer]:
    """Report the end of a run."""
    body = {"epoch": epoch, "outcome": outcome, "result": result, "error": error, "usage": usage}
    return _report("endRun", run_id, "end", body, "EndedAnswer")


def _report(
    operation: str, run_id: str | UUID, what: str, body: Mapping[str, Any], answer: str
) -> Request[Any]:
    """A report needs no key: it may be sent again as it is."""
    return Request(
        operation=operation,
        method="POST",
        path=path_of("runs", run_id, what),
        content=sent_body(body),
        headers={"Content-Type": "application/json"},
        answers=(answer,),
        again=True,
    )
