"""State machine of a run, as a table. All ordering rules are here; the table only ever grows.

Each cell maps a stage and an event to the next stage. An event without a cell may not be recorded,
and a history that contains one is corrupt.

How it works
------------
A run is one turn of one child session. Two functions and this table define it: `decide` turns a
state and a command into events, `evolve` turns a state and an event into the next state. Both check
the table, so an event without a cell is neither decided nor read. `decide` may become stricter in
any release. `evolve` and the table only grow, because every recorded history must stay readable.

A run begins in one of two ways. `SpawnRequested` asks for a new child. Context scripts run, the
agent may be overridden, and the resources that the child needs outside the log are made, step by
step. Each step is recorded before it is made, so that after a crash everything can be found and
undone. During this preparation the spawn can be refused, but it cannot fail in any other way.
`MessageReceived` continues an existing session: it has no scripts and no steps, so the run is
planned at once. From `session-created` on the child exists and its caller has been answered: a
failure ends the run (`RunEnded`) and is never a refusal.

If a run depends on others, it waits at `session-created` until all of them have ended. Then it is
`queued`; the position of that event is its place in the lane. A claim carries an epoch, the stream
version at the claim, and fences every later write of its holder. `started` is recorded before the
child executes. So a run that was claimed but has not started may be claimed again, and a started
run is never executed a second time.

`RunEnded` records the outcome of the child. The events after it serve others: the announcement
waits until all descendants are settled, hooks are called until they confirm or are parked, and
steps of the preparation are undone where necessary. Effects do not wait for each other across
kinds, so their events do not change the stage. An announced run may be continued or archived. An
archived or refused run is final: only its effects and acknowledgment are recorded afterwards.

A run that yields or is steered ends without an announcement: its session continues in another run,
which takes its place. Messages wait in the state of the active run.

A stop before the child exists is a refusal (rule `stopped`). A stop of a waiting or queued run ends
it. A stop of a claimed or started run is a request to its holder, which ends it.
"""

from typing import Literal

from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    ArchiveScheduled,
    ChildrenReported,
    ContinuationFailed,
    ContinuationPlanned,
    DependencyMet,
    DescendantsSettled,
    EffectAttempted,
    EffectParked,
    EffectRedriven,
    MessageQueued,
    MessageReceived,
    MessagesDropped,
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
    StopRequested,
    YieldRequested,
)
from domain.values.refusals import CorruptHistoryError

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
        EffectAttempted: "session-created",
        EffectParked: "session-created",
        EffectRedriven: "session-created",
        ArchiveScheduled: "session-created",
        MessageQueued: "session-created",
        MessagesDropped: "session-created",
        RunWaits: "session-created",
        DependencyMet: "session-created",
        RunQueued: "queued",
        RunEnded: "ended",
    },
    "queued": {
        EffectAttempted: "queued",
        EffectParked: "queued",
        EffectRedriven: "queued",
        ArchiveScheduled: "queued",
        MessageQueued: "queued",
        MessagesDropped: "queued",
        RunClaimed: "queued",
        StopRequested: "queued",
        RunStarted: "started",
        RunEnded: "ended",
    },
    "started": {
        EffectAttempted: "started",
        EffectParked: "started",
        EffectRedriven: "started",
        ArchiveScheduled: "started",
        MessageQueued: "started",
        MessagesDropped: "started",
        YieldRequested: "started",
        StopRequested: "started",
        RunEnded: "ended",
    },
    "ended": {
        EffectAttempted: "ended",
        EffectParked: "ended",
        EffectRedriven: "ended",
        ArchiveScheduled: "ended",
        MessageQueued: "ended",
        MessagesDropped: "ended",
        ChildrenReported: "ended",
        ContinuationFailed: "ended",
        RunContinued: "ended",
        StopRequested: "ended",
        DescendantsSettled: "ended",
        RunAnnounced: "announced",
    },
    "announced": {
        EffectAttempted: "announced",
        EffectParked: "announced",
        EffectRedriven: "announced",
        ArchiveScheduled: "announced",
        MessageQueued: "announced",
        MessagesDropped: "announced",
        ContinuationFailed: "announced",
        RunContinued: "announced",
        AnnouncementAcknowledged: "announced",
        RunArchived: "archived",
    },
    "archived": {
        EffectAttempted: "archived",
        EffectParked: "archived",
        EffectRedriven: "archived",
        AnnouncementAcknowledged: "archived",
    },
    "refused": {
        EffectAttempted: "refused",
        EffectParked: "refused",
        EffectRedriven: "refused",
        AnnouncementAcknowledged: "refused",
    },
}

PREPARING: frozenset[RunStage] = frozenset({"requested", "scripts-resolved", "overridden"})
"""Stages at which a spawn can still be refused."""

OVER: frozenset[RunStage] = frozenset({"ended", "announced", "archived", "refused"})
"""Stages at which nothing executes for the run anymore."""

SETTLED: frozenset[RunStage] = frozenset({"announced", "archived", "refused"})
"""Stages at which no ancestor waits for the run anymore."""


STAGE_REACHED_BY: dict[str, RunStage] = {
    event.__name__: target
    for stage, cells in LIFECYCLE.items()
    for event, target in cells.items()
    if target != stage
}
"""Stage that each event moves a run to, by event name; events that keep the stage are absent."""


def next_stage(stage: RunStage, event: RunEvent) -> RunStage:
    """Return the stage after `event`. Raise `CorruptHistoryError` if the table has no such cell."""
    try:
        return LIFECYCLE[stage][type(event)]
    except KeyError:
        raise CorruptHistoryError(f"{type(event).__name__} cannot follow stage {stage}") from None


def mermaid() -> str:
    """Return the table as a mermaid state diagram, as docs/architecture.md shows it."""
    lines = ["stateDiagram-v2"]
    for stage, cells in LIFECYCLE.items():
        source = "[*]" if stage == "unborn" else stage.replace("-", "_")
        for event, target in cells.items():
            lines.append(f"    {source} --> {target.replace('-', '_')}: {event.__name__}")
    for final in ("archived", "refused"):
        lines.append(f"    {final} --> [*]")
    return "\n".join(lines)
