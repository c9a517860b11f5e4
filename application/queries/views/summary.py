"""Views of the summary of a range of the log."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from application.queries.views.run_totals import AgentUsageView, RunTotalsView
from application.queries.views.view import View

WaitReason = Literal["runs", "slot", "claim"]


class FailuresView(View):
    """Runs that failed with the same cause. `cause` is the line that names it, in which numbers,
    ids, instants, quoted texts, paths and URLs are placeholders: list runs with this `cause` to see
    them. `error` is the line as it was, with `…` for each word in which the runs differ, or `cause`
    if their numbers of words differ. `newestAt` is when the last of them ended. `statuses` and
    `agents` count them; `runIds` has up to five, newest first."""

    cause: str
    error: str
    newest_at: datetime
    runs: int
    statuses: dict[str, int]
    agents: dict[str, int]
    run_ids: list[UUID]


class ActivatedRevisionView(View):
    """A configuration revision that was activated in the range."""

    revision: int
    position: int
    activated_at: datetime
    activated_by: str


class WaitView(View):
    """Runs that wait for the same: `runs` for other runs to end, `slot` for a slot of a full lane,
    `claim` for a server that takes them. `lane` and `depth` name the lane of queued runs. `runIds`
    has up to five, newest first."""

    reason: WaitReason
    lane: str | None
    depth: int | None
    runs: int
    run_ids: list[UUID]


class LiveRunsView(View):
    """The number of unfinished runs by status, and the waiting and queued ones grouped by reason,
    largest group first. `parkedDeliveries` counts webhook deliveries of `parkedAnnouncements` that
    were given up. `usageByAgent` has the tokens and cost by then of the running runs, except
    `runningNotSummed` of them (as in totals of runs). If `runsCut`, more runs were not counted; if
    `parkedCut`, more announcements; `cut` is true if either is."""

    preparing: int
    waiting: int
    queued: int
    running: int
    waits: list[WaitView]
    parked_announcements: int
    parked_deliveries: int
    usage_by_agent: list[AgentUsageView]
    running_not_summed: int
    cut: bool
    runs_cut: bool
    parked_cut: bool


class SummaryView(View):
    """The summary of a range of the log: after position `after`, up to `until`; `fromAt` and `toAt`
    are the instants of both. `spawned` are the runs requested in the range, with their status at
    its end.
    `ended` are the runs that ended or were refused in it, whenever they were requested: by status,
    by rule, and with their tokens and cost. `failures` groups those of `ended` that failed, timed
    out or have an unknown outcome by cause, most first, up to fifty; `furtherCauses` is the number
    of causes left out. `revisions` are the configuration revisions activated in the range, newest
    first, up to fifty; null for a token that does not see the whole log. `live` is the state at the
    end of the range."""

    after: int
    until: int
    from_at: datetime | None
    to_at: datetime | None
    spawned: RunTotalsView
    ended: RunTotalsView
    failures: list[FailuresView]
    further_causes: int
    revisions: list[ActivatedRevisionView] | None
    live: LiveRunsView
