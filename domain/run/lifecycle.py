"""The life of a run, as a table. Every rule of order is here; the table only ever grows.

A cell says: at this stage this event may be recorded, and this stage follows. What is not in the
table may never be recorded, and a history that contains it is corrupt.
"""

from typing import Literal

from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    ArchiveScheduled,
    ContinuationPlanned,
    DependencyMet,
    DescendantsSettled,
    HookFailed,
    HookParked,
    HookTold,
    MessageReceived,
    PreparationResumed,
    PreparationStarted,
    RunAnnounced,
    RunArchived,
    RunClaimed,
    RunContinued,
    RunEnded,
    RunEvent,
    RunQueued,
    RunStarted,
    RunWaits,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    SpawnRequested,
    StepBegun,
    StepTaken,
    StepUndoFailed,
    StepUndone,
    StopRequested,
)
from domain.values.refusals import CorruptHistory

RunStage = Literal[
    "unborn",
    "requested",
    "scripts-resolved",
    "overridden",
    "session-created",
    "queued",
    "started",
    "ended",
    "announced",
    "archived",
    "refused",
]

LIFECYCLE: dict[RunStage, dict[type[RunEvent], RunStage]] = {
    "unborn": {SpawnRequested: "requested", MessageReceived: "requested"},
    "requested": {
        PreparationResumed: "requested",
        ScriptsResolved: "scripts-resolved",
        ContinuationPlanned: "session-created",
        SpawnRefused: "refused",
    },
    "scripts-resolved": {
        PreparationResumed: "scripts-resolved",
        AgentOverridden: "overridden",
        PreparationStarted: "scripts-resolved",
        StepBegun: "scripts-resolved",
        StepTaken: "scripts-resolved",
        SessionCreated: "session-created",
        SpawnRefused: "refused",
    },
    "overridden": {
        PreparationResumed: "overridden",
        PreparationStarted: "overridden",
        StepBegun: "overridden",
        StepTaken: "overridden",
        SessionCreated: "session-created",
        SpawnRefused: "refused",
    },
    "session-created": {
        ArchiveScheduled: "session-created",
        RunWaits: "session-created",
        DependencyMet: "session-created",
        RunQueued: "queued",
        HookTold: "session-created",
        HookFailed: "session-created",
        HookParked: "session-created",
        RunEnded: "ended",
    },
    "queued": {
        HookTold: "queued",
        HookFailed: "queued",
        HookParked: "queued",
        ArchiveScheduled: "queued",
        RunClaimed: "queued",
        StopRequested: "queued",
        RunStarted: "started",
        RunEnded: "ended",
    },
    "started": {
        HookTold: "started",
        HookFailed: "started",
        HookParked: "started",
        ArchiveScheduled: "started",
        StopRequested: "started",
        RunEnded: "ended",
    },
    "ended": {
        HookTold: "ended",
        HookFailed: "ended",
        HookParked: "ended",
        ArchiveScheduled: "ended",
        DescendantsSettled: "ended",
        StepUndone: "ended",
        StepUndoFailed: "ended",
        RunAnnounced: "announced",
    },
    "announced": {
        HookTold: "announced",
        HookFailed: "announced",
        HookParked: "announced",
        ArchiveScheduled: "announced",
        RunContinued: "announced",
        AnnouncementAcknowledged: "announced",
        StepUndone: "announced",
        StepUndoFailed: "announced",
        RunArchived: "archived",
    },
    "archived": {
        HookTold: "archived",
        HookFailed: "archived",
        HookParked: "archived",
        AnnouncementAcknowledged: "archived",
        StepUndone: "archived",
        StepUndoFailed: "archived",
    },
    "refused": {
        AnnouncementAcknowledged: "refused",
        StepUndone: "refused",
        StepUndoFailed: "refused",
    },
}

PREPARING: frozenset[RunStage] = frozenset({"requested", "scripts-resolved", "overridden"})
"""Stages at which a spawn may still be refused."""

OVER: frozenset[RunStage] = frozenset({"ended", "announced", "archived", "refused"})
"""Stages at which nothing executes for the run any more."""

SETTLED: frozenset[RunStage] = frozenset({"announced", "archived", "refused"})
"""Stages at which nobody above waits for the run any more."""


def next_stage(stage: RunStage, event: RunEvent) -> RunStage:
    """The stage after `event`; `CorruptHistory` when the table has no such cell."""
    try:
        return LIFECYCLE[stage][type(event)]
    except KeyError:
        raise CorruptHistory(f"{type(event).__name__} cannot follow stage {stage}") from None


def mermaid() -> str:
    """The table as a mermaid state diagram; the README shows exactly this."""
    lines = ["stateDiagram-v2"]
    for stage, cells in LIFECYCLE.items():
        source = "[*]" if stage == "unborn" else stage.replace("-", "_")
        for event, target in cells.items():
            lines.append(f"    {source} --> {target.replace('-', '_')}: {event.__name__}")
    for final in ("archived", "refused"):
        lines.append(f"    {final} --> [*]")
    return "\n".join(lines)
