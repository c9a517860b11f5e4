"""The life of a run, as a table. Every rule of order is here; the table only ever grows.

A cell says: at this stage this event may be recorded, and this stage follows. What is not in the
table may never be recorded, and a history that contains it is corrupt.

How it works
------------
A run is one turn of one child session. It is two functions and this table: `decide` takes the state
and a command and gives events, `evolve` takes the state and an event and gives the next state. Both
ask the table, so an event that it does not permit is neither decided nor read. `decide` may become
stricter with any release. `evolve` and the table only grow, because every history that was ever
written has to be readable.

A run begins in one of two ways. `SpawnRequested` asks for a child of its own: scripts are resolved,
the agent may be overridden, and what the child needs outside the log is made, step by step, each
step recorded before it is made so that a crash leaves nothing that cannot be found. Until then the
spawn can be refused, and nothing else. `MessageReceived` continues a session that is there: nothing
has to be asked or made, so it is planned at once. From `session-created` on there is a child, its
caller has been answered, and what fails is an end (`RunEnded`), never a refusal.

A run that depends on others waits at `session-created` until each of them has ended. Then it is
`queued`: its place in the lane is the position of that event. It is claimed with an epoch, the
version of the stream at the claim, and everything that its holder records afterwards is fenced by
it. `started` is recorded before the child executes; so a run that was claimed and has not started
may be claimed again, and one that has started is never executed a second time.

The end says what became of the child. What comes after it is for others: the announcement waits
until all descendants are settled, hooks are told until they confirm or are parked, and what the
preparation made is undone where it has to be. These events do not move the stage, because none of
them waits for another. An announced run may be continued or archived; an archived or refused one is
final, and only what is still owed to others is recorded of it.

A run that yields, or is steered, ends without being announced: its session goes on in another run,
which takes its place. Messages wait in the state of the run that is at work.

A stop before there is a child is a refusal (rule `stopped`). A stop of a run that waits or is
queued ends it. A stop of a claimed or started run is a request to its holder, which ends it.
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
"""Stages at which a spawn may still be refused."""

OVER: frozenset[RunStage] = frozenset({"ended", "announced", "archived", "refused"})
"""Stages at which nothing executes for the run any more."""

SETTLED: frozenset[RunStage] = frozenset({"announced", "archived", "refused"})
"""Stages at which nobody above waits for the run any more."""


STAGE_REACHED_BY: dict[str, RunStage] = {
    event.__name__: target
    for stage, cells in LIFECYCLE.items()
    for event, target in cells.items()
    if target != stage
}
"""To which stage an event of that name moves a run; the others leave it where it is."""


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
