# Written by `make client` from the description of the HTTP API.
"""Every operation of the server as a method of the asynchronous client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal

from spawnlog.core.async_sender import AsyncSender
from spawnlog.core.request import (
    LinesRequest,
    PageRequest,
    Request,
    command_request,
    lines_request,
    page_request,
    path_of,
    plain_request,
    read_request,
    requester_object,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from spawnlog.bodies import (
        AttachAsBody,
        AttachmentBody,
        DependencyBody,
        EntryBody,
        RequesterBody,
        TranscriptChoice,
        UsageBody,
        WhatIfFilter,
    )
    from spawnlog.models import (
        AcceptedBatch,
        AcceptedBatchOfOne,
        AcceptedSpawn,
        AcknowledgedAnswer,
        AgentListing,
        AnnouncementView,
        BreakpointView,
        CallerView,
        ClaimedAnswer,
        ContinuedAnswer,
        DiffItemView,
        DiffView,
        EndedAnswer,
        EventListView,
        EventView,
        EventWithTexts,
        ExplanationView,
        FinishedAnswer,
        HealthAnswer,
        HeartbeatAnswer,
        HistogramView,
        InboxView,
        LaneListView,
        LogHeadView,
        MomentView,
        PageCodeAnswer,
        PageTokenAnswer,
        PreambleAnswer,
        PromptView,
        QueuedAnswer,
        ReadinessAnswer,
        RedrivenAnswer,
        RedrivenManyAnswer,
        ReportedAnswer,
        RevisionListView,
        RevisionSummary,
        RevisionView,
        RevokedAnswer,
        RunBarView,
        RunComparisonView,
        RunEventListView,
        RunHistoryView,
        RunListView,
        RunMetadataView,
        RunSharedContextView,
        RunSummary,
        RunView,
        SearchView,
        SessionStoppedAnswer,
        SessionTreeView,
        SessionView,
        SharedContextView,
        SharedSizesView,
        StateChangeView,
        SteeredAnswer,
        StoppedAnswer,
        SummaryView,
        TimelineView,
        TranscriptEntryView,
        TranscriptProvidedAnswer,
        TranscriptView,
        TreeUsageListView,
        VerificationStartView,
        VerificationStopView,
        WhatIfFailureView,
        WhatIfProgressView,
        WhatIfTotalsView,
        WhatIfVerdictView,
        YieldedAnswer,
    )


class AsyncMethods(AsyncSender):
    """Every operation of the server."""

    async def acknowledge_announcement(
        self, key: str, id: str, *, position: int | None = None, idempotency_key: str | None = None
    ) -> AcknowledgedAnswer:
        """Acknowledge an announcement.

        Repeating it changes nothing.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            id: Announcement id, which is the id of its run.
            position: Position at which the announcement was read. If a delivery was
                parked since, it has a later position, and is not acknowledged. Default: any
                position.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[AcknowledgedAnswer] = command_request(
            "acknowledgeAnnouncement",
            "POST",
            path_of("sessions", key, "announcements", id, "ack"),
            {"position": position},
            "AcknowledgedAnswer",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def claim_run(
        self, run_id: str, executor: str, *, lease_seconds: float | None = None
    ) -> ClaimedAnswer:
        """Claim an external run to execute it.

        Claims a queued run of an agent with runtime `external` if its lane has a free slot.
        The claim starts the run and its time limit. The response has everything that the
        child gets. A repeat by the same executor returns the same response while the lease
        holds; another executor gets `claimed_elsewhere`. Needs a token with scope `spawn`
        that acts for the session that requested the run, or one with scope `worker`. A run
        that no executor claims within `spawnlog.externalClaimSeconds` ends as `error`.

        Args:
            run_id: Run id.
            executor: A unique name; a repeated claim is recognized by it.
            lease_seconds: Seconds until the claim expires unless a heartbeat renews it.
        """
        request: Request[ClaimedAnswer] = plain_request(
            "claimRun",
            "POST",
            path_of("runs", run_id, "claim"),
            "ClaimedAnswer",
            body={"executor": executor, "leaseSeconds": lease_seconds},
            again=True,
        )
        return (await self.answer(request)).value

    async def clear_preamble(self, key: str) -> PreambleAnswer:
        """Remove the preamble of a session.

        Later runs have no preamble.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
        """
        request: Request[PreambleAnswer] = plain_request(
            "clearPreamble", "DELETE", path_of("sessions", key, "preamble"), "PreambleAnswer"
        )
        return (await self.answer(request)).value

    async def compare_runs(
        self,
        run_id: str,
        with_: str,
        *,
        at: str | datetime | None = None,
        min_position: int | None = None,
    ) -> RunComparisonView:
        """Show the differences between two runs.

        Compares the runs, now or as of `at`: requests, decisions by rule, plans, prompts by
        part, transcripts up to the first entry that differs, and outcomes. Names of a run
        itself would always differ, so its id, session id and child key appear as `{runId}`,
        `{sessionId}` and `{childSessionKey}`. Run time is shown but ignored in `same`.
        Prompts and transcripts require scope `content`.

        Args:
            run_id: Run id.
            with_: The id of the run on the right side.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[RunComparisonView] = read_request(
            "compareRuns",
            path_of("runs", run_id, "compare"),
            {"with": with_, "at": at, "minPosition": min_position},
            "RunComparisonView",
        )
        return (await self.answer(request)).value

    async def count_events(
        self,
        *,
        actor: str | None = None,
        buckets: int | None = None,
        by: Literal["position", "time"] | None = None,
        from_: str | datetime | None = None,
        min_position: int | None = None,
        run_id: str | None = None,
        to: str | datetime | None = None,
        tree: str | None = None,
        types: Sequence[str] = (),
    ) -> HistogramView:
        """Count events, outcomes and refusals over time.

        Counts the events of the log between `from_` and `to` in buckets of equal size, by
        position or by time: by type, by outcome of runs that ended, and by rule that refused
        a spawn. The cost does not depend on the size of the log. With `run_id` or `tree`,
        events are scanned one by one, 20,000 at most: `counted_to` says where the scan
        stopped, and is None if all were counted. `actor` requires `run_id` or `tree`. Without
        these, a token for all sessions (`*`) is required.

        Args:
            actor: Only events recorded for this actor: a kind (`token`, `child`,
                `anybody`, `system`), the id of a token, or the key of the session that acted.
            buckets: Maximum number of buckets.
            by: Bucket by equal numbers of positions, or by equal lengths of time.
            from_: Start of the range, exclusive: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. Default: the
                beginning of the log.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            run_id: Only events about this run.
            to: End of the range, inclusive: pos:18342, an RFC 3339 instant with an offset
                such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m, h, d
                or w), or a stage of a run such as run:reviewer@started. Default: now.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            types: Only events of these types (repeatable, or separated by commas).
        """
        request: Request[HistogramView] = read_request(
            "countEvents",
            path_of("events", "histogram"),
            {
                "actor": actor,
                "buckets": buckets,
                "by": by,
                "from": from_,
                "minPosition": min_position,
                "runId": run_id,
                "to": to,
                "tree": tree,
                "types": types,
            },
            "HistogramView",
        )
        return (await self.answer(request)).value

    async def end_run(
        self,
        run_id: str,
        epoch: int,
        outcome: Literal["success", "error", "timeout", "stopped", "unknown"],
        *,
        result: str | None = None,
        error: str | None = None,
        usage: Sequence[UsageBody] | None = None,
    ) -> EndedAnswer:
        """Report the end of a claimed run.

        The run is announced like any other. A repeat returns the same response. If the run
        has already ended otherwise, the report is refused with `run_over` and not recorded.

        Args:
            run_id: Run id.
            epoch: Epoch returned by the claim. A report with an older epoch is refused.
            outcome: Outcome of the run.
            result: Result text. Default: the last `result` entry of the transcript, else
                the last message of the assistant.
            error: Error text, if the outcome is not `success`.
            usage: Token usage by model. Default: the sum of the usage in the transcript.
        """
        request: Request[EndedAnswer] = plain_request(
            "endRun",
            "POST",
            path_of("runs", run_id, "end"),
            "EndedAnswer",
            body={
                "epoch": epoch,
                "outcome": outcome,
                "result": result,
                "error": error,
                "usage": usage,
            },
            again=True,
        )
        return (await self.answer(request)).value

    async def explain_run(
        self, run_id: str, *, at: str | datetime | None = None, min_position: int | None = None
    ) -> ExplanationView:
        """Explain why a run was permitted or refused, rule by rule.

        Returns every rule in the order in which they are evaluated: the facts that it
        compared (`compared`, and in words `text`), its `result`, and the position and
        configuration revision at which it was recorded. `passed` did not refuse the spawn;
        `refused` did; `not_judged` was not reached, or not yet; `not_recorded` was not
        recorded by the release that decided. A step that made something for the child appears
        at the event that records it. `refused` is the rule that refused, with the text that
        the caller received, or None. `given` holds arguments that are stored outside the
        events: a workspace, and values that are no names. `configured` of the tools and
        `workspaceRoots` are quoted from the configuration file of that revision; None if it
        cannot be read any more. For a run that continues a session after a message, the only
        admission rule is `active_children`, no script runs, and the workspace is `kept`. No
        rule is evaluated again.

        Args:
            run_id: Run id.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[ExplanationView] = read_request(
            "explainRun",
            path_of("runs", run_id, "explain"),
            {"at": at, "minPosition": min_position},
            "ExplanationView",
        )
        return (await self.answer(request)).value

    async def find_events(
        self,
        *,
        agent_id: str | None = None,
        becomes: str | None = None,
        changes: bool | None = None,
        cursor: str | None = None,
        field: str | None = None,
        from_: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        rule: str | None = None,
        run_id: str | None = None,
        session: str | None = None,
        to: str | datetime | None = None,
        tree: str | None = None,
        types: Sequence[str] = (),
        when: str | None = None,
    ) -> SearchView:
        """Find the position at which a condition began to hold.

        Returns the first positions between `from_` and `to` at which a condition begins to
        hold (`when`), a field of a run or session becomes a value (`field` with `becomes` or
        `changes`), or an event was recorded (`types`, `rule`). The numbers of a condition
        count runs by status, `spawned` and `archived` runs, and `active` places; `config` is
        the configuration revision and `position` the position. `run_id`, `session`, `tree`,
        `agent_id` and `rule` restrict the runs. Each request scans a bounded number of
        events: there may be more as long as `next_cursor` is set. Without `run_id`, `session`
        or `tree` it requires a token for all sessions (`*`).

        Args:
            agent_id: Only runs of this agent, as of each event.
            becomes: Find where the field becomes this value. Requires `field`.
            changes: Find every change of the field. Requires `field`.
            cursor: `next_cursor` of the previous page.
            field: Find where this field of a run, or of `session`, changes. Requires
                `becomes` or `changes`.
            from_: Start of the range, exclusive: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. Default: the
                beginning of the log.
            limit: Maximum number of positions.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            rule: Only refusals by this rule.
            run_id: Only events about this run.
            session: Only this session and the runs that it requested: a session key, a
                session id, or `current`.
            to: End of the range, inclusive: pos:18342, an RFC 3339 instant with an offset
                such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m, h, d
                or w), or a stage of a run such as run:reviewer@started. Default: now.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            types: Only events of these types (repeatable, or separated by commas).
            when: Find where this condition begins to hold: comparisons (`> >= < <= = !=`)
                of numbers, with `and`, `or`, `not` and parentheses.
        """
        request: PageRequest[SearchView, BreakpointView] = page_request(
            "findEvents",
            path_of("events", "find"),
            {
                "agentId": agent_id,
                "becomes": becomes,
                "changes": changes,
                "cursor": cursor,
                "field": field,
                "from": from_,
                "limit": limit,
                "minPosition": min_position,
                "rule": rule,
                "runId": run_id,
                "session": session,
                "to": to,
                "tree": tree,
                "types": types,
                "when": when,
            },
            "SearchView",
        )
        return (await self.answer(request)).value

    async def get_diff(
        self,
        from_: str | datetime,
        to: str | datetime,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        run_id: str | None = None,
        session: str | None = None,
        tree: str | None = None,
    ) -> DiffView:
        """Show what changed between two moments.

        Returns the changes of a run, a session, a tree or, for a token with the pattern `*`,
        the whole registry: items that were added, removed or changed, each with a patch (RFC
        6902) from left to right, in which `None` is an absent item. Items are ordered by
        their first event between the two moments. Each request scans a bounded number of
        events, so a page may be short or empty: the diff is complete only when `next_cursor`
        is None; `counts` are those of the page. In the diff of a tree or of the registry, a
        session has only the fields that follow from its own events; with `session`, it has
        all that `get_session` shows.

        Args:
            from_: Left side of the comparison: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started.
            to: Right side of the comparison, in the same forms; it may be the earlier
                moment.
            cursor: `next_cursor` of the previous page.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            run_id: Only this run.
            session: Only this session, as `GET /v1/sessions/{key}` shows it: a session
                key, a session id, or `current`.
            tree: Only this root session and the runs and sessions below it.
        """
        request: PageRequest[DiffView, DiffItemView] = page_request(
            "getDiff",
            path_of("diff"),
            {
                "from": from_,
                "to": to,
                "cursor": cursor,
                "limit": limit,
                "minPosition": min_position,
                "runId": run_id,
                "session": session,
                "tree": tree,
            },
            "DiffView",
            lists=("added", "removed", "changed"),
        )
        return (await self.answer(request)).value

    async def get_health(self) -> HealthAnswer:
        """Check that the server process responds.

        Liveness. Responds whatever the state of the database.
        """
        request: Request[HealthAnswer] = read_request("getHealth", "/healthz", {}, "HealthAnswer")
        return (await self.answer(request)).value

    async def get_log_head(
        self, *, at: str | datetime | None = None, min_position: int | None = None
    ) -> LogHeadView:
        """Get the head of the log, and the results of verifications.

        Returns the last event as of `at`, with the chain hash of the log up to it. Keep
        `position:chainHash` elsewhere as the head for `spawnlog log verify --head`. Includes
        the newest 20 verifications in their current state, started by requests or commands.
        Needs a token for the sessions `*`.

        Args:
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[LogHeadView] = read_request(
            "getLogHead", path_of("log"), {"at": at, "minPosition": min_position}, "LogHeadView"
        )
        return (await self.answer(request)).value

    async def get_me(self, *, min_position: int | None = None) -> CallerView:
        """Show the scopes and sessions of this token.

        Returns the scopes of the token and the patterns of the session keys that it may act
        for. Requires no scope. `admin` includes every scope, and `*` matches every session. A
        child's token belongs to one run, `run_id`. If authentication is off, `kind` is
        `anybody`.

        Args:
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[CallerView] = read_request(
            "getMe", path_of("me"), {"minPosition": min_position}, "CallerView"
        )
        return (await self.answer(request)).value

    async def get_metrics(self) -> str:
        """Get metrics in the Prometheus text format.

        Returns counts and durations of this server since its start, and open work of the
        whole log. Needs a token with the scope `read` and the sessions `*`. If the database
        does not respond, `spawnlog_database_up` is 0 and metrics from the database are
        omitted.
        """
        request: Request[str] = read_request("getMetrics", "/metrics", {}, "str")
        return (await self.answer(request)).value

    async def get_moment(
        self,
        *,
        around: int | None = None,
        at: str | datetime | None = None,
        min_position: int | None = None,
    ) -> MomentView:
        """Show the position, time and neighboring events of a moment.

        Returns the position of an instant, the instant at which a position was recorded, the
        configuration revision in force then, and the events on both sides.

        Args:
            around: Maximum number of events on each side.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[MomentView] = read_request(
            "getMoment",
            path_of("moments"),
            {"around": around, "at": at, "minPosition": min_position},
            "MomentView",
        )
        return (await self.answer(request)).value

    async def get_readiness(self) -> ReadinessAnswer:
        """Check that the server is ready to serve.

        Readiness: the database responds and accepts writes, its schema is known, and the log
        reader is current. Otherwise 503 with the reasons.
        """
        request: Request[ReadinessAnswer] = read_request(
            "getReadiness", "/readyz", {}, "ReadinessAnswer"
        )
        return (await self.answer(request)).value

    async def get_revision(
        self, revision: int, *, at: str | datetime | None = None, min_position: int | None = None
    ) -> RevisionView:
        """Get a configuration revision with its content.

        Returns a revision with its stored content, in which secrets are references. Requires
        scope `content` for all sessions (`*`).

        Args:
            revision: Revision number, from 1.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[RevisionView] = read_request(
            "getRevision",
            path_of("config", "revisions", revision),
            {"at": at, "minPosition": min_position},
            "RevisionView",
        )
        return (await self.answer(request)).value

    async def get_run(
        self,
        run_id: str,
        *,
        at: str | datetime | None = None,
        min_position: int | None = None,
        until: Literal["started", "ended", "announced", "archived"] | None = None,
        version: int | None = None,
        wait: float | None = None,
    ) -> RunView | RunMetadataView:
        """Get a run, or wait for one of its stages.

        Returns the run as of now, as of `at`, or after `version` of its own events. With
        `wait`, the response comes when the stage `until` is reached, the run is refused, or
        the wait is over. While a run is running, `usage`, `estimated_cost_usd`,
        `transcript_entries` and, for a token with scope `content`, the last `progress` come
        from its transcript so far, and `runtime_ms` counts up to now. As of an earlier
        position, all of them are None.

        Args:
            run_id: Run id.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            until: Stage to wait for. Requires `wait`. Default: `ended`. A refusal ends
                every wait.
            version: Show the run as of this number of its own events.
            wait: How long to wait, 60 seconds at most.
        """
        request: Request[RunView | RunMetadataView] = read_request(
            "getRun",
            path_of("runs", run_id),
            {
                "at": at,
                "minPosition": min_position,
                "until": until,
                "version": version,
                "wait": wait,
            },
            "RunView",
            "RunMetadataView",
        )
        return (await self.answer(request)).value

    async def get_run_history(
        self,
        run_id: str,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        field: Sequence[str] = (),
        limit: int | None = None,
        min_position: int | None = None,
    ) -> RunHistoryView:
        """Show the states of a run, and the event that caused each change.

        Returns, for each event of the run, its changes as a patch (RFC 6902) from the
        previous state of the run to the next; the first patch applies to `{}`. All patches in
        order give the run at `version`. `set_by` maps each field of the newest state, or of
        the state as of `at`, to the event that last set it; with `field`, only those fields.
        An erased text is None, but the event that set it is still known. A token with scope
        `content` gets the run with its texts, others a summary.

        Args:
            run_id: Run id.
            after: Only states after this version: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            field: Only changes of this field of the run (repeatable): its name, or a JSON
                pointer such as `/announcement/state`.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: PageRequest[RunHistoryView, StateChangeView] = page_request(
            "getRunHistory",
            path_of("runs", run_id, "history"),
            {"after": after, "at": at, "field": field, "limit": limit, "minPosition": min_position},
            "RunHistoryView",
        )
        return (await self.answer(request)).value

    async def get_run_prompt(
        self, run_id: str, *, at: str | datetime | None = None, min_position: int | None = None
    ) -> PromptView:
        """Show the prompt of a run and the source of each part.

        Returns system prompt and message, and the parts that cover every byte of both. Each
        part has its source, its UTF-8 byte offsets within its text, and the SHA-256 of its
        bytes.

        Args:
            run_id: Run id.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[PromptView] = read_request(
            "getRunPrompt",
            path_of("runs", run_id, "prompt"),
            {"at": at, "minPosition": min_position},
            "PromptView",
        )
        return (await self.answer(request)).value

    async def get_run_shared_context(
        self, run_id: str, *, at: str | datetime | None = None, min_position: int | None = None
    ) -> RunSharedContextView:
        """Show the shared context that a run received at its start.

        Returns the whole context, including values that the prompt truncates. A child may
        read its own with its own token. `position` is where the run was claimed, and the
        context is as of then; None if nothing was shared. `erased` lists the keys whose
        values were erased.

        Args:
            run_id: Run id.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[RunSharedContextView] = read_request(
            "getRunSharedContext",
            path_of("runs", run_id, "shared-context"),
            {"at": at, "minPosition": min_position},
            "RunSharedContextView",
        )
        return (await self.answer(request)).value

    async def get_run_transcript(
        self,
        run_id: str,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        last: int | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        tools: bool | None = None,
        wait: float | None = None,
    ) -> TranscriptView:
        """Show the transcript of a run, or follow it.

        Returns entries in order, also before the run ends. The first entry of the run's own
        is its message. Tool calls and token counts are included with `tools=True`. If the
        child's context was forked, a leading `session` entry says how many of the following
        entries (`entries`) come from the requester's session. With `at`, it has the entries
        that had arrived when that position was recorded, or all of them if the run had ended
        by then. To follow a run, repeat the request with `wait` and with `after` set to
        `next_after`, or to `last_sequence` if that is None, until `complete` is true and
        `next_after` is None. Alternatively, send `Accept: text/event-stream`: each entry is
        an event `entry` whose `id` is its sequence number, and an event `end` follows the
        last one. The stream resumes after `Last-Event-ID`, else after `after`, else at the
        first entry.

        Args:
            run_id: Run id.
            after: Return only items after this number: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            last: Return this number of entries from the end. Cannot be combined with
                `after` or `limit`.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            tools: Include tool calls and token counts.
            wait: How long to wait for an entry after `after`, or for the end of the run,
                60 seconds at most. Cannot be combined with `at` or `last`.
        """
        request: PageRequest[TranscriptView, TranscriptEntryView] = page_request(
            "getRunTranscript",
            path_of("runs", run_id, "transcript"),
            {
                "after": after,
                "at": at,
                "last": last,
                "limit": limit,
                "minPosition": min_position,
                "tools": tools,
                "wait": wait,
            },
            "TranscriptView",
        )
        return (await self.answer(request)).value

    async def get_session(
        self, key: str, *, at: str | datetime | None = None, min_position: int | None = None
    ) -> SessionView:
        """Get a session, its own runs and its children.

        Finds the session by its key in any spelling, its session id, or `current`.
        `asserted_by` is the actor whose word it was first recorded on (`spawn` for a child),
        `assertions` the facts that rest on that word alone, and `depth_from` where its depth
        was found. `runs` are the runs that it requested, `own_runs` those of a child itself,
        newest first.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[SessionView] = read_request(
            "getSession",
            path_of("sessions", key),
            {"at": at, "minPosition": min_position},
            "SessionView",
        )
        return (await self.answer(request)).value

    async def get_session_tree(
        self,
        key: str,
        *,
        at: str | datetime | None = None,
        depth: int | None = None,
        limit: int | None = None,
        min_position: int | None = None,
    ) -> SessionTreeView:
        """Show a session and everything below it.

        Returns the session with its own runs and, below it, the sessions that it spawned,
        each with its runs, the position and instant of every stage, the tokens and cost of
        its runs (`own`) and of those and all below it (`total`), and the number of places
        that it occupies. The tree is filled level by level, up to `limit` nodes. `cut` says
        that nodes are missing; `children_cut` of a node that they are below it, and its own
        tree has them. `refused` of a node are the refused spawns that it requested, each with
        its `rule`, up to `limit` in the whole tree. `refused_cut` says that there are more:
        list runs to see them.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            depth: Maximum number of levels below the session.
            limit: Maximum number of nodes.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[SessionTreeView] = read_request(
            "getSessionTree",
            path_of("sessions", key, "tree"),
            {"at": at, "depth": depth, "limit": limit, "minPosition": min_position},
            "SessionTreeView",
        )
        return (await self.answer(request)).value

    async def get_shared_context(
        self, key: str, *, at: str | datetime | None = None, min_position: int | None = None
    ) -> SharedContextView:
        """Show the context that a session shares with its children.

        Returns the context that the session's next child starts with. Requires scope
        `content`. `sizes` has the bytes of each value; `sources` who wrote each key, and in
        which session; `history` the newest 200 changes in order; `started_with` the newest
        500 children, each with the version it started with. The `ETag` is the version, 0
        while nothing is shared.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[SharedContextView] = read_request(
            "getSharedContext",
            path_of("sessions", key, "shared-context"),
            {"at": at, "minPosition": min_position},
            "SharedContextView",
        )
        return (await self.answer(request)).value

    async def get_summary(
        self,
        *,
        agent_id: Sequence[str] = (),
        from_: str | datetime | None = None,
        min_position: int | None = None,
        to: str | datetime | None = None,
        tree: str | None = None,
    ) -> SummaryView:
        """Summarize what happened between two moments.

        Returns the numbers of runs that were spawned, ended and refused after `from_`, up to
        `to`; the tokens and cost of those that ended, and their failures by cause; the
        configuration revisions that were activated; and the numbers of runs that are live at
        `to`. A run that was requested before the range counts in `ended` if it ended in it.
        The cost does not depend on the size of the log: of the runs requested in the range
        and those live at its start, up to 10,000 are counted, the newest (5,000 for a token
        that may not see all sessions). `counted_to` of `spawned` and `ended` is then the
        position down to which runs were counted. Runs that ended without an error text have
        the cause `no error text`. For a token without scope `content`, causes come from the
        previews of errors that lists show.

        Args:
            agent_id: Only runs of this agent, after any override (repeatable).
            from_: Start of the range, exclusive: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. Default: 24
                hours before its end.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            to: End of the range, inclusive: pos:18342, an RFC 3339 instant with an offset
                such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m, h, d
                or w), or a stage of a run such as run:reviewer@started. Default: now.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
        """
        request: Request[SummaryView] = read_request(
            "getSummary",
            path_of("summary"),
            {
                "agentId": agent_id,
                "from": from_,
                "minPosition": min_position,
                "to": to,
                "tree": tree,
            },
            "SummaryView",
        )
        return (await self.answer(request)).value

    async def list_agents(
        self,
        *,
        at: str | datetime | None = None,
        min_position: int | None = None,
        requester: str | None = None,
    ) -> AgentListing:
        """List the agents that a requester may spawn.

        The requester's own agent comes first if it is allowed; the others are sorted. The
        token must cover the requester, which need not be on record; if it is, its recorded
        agent is used. With `at`, the configuration in force at that moment is used.

        Args:
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            requester: The requesting session: its key in any spelling, its session id, or
                `current`.
        """
        request: Request[AgentListing] = read_request(
            "listAgents",
            path_of("agents"),
            {"at": at, "minPosition": min_position, "requester": requester},
            "AgentListing",
        )
        return (await self.answer(request)).value

    async def list_announcements(
        self,
        key: str,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        wait: float | None = None,
    ) -> InboxView:
        """List the announcements in a session's inbox, or wait for one.

        Returns announcements after `after`, by position. With `wait`, an empty response waits
        for the first one. `origin` says where to send the result, if known. With `at`, each
        announcement is shown as of then, including `state`, `acknowledged_at` and
        `deliveries`.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            after: Return only items after this number: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            wait: How long to wait, 60 seconds at most.
        """
        request: PageRequest[InboxView, AnnouncementView] = page_request(
            "listAnnouncements",
            path_of("sessions", key, "announcements"),
            {"after": after, "at": at, "limit": limit, "minPosition": min_position, "wait": wait},
            "InboxView",
        )
        return (await self.answer(request)).value

    async def list_events(
        self,
        *,
        actor: str | None = None,
        after: int | None = None,
        at: str | datetime | None = None,
        before: int | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        run_id: str | None = None,
        tree: str | None = None,
        types: Sequence[str] = (),
    ) -> EventListView:
        """List events of the log, or follow them.

        Returns a page of events after `after`, or the newest ones with `before` or
        `order=desc`, as of `at`. With `Accept: text/event-stream` it is a live stream that
        resumes after `Last-Event-ID`, else after `after`, else at the head. A filtered stream
        also sends `checkpoint` events, so that a resume skips the events that were filtered
        out. A reader that is too slow is disconnected and may resume where it stopped. Each
        request scans a bounded number of events, so a page may be short or empty: continue
        after `next_after` until it equals `head`, or, newest first, before `next_before`
        until that is None.

        Args:
            actor: Only events recorded for this actor: a kind (`token`, `child`,
                `anybody`, `system`), the id of a token, or the key of the session that acted.
            after: Only events after this position. Default: the beginning of the log; for
                a stream, its head.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            before: Only events before this position, newest first.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            order: Order by position; `desc` is newest first. Default: `asc`; with
                `before`, `desc`.
            run_id: Only events about this run.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            types: Only events of these types (repeatable, or separated by commas).
        """
        request: PageRequest[EventListView, EventView] = page_request(
            "listEvents",
            path_of("events"),
            {
                "actor": actor,
                "after": after,
                "at": at,
                "before": before,
                "limit": limit,
                "minPosition": min_position,
                "order": order,
                "runId": run_id,
                "tree": tree,
                "types": types,
            },
            "EventListView",
        )
        return (await self.answer(request)).value

    async def list_lanes(
        self,
        *,
        at: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
    ) -> LaneListView:
        """List the lanes with their running and queued runs.

        Returns each lane's width, the runs that hold a slot, and the queued runs with their
        places and wait reasons. The width applies per depth, so that a waiting parent never
        starves its child. With `at`, it is the width in force at that moment.

        Args:
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[LaneListView] = read_request(
            "listLanes",
            path_of("lanes"),
            {"at": at, "limit": limit, "minPosition": min_position},
            "LaneListView",
        )
        return (await self.answer(request)).value

    async def list_ledger(
        self,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        state: Literal["parked", "due", "delivered", "acknowledged"] | None = None,
    ) -> InboxView:
        """List the announcements to all sessions, with their deliveries.

        Returns the announcements of all sessions that the token covers, in this `state` or in
        any, by position, after `after`. A parked announcement is listed at the position where
        it was last parked. `deliveries` has the state, attempts and next attempt for each
        webhook. Each request scans a bounded number of announcements, so a page may be short
        or empty: the ledger is complete only when `next_after` is None.

        Args:
            after: Return only items after this number: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            state: Only announcements in this state. `parked`: delivery to some webhook
                was abandoned; `due`: delivery to some webhook is still to come; `delivered`:
                in the inbox, not acknowledged; `acknowledged`: acknowledged by its session.
        """
        request: PageRequest[InboxView, AnnouncementView] = page_request(
            "listLedger",
            path_of("announcements"),
            {"after": after, "at": at, "limit": limit, "minPosition": min_position, "state": state},
            "InboxView",
        )
        return (await self.answer(request)).value

    async def list_revisions(
        self,
        *,
        at: str | datetime | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        min_position: int | None = None,
    ) -> RevisionListView:
        """List the configuration revisions, newest first.

        Returns the revisions of the configuration, newest first, with the times between which
        each was active. The first one is the active revision, now or as of `at`. Requires a
        token for all sessions (`*`).

        Args:
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            cursor: `next_cursor` of the previous page.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: PageRequest[RevisionListView, RevisionSummary] = page_request(
            "listRevisions",
            path_of("config", "revisions"),
            {"at": at, "cursor": cursor, "limit": limit, "minPosition": min_position},
            "RevisionListView",
        )
        return (await self.answer(request)).value

    async def list_run_events(
        self,
        run_id: str,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
    ) -> RunEventListView:
        """List the events of a run, in order.

        Returns events after `after`, in order, with their envelopes. Free texts are
        references. A token with scope `content` also gets the texts of failures:
        `texts.error` of an `EffectAttempted` says why an effect failed, and `texts.errors` of
        `ScriptsResolved` why context scripts failed, by their ids. `texts.reason` is the
        reason of a `StopRequested` or `EffectRedriven`; if a stop ended a run at once, its
        reason is `texts.error` of `RunEnded`.

        Args:
            run_id: Run id.
            after: Return only items after this number: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: PageRequest[RunEventListView, EventWithTexts | EventView] = page_request(
            "listRunEvents",
            path_of("runs", run_id, "events"),
            {"after": after, "at": at, "limit": limit, "minPosition": min_position},
            "RunEventListView",
        )
        return (await self.answer(request)).value

    async def list_runs(
        self,
        *,
        agent_id: Sequence[str] = (),
        at: str | datetime | None = None,
        cause: str | None = None,
        cursor: str | None = None,
        depth: int | None = None,
        ended_since: str | None = None,
        ended_until: str | None = None,
        label: Sequence[str] = (),
        label_prefix: Sequence[str] = (),
        limit: int | None = None,
        min_position: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        outcome: Sequence[Literal["success", "error", "timeout", "stopped", "unknown"]] = (),
        q: str | None = None,
        requester: str | None = None,
        respawned_from: str | None = None,
        rule: str | None = None,
        since: str | datetime | None = None,
        stage: Sequence[
            Literal[
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
        ] = (),
        status: Sequence[
            Literal[
                "preparing",
                "waiting",
                "queued",
                "running",
                "done",
                "failed",
                "timeout",
                "stopped",
                "unknown",
                "refused",
            ]
        ] = (),
        totals: bool | None = None,
        tree: str | None = None,
        until: str | datetime | None = None,
    ) -> RunListView:
        """List runs, newest first.

        Runs as summaries, newest first. All pages of one listing show one snapshot: the
        cursor keeps the position at which the listing began. Each request scans a bounded
        number of runs, so a page may be short or empty for a token that may see few of them.
        The listing is complete only when `next_cursor` is None.

        Args:
            agent_id: Only runs of this agent, after any override (repeatable).
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            cause: Only runs that failed, timed out or have an unknown outcome with this
                cause: a `cause` of `/v1/summary`, or the last line of an error.
            cursor: `next_cursor` of the previous page.
            depth: Exact depth. Requires `requester`, `tree` or `rule`.
            ended_since: Only runs that ended or were refused after this moment:
                pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a
                time ago such as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such
                as run:reviewer@started.
            ended_until: Only runs that ended or were refused at or before this moment:
                pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a
                time ago such as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such
                as run:reviewer@started.
            label: Only runs with exactly this label (repeatable).
            label_prefix: Only runs whose label starts with this text (repeatable), or is
                a `label`.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            order: Order by creation time.
            outcome: Only runs that ended with this outcome (repeatable).
            q: Only runs whose label, task, error or rule contain each of these words, 8
                at most, ignoring case. Searches the first 10,000 characters of a task and of
                an error; for a token without scope `content`, only the previews that lists
                show.
            requester: Only runs requested by this session: its key in any spelling, its
                session id, or `current`.
            respawned_from: Only respawns of the run with this id.
            rule: Only runs refused by this rule.
            since: Only runs created at or after this moment: pos:18342, an RFC 3339
                instant with an offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or
                -12h (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started.
            stage: Only runs at this stage (repeatable).
            status: Only runs with this status (repeatable).
            totals: Include the number of runs by status, agent and rule, and their tokens
                and cost, in the first page.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            until: Only runs created before this moment: pos:18342, an RFC 3339 instant
                with an offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h
                (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started.
        """
        request: PageRequest[RunListView, RunSummary] = page_request(
            "listRuns",
            path_of("runs"),
            {
                "agentId": agent_id,
                "at": at,
                "cause": cause,
                "cursor": cursor,
                "depth": depth,
                "endedSince": ended_since,
                "endedUntil": ended_until,
                "label": label,
                "labelPrefix": label_prefix,
                "limit": limit,
                "minPosition": min_position,
                "order": order,
                "outcome": outcome,
                "q": q,
                "requester": requester,
                "respawnedFrom": respawned_from,
                "rule": rule,
                "since": since,
                "stage": stage,
                "status": status,
                "totals": totals,
                "tree": tree,
                "until": until,
            },
            "RunListView",
        )
        return (await self.answer(request)).value

    async def list_timeline(
        self,
        *,
        agent_id: Sequence[str] = (),
        at: str | datetime | None = None,
        buckets: int | None = None,
        cursor: str | None = None,
        depth: int | None = None,
        ended_since: str | None = None,
        ended_until: str | None = None,
        from_: str | datetime | None = None,
        label: Sequence[str] = (),
        label_prefix: Sequence[str] = (),
        limit: int | None = None,
        min_position: int | None = None,
        outcome: Sequence[Literal["success", "error", "timeout", "stopped", "unknown"]] = (),
        requester: str | None = None,
        respawned_from: str | None = None,
        rule: str | None = None,
        since: str | datetime | None = None,
        stage: Sequence[
            Literal[
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
        ] = (),
        status: Sequence[
            Literal[
                "preparing",
                "waiting",
                "queued",
                "running",
                "done",
                "failed",
                "timeout",
                "stopped",
                "unknown",
                "refused",
            ]
        ] = (),
        to: str | datetime | None = None,
        tree: str | None = None,
        until: str | datetime | None = None,
    ) -> TimelineView:
        """List runs as bars of a timeline, with event counts.

        Returns the runs that were requested and not over between `from_` and `to`, newest
        first, each with the position and instant of every stage that it had reached as of
        `at`; and time buckets of equal length with the events in them, as in
        `/v1/events/histogram`. The buckets count the whole log in that range, or only `tree`
        if given; the other filters apply to runs alone. A token that does not see the whole
        log gets no buckets unless it names a tree of its own.

        Args:
            agent_id: Only runs of this agent, after any override (repeatable).
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            buckets: Number of time buckets; 0 for none. Default: 100.
            cursor: `next_cursor` of the previous page.
            depth: Exact depth. Requires `requester`, `tree` or `rule`.
            ended_since: Only runs that ended or were refused after this moment:
                pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a
                time ago such as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such
                as run:reviewer@started.
            ended_until: Only runs that ended or were refused at or before this moment:
                pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a
                time ago such as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such
                as run:reviewer@started.
            from_: Start of the range, exclusive: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. Default: the
                beginning of the log.
            label: Only runs with exactly this label (repeatable).
            label_prefix: Only runs whose label starts with this text (repeatable), or is
                a `label`. Requires `requester`, `tree` or `rule`.
            limit: Maximum number of runs.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            outcome: Only runs that ended with this outcome (repeatable).
            requester: Only runs requested by this session: its key in any spelling, its
                session id, or `current`.
            respawned_from: Only respawns of the run with this id.
            rule: Only runs refused by this rule.
            since: Only runs created at or after this moment: pos:18342, an RFC 3339
                instant with an offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or
                -12h (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started.
            stage: Only runs at this stage (repeatable).
            status: Only runs with this status (repeatable).
            to: End of the range, inclusive: pos:18342, an RFC 3339 instant with an offset
                such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m, h, d
                or w), or a stage of a run such as run:reviewer@started. Default: now.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            until: Only runs created before this moment: pos:18342, an RFC 3339 instant
                with an offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h
                (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started.
        """
        request: PageRequest[TimelineView, RunBarView] = page_request(
            "listTimeline",
            path_of("timeline"),
            {
                "agentId": agent_id,
                "at": at,
                "buckets": buckets,
                "cursor": cursor,
                "depth": depth,
                "endedSince": ended_since,
                "endedUntil": ended_until,
                "from": from_,
                "label": label,
                "labelPrefix": label_prefix,
                "limit": limit,
                "minPosition": min_position,
                "outcome": outcome,
                "requester": requester,
                "respawnedFrom": respawned_from,
                "rule": rule,
                "since": since,
                "stage": stage,
                "status": status,
                "to": to,
                "tree": tree,
                "until": until,
            },
            "TimelineView",
        )
        return (await self.answer(request)).value

    async def list_tree_usage(
        self,
        tree: Sequence[str],
        *,
        at: str | datetime | None = None,
        min_position: int | None = None,
    ) -> TreeUsageListView:
        """Sum tokens and cost of several trees.

        Returns the number of runs that the token may see in each tree, with their tokens and
        cost. Of each tree the newest 10,000 runs are counted (5,000 for a token that may not
        see all sessions). Running runs count with their usage so far: the newest 500 of all
        these trees. A session that was spawned is not a root and has no runs of a tree.

        Args:
            tree: Root session of a tree: a session key, a session id, or `current`
                (repeatable, 50 at most).
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: Request[TreeUsageListView] = read_request(
            "listTreeUsage",
            path_of("trees", "usage"),
            {"tree": tree, "at": at, "minPosition": min_position},
            "TreeUsageListView",
        )
        return (await self.answer(request)).value

    async def make_page_code(self) -> PageCodeAnswer:
        """Create a sign-in code for the page.

        Needs the administrator's token or one of the configuration. The code works once,
        within 60 seconds, at any server of the log. `spawnlog open` opens the page with it;
        the code is in the URL fragment, which browsers never send.
        """
        request: Request[PageCodeAnswer] = plain_request(
            "makePageCode", "POST", path_of("page-codes"), "PageCodeAnswer", again=True
        )
        return (await self.answer(request)).value

    async def patch_shared_context(
        self, key: str, changes: Mapping[str, Any], *, if_match: str = "*"
    ) -> SharedContextView | SharedSizesView:
        """Change the context that a session shares.

        A JSON merge patch (RFC 7396). Needs a token that acts for the session, and `If-Match`
        with the `ETag` that was read, or `*`. Active children keep the context that they
        started with. A patch without changes records nothing. Without scope `content`, the
        response has only `session_key`, `version`, `position` and `sizes`.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            changes: A JSON merge patch. Keys have their new values; None removes a key.
            if_match: The `ETag` that was read, or `*`.
        """
        request: Request[SharedContextView | SharedSizesView] = plain_request(
            "patchSharedContext",
            "PATCH",
            path_of("sessions", key, "shared-context"),
            "SharedContextView",
            "SharedSizesView",
            body=changes,
            headers={"If-Match": if_match},
        )
        return (await self.answer(request)).value

    async def prolong_claim(
        self, run_id: str, epoch: int, *, lease_seconds: float | None = None
    ) -> HeartbeatAnswer:
        """Renew the claim of a run: a heartbeat.

        Send about three heartbeats per lease. If the lease expires, the run ends as `error`
        (`interrupted: …`), or as `timeout` after its time limit. If `stop` is set, the lease
        is not renewed: stop the execution and report the end before it expires.

        Args:
            run_id: Run id.
            epoch: Epoch returned by the claim. A report with an older epoch is refused.
            lease_seconds: Seconds until the claim expires unless a heartbeat renews it.
        """
        request: Request[HeartbeatAnswer] = plain_request(
            "prolongClaim",
            "POST",
            path_of("runs", run_id, "heartbeat"),
            "HeartbeatAnswer",
            body={"epoch": epoch, "leaseSeconds": lease_seconds},
            again=True,
        )
        return (await self.answer(request)).value

    async def provide_transcript(
        self,
        key: str,
        entries: Sequence[EntryBody],
        *,
        total_tokens: int | None = None,
        idempotency_key: str | None = None,
    ) -> TranscriptProvidedAnswer:
        """Upload the transcript of a session that runs elsewhere.

        For a requester that runs elsewhere: a child spawned with `context` `fork` starts with
        the last transcript uploaded before its spawn. Upload the whole conversation each
        time; it replaces the previous one. An unchanged transcript records nothing. `tokens`
        is `total_tokens`; by default the last usage entry or a quarter of the bytes,
        whichever is more. The transcript of a session that was spawned here cannot be
        uploaded: it is that of its runs.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            entries: The whole conversation, oldest entry first.
            total_tokens: Token count of the conversation, if known.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[TranscriptProvidedAnswer] = command_request(
            "provideTranscript",
            "PUT",
            path_of("sessions", key, "transcript"),
            {"entries": entries, "totalTokens": total_tokens},
            "TranscriptProvidedAnswer",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def redrive_announcement(
        self,
        id: str,
        reason: str,
        *,
        webhook: str | None = None,
        hook: Literal["subagentSpawned", "subagentEnded", "onSubagentEnded"] | None = None,
        idempotency_key: str | None = None,
    ) -> RedrivenAnswer:
        """Send a parked announcement again, or call a parked hook.

        Uses the addresses and secrets of the current configuration, with the full number of
        attempts. With `hook`, that hook of the run is called again instead, at the address in
        the run's configuration, at any stage of the run. The reason is recorded.

        Args:
            id: Announcement id, which is the id of its run.
            reason: Reason, which is recorded.
            webhook: Webhook to send to. Default: each one with a parked delivery.
            hook: Call this hook of the run again, in place of sending.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[RedrivenAnswer] = command_request(
            "redriveAnnouncement",
            "POST",
            path_of("announcements", id, "redrive"),
            {"reason": reason, "webhook": webhook, "hook": hook},
            "RedrivenAnswer",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def redrive_announcements(
        self,
        reason: str,
        *,
        webhook: str | None = None,
        after: int | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> RedrivenManyAnswer:
        """Send parked announcements again, up to 100 at once.

        Covers the announcements to the sessions of the token, in the order of `list_ledger`
        with `state`. Each is sent as by the redrive of one announcement; all are recorded
        together, or none. `refused` names those that stay parked. If `more_after` is given,
        more may be parked: continue with it as `after`. Hooks are not called.

        Args:
            reason: Reason, which is recorded for each.
            webhook: Only deliveries to this webhook. Default: to any.
            after: Only announcements after this position: `more_after` of the previous
                answer.
            until: Only announcements up to this position. What fails again meanwhile is
                parked at a later one: give the same `until` with each `after`, so that none
                is sent twice.
            limit: Maximum number of announcements.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[RedrivenManyAnswer] = command_request(
            "redriveAnnouncements",
            "POST",
            path_of("announcements", "redrive"),
            {"reason": reason, "webhook": webhook, "after": after, "until": until, "limit": limit},
            "RedrivenManyAnswer",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def report_transcript(
        self, run_id: str, epoch: int, first: int, entries: Sequence[EntryBody]
    ) -> ReportedAnswer:
        """Report transcript entries of a claimed run.

        Report entries in order, as they occur; the child's input is already stored. A repeat
        is a no-op. A gap is refused with the next expected number. A report does not renew
        the lease; only a heartbeat does.

        Args:
            run_id: Run id.
            epoch: Epoch returned by the claim. A report with an older epoch is refused.
            first: Number of the first of these entries among all that you report, from 1.
                Entries that are already stored stay unchanged.
            entries: The entries, oldest first.
        """
        request: Request[ReportedAnswer] = plain_request(
            "reportTranscript",
            "POST",
            path_of("runs", run_id, "transcript"),
            "ReportedAnswer",
            body={"epoch": epoch, "first": first, "entries": entries},
            again=True,
        )
        return (await self.answer(request)).value

    async def respawn(
        self,
        run_id: str,
        *,
        changes: Mapping[str, Any] | None = None,
        scripts: Literal["again", "recorded"] | None = None,
        transcript: TranscriptChoice | None = None,
        config_revision: int | None = None,
        idempotency_key: str | None = None,
    ) -> AcceptedSpawn:
        """Spawn again from an earlier run, with changes.

        Spawns with the request of an earlier run and with changes, whatever the outcome of
        that run. It is decided and answered like any other spawn. The new run refers to the
        earlier one as `respawned_from`; the earlier run lists it in `respawns`. The requester
        is the same session, unless the changes name another one that the token acts for.
        Another requester, and `transcript`, also need the scope `content`.

        Args:
            run_id: Run id.
            changes: A JSON merge patch (RFC 7396) over the request of the earlier run, in
                the form of `POST /v1/spawns`; None removes a member.
            scripts: `recorded`: no context script runs; the recorded outputs of the
                earlier run are reused. Refused if an output is not recorded or a script has
                changed.
            transcript: Start the child with the earlier run's transcript up to an entry.
            config_revision: Decide under this earlier configuration revision. Needs a
                token for the sessions `*`, or the scope `admin`.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[AcceptedSpawn] = command_request(
            "respawn",
            "POST",
            path_of("runs", run_id, "respawn"),
            {
                "changes": changes,
                "scripts": scripts,
                "transcript": transcript,
                "configRevision": config_revision,
            },
            "AcceptedSpawn",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def revoke_page_token(self) -> RevokedAnswer:
        """Sign out of the page.

        Revokes the page token of this request. Other tokens are revoked in the configuration.
        """
        request: Request[RevokedAnswer] = plain_request(
            "revokePageToken", "DELETE", path_of("page-tokens", "current"), "RevokedAnswer"
        )
        return (await self.answer(request)).value

    async def send_message(
        self,
        run_id: str,
        message: str,
        *,
        mode: Literal["send", "steer"] | None = None,
        idempotency_key: str | None = None,
    ) -> FinishedAnswer | ContinuedAnswer | QueuedAnswer | SteeredAnswer:
        """Send a message to the session of a run.

        Sends a message to the session of this run; any run of the session will do. The
        message becomes a new run, which `continues` the last one. While a run is active,
        messages are queued (202, `queued`): at most 20, in order, each started when the
        previous run is announced. With mode `steer`, the active run is ended without an
        announcement and the new run replaces it (202, `accepted`); if the run is over,
        nothing changes (200, `done`). A session takes messages until it is archived; with
        mode `session`, until it is stopped. If the last run was announced, the new run counts
        again as an active child of the parent session. It uses the same workspace and the
        current configuration; no context script runs again. A refusal is recorded.

        Args:
            run_id: Run id.
            message: Text of the message; must not be blank.
            mode: `send` queues the message after the active run, if any. `steer` ends the
                active run and continues with the message (at most 4000 characters, one
                message per 2 s).
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[FinishedAnswer | ContinuedAnswer | QueuedAnswer | SteeredAnswer] = (
            command_request(
                "sendMessage",
                "POST",
                path_of("runs", run_id, "messages"),
                {"message": message, "mode": mode},
                "FinishedAnswer",
                "ContinuedAnswer",
                "QueuedAnswer",
                "SteeredAnswer",
                idempotency_key=idempotency_key,
            )
        )
        return (await self.answer(request)).value

    async def spawn(
        self,
        task: str | Sequence[str],
        requester: str | RequesterBody,
        *,
        label: str | None = None,
        agent_id: str | None = None,
        model: str | None = None,
        thinking: str | None = None,
        run_timeout_seconds: float | None = None,
        sandbox: Literal["inherit", "require"] | None = None,
        context: Literal["isolated", "fork"] | None = None,
        light_context: bool | None = None,
        expects_completion_message: bool | None = None,
        thread: bool | None = None,
        mode: Literal["run", "session"] | None = None,
        cleanup: Literal["delete", "keep"] | None = None,
        attachments: Sequence[AttachmentBody] | None = None,
        attach_as: AttachAsBody | None = None,
        context_preamble: str | None = None,
        shared_context: Mapping[str, Any] | None = None,
        shared_context_scope: Literal["family", "child"] | None = None,
        parallel: bool | None = None,
        depends_on: Sequence[str | DependencyBody] | None = None,
        chain_after: str | DependencyBody | None = None,
        idempotency_key: str | None = None,
    ) -> AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch:
        """Spawn a sub-agent, or several.

        Decides the spawn, prepares the child's context, creates its session and queues its
        run. The response comes when the session exists; the decision is durable by then. A
        disconnect of the caller cancels nothing. Refusals are recorded too. A list of tasks
        is decided as one: the response has a `batch_id` and all `runs`; a refusal names the
        run and the task that caused it. The requester may be given by its session id, or as
        `current` with a token for one session. Recorded facts about the requester override
        the request.

        Args:
            task: The task. With `parallel`, a list of tasks: one run for each, or none.
            label: Label of the run, one line, by which others can name it.
            agent_id: The agent that runs the child, or an alias of it. Default: the
                requester's agent.
            model: The model, as `provider/name`. Default: as configured.
            thinking: The thinking level: `off`, `minimal`, `low`, `medium`, `high`,
                `xhigh`, `max` or `adaptive`. Default: as configured.
            run_timeout_seconds: Timeout in seconds, rounded down; 0 or less: no limit.
                Default: as configured.
            sandbox: `require`: refuse the spawn if the child would not be in a sandbox.
            context: `fork`: the child begins with the requester's conversation up to now;
                only for the requester's own agent. Default: in a channel thread,
                `session.threadBindings.defaultSpawnContext`; otherwise `isolated`.
            light_context: Leave the workspace's bootstrap files out of the prompt.
            expects_completion_message: If false, the end of the run is not announced.
            thread: Bind the child to a thread of the requester's channel. `mode` then
                defaults to `session`: the child stays open and takes messages until it is
                stopped.
            mode: `run`: one run. `session`: a session that stays; requires `thread`.
            cleanup: `delete`: archive the session right after the announcement. `keep`
                (default): archive it later.
            attachments: Files to put into the child's workspace, within the limits of
                `tools.sessions_spawn.attachments`. Refused unless enabled there.
            attach_as: Path where the child's prompt says to find the files.
            context_preamble: Text to put in front of the child's system prompt.
            shared_context: Keys and JSON values, at most 64 KiB together with those that
                the requester's session shares already. They are added to the prompts of the
                child, of later children of this session, and of their descendants.
            shared_context_scope: `child`: share the keys only with this child and its
                descendants.
            parallel: Run a list of tasks in parallel. Either all runs are admitted and
                prepared, or none is. They are labeled `<label>-1`, `<label>-2` and so on.
            depends_on: Earlier runs of the same tree to wait for, by label or id. The
                child is prepared at once, and queued when all of them have ended with
                `success` and their descendants are done. With `{"run": …, "require":
                "ended"}`, any outcome will do.
            chain_after: One more run to wait for, as in `depends_on`.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch] = command_request(
            "spawn",
            "POST",
            path_of("spawns"),
            {
                "task": task,
                "requester": requester_object(requester),
                "label": label,
                "agentId": agent_id,
                "model": model,
                "thinking": thinking,
                "runTimeoutSeconds": run_timeout_seconds,
                "sandbox": sandbox,
                "context": context,
                "lightContext": light_context,
                "expectsCompletionMessage": expects_completion_message,
                "thread": thread,
                "mode": mode,
                "cleanup": cleanup,
                "attachments": attachments,
                "attachAs": attach_as,
                "contextPreamble": context_preamble,
                "sharedContext": shared_context,
                "sharedContextScope": shared_context_scope,
                "parallel": parallel,
                "dependsOn": depends_on,
                "chainAfter": chain_after,
            },
            "AcceptedBatchOfOne",
            "AcceptedSpawn",
            "AcceptedBatch",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def start_verification(self) -> VerificationStartView:
        """Start a verification of the log.

        Compares the whole log with its hash chain, and texts, transcripts and read tables
        with the log, as `spawnlog log verify` does. It runs in separate read-only processes.
        `get_log_head` returns the progress and the result. Each log has at most one
        verification at a time, over all servers and commands: if one is in progress, it is
        returned and `began` is false. It continues in the background until it is done or the
        server ends. Needs the scope `admin`.
        """
        request: Request[VerificationStartView] = plain_request(
            "startVerification",
            "POST",
            path_of("log", "verifications"),
            "VerificationStartView",
            again=True,
        )
        return (await self.answer(request)).value

    async def stop_run(
        self, run_id: str, *, reason: str | None = None, idempotency_key: str | None = None
    ) -> StoppedAnswer:
        """Stop a run and everything it has spawned.

        A run in preparation or in the queue ends at once. An executing run ends when its
        processes have exited: wait with `get_run` with `wait` and `until`. Stopping a
        finished run is a no-op.

        Args:
            run_id: Run id.
            reason: Reason, recorded with the stop.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[StoppedAnswer] = command_request(
            "stopRun",
            "POST",
            path_of("runs", run_id, "stop"),
            {"reason": reason},
            "StoppedAnswer",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def stop_session(
        self, key: str, *, reason: str | None = None, idempotency_key: str | None = None
    ) -> SessionStoppedAnswer:
        """Stop a session's own run and everything below it.

        Stops the active run of the session, if any, and all its descendants. A child with
        mode `session` is closed: it takes no more messages, and is archived with all its runs
        when the last one is announced. A repeat is a no-op.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            reason: Reason, recorded with the stop.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[SessionStoppedAnswer] = command_request(
            "stopSession",
            "POST",
            path_of("sessions", key, "stop"),
            {"reason": reason},
            "SessionStoppedAnswer",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def stop_verification(self) -> VerificationStopView:
        """Stop the running verification of the log.

        The verification in progress stops within some seconds, in whichever server or command
        it runs. `spawnlog log verify --resume` continues it. Needs the scope `admin`.
        """
        request: Request[VerificationStopView] = plain_request(
            "stopVerification",
            "POST",
            path_of("log", "verifications", "current", "stop"),
            "VerificationStopView",
            again=True,
        )
        return (await self.answer(request)).value

    async def trade_page_code(self, code: str) -> PageTokenAnswer:
        """Exchange a sign-in code for a page token.

        Needs no token; the code identifies the caller. The page token has the id, scopes and
        sessions of the token that created the code. It is valid as long as that token, and at
        most 12 hours. A used or expired code is refused with 401.

        Args:
            code: The one-time code.
        """
        request: Request[PageTokenAnswer] = plain_request(
            "tradePageCode", "POST", path_of("page-tokens"), "PageTokenAnswer", body={"code": code}
        )
        return (await self.answer(request)).value

    def what_if(
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_text: str | None = None,
        config_name: str | None = None,
        patch: Sequence[Mapping[str, Any]] | None = None,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        filter: WhatIfFilter | None = None,
        only: Sequence[
            Literal[
                "same",
                "newly-refused",
                "newly-allowed",
                "different-agent",
                "different-model",
                "different-plan",
                "different-context",
                "different-announcement",
                "not-replayable",
            ]
        ]
        | None = None,
        cascade: bool | None = None,
        prompts: bool | None = None,
    ) -> AsyncIterator[
        WhatIfVerdictView | WhatIfProgressView | WhatIfTotalsView | WhatIfFailureView
    ]:
        """Replay recorded decisions under another configuration.

        Decides recorded spawns and messages again under another configuration, each from the
        facts recorded for it. It calls no script, runtime or hook, looks nothing up and
        writes nothing. The answer is JSON lines: one for each decision with its verdict, one
        about every second with the progress, and the totals last. An answer that ends with
        `failure`, or without totals, is incomplete. Requires a token for all sessions (`*`),
        and scope `content` for `prompts`.

        Args:
            config: The configuration, as a JSON object.
            config_text: The configuration, as JSON5 text.
            config_name: File name of `config_text` in error messages.
            patch: JSON Patch (RFC 6902) of the revision under which each decision was
                made.
            from_: Start of the range: pos:18342, an RFC 3339 instant with an offset such
                as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m, h, d or w),
                or a stage of a run such as run:reviewer@started. Default: the beginning of
                the log.
            to: End of the range, in the same forms. Default: now.
            only: Verdicts to report. Empty: all.
            cascade: Assume that newly refused runs never ran.
            prompts: Compose the prompts again and compare them.
        """
        request: LinesRequest[
            WhatIfVerdictView | WhatIfProgressView | WhatIfTotalsView | WhatIfFailureView
        ] = lines_request(
            "whatIf",
            path_of("what-if"),
            {
                "config": config,
                "configText": config_text,
                "configName": config_name,
                "patch": patch,
                "from": from_,
                "to": to,
                "filter": filter,
                "only": only,
                "cascade": cascade,
                "prompts": prompts,
            },
            "WhatIfVerdictView",
            "WhatIfProgressView",
            "WhatIfTotalsView",
            "WhatIfFailureView",
        )
        return self._lines(request)

    async def write_preamble(
        self, key: str, preamble: str, *, idempotency_key: str | None = None
    ) -> PreambleAnswer:
        """Set the preamble of a session.

        Replaces the spawn's `context_preamble` for later runs; the same length limit applies.
        The active run keeps its preamble. A blank text removes the preamble.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            preamble: Text in front of the child's system prompt.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[PreambleAnswer] = command_request(
            "writePreamble",
            "PUT",
            path_of("sessions", key, "preamble"),
            {"preamble": preamble},
            "PreambleAnswer",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    async def yield_session(
        self, key: str, *, message: str | None = None, idempotency_key: str | None = None
    ) -> YieldedAnswer:
        """End the turn of a session and wait for its children.

        Pauses the session until its sub-agents report. The active run must end now, is ended
        after five seconds, and is not announced. Reports of sub-agents start a new run of the
        session with the reports as its message; a list of tasks reports once, when all are
        done. Refused if the session has no active sub-agent and no undelivered report. A
        repeat is a no-op.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            message: Text that the response repeats; it has no other effect.
            idempotency_key: A repeat with the same key and body returns the first answer,
                with `is_replayed`. A key is valid for one token and path, for seven days.
                Default: a new key for each call.
        """
        request: Request[YieldedAnswer] = command_request(
            "yieldSession",
            "POST",
            path_of("sessions", key, "yield"),
            {"message": message},
            "YieldedAnswer",
            idempotency_key=idempotency_key,
        )
        return (await self.answer(request)).value

    def found_events(
        self,
        *,
        agent_id: str | None = None,
        becomes: str | None = None,
        changes: bool | None = None,
        cursor: str | None = None,
        field: str | None = None,
        from_: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        rule: str | None = None,
        run_id: str | None = None,
        session: str | None = None,
        to: str | datetime | None = None,
        tree: str | None = None,
        types: Sequence[str] = (),
        when: str | None = None,
    ) -> AsyncIterator[BreakpointView]:
        """Yield the items of all pages of `find_events`; request pages as needed.

        Returns the first positions between `from_` and `to` at which a condition begins to
        hold (`when`), a field of a run or session becomes a value (`field` with `becomes` or
        `changes`), or an event was recorded (`types`, `rule`). The numbers of a condition
        count runs by status, `spawned` and `archived` runs, and `active` places; `config` is
        the configuration revision and `position` the position. `run_id`, `session`, `tree`,
        `agent_id` and `rule` restrict the runs. Each request scans a bounded number of
        events: there may be more as long as `next_cursor` is set. Without `run_id`, `session`
        or `tree` it requires a token for all sessions (`*`).

        Args:
            agent_id: Only runs of this agent, as of each event.
            becomes: Find where the field becomes this value. Requires `field`.
            changes: Find every change of the field. Requires `field`.
            cursor: `next_cursor` of the previous page.
            field: Find where this field of a run, or of `session`, changes. Requires
                `becomes` or `changes`.
            from_: Start of the range, exclusive: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. Default: the
                beginning of the log.
            limit: Maximum number of positions.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            rule: Only refusals by this rule.
            run_id: Only events about this run.
            session: Only this session and the runs that it requested: a session key, a
                session id, or `current`.
            to: End of the range, inclusive: pos:18342, an RFC 3339 instant with an offset
                such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m, h, d
                or w), or a stage of a run such as run:reviewer@started. Default: now.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            types: Only events of these types (repeatable, or separated by commas).
            when: Find where this condition begins to hold: comparisons (`> >= < <= = !=`)
                of numbers, with `and`, `or`, `not` and parentheses.
        """
        request: PageRequest[SearchView, BreakpointView] = page_request(
            "findEvents",
            path_of("events", "find"),
            {
                "agentId": agent_id,
                "becomes": becomes,
                "changes": changes,
                "cursor": cursor,
                "field": field,
                "from": from_,
                "limit": limit,
                "minPosition": min_position,
                "rule": rule,
                "runId": run_id,
                "session": session,
                "to": to,
                "tree": tree,
                "types": types,
                "when": when,
            },
            "SearchView",
        )
        return self._items(request)

    def differences(
        self,
        from_: str | datetime,
        to: str | datetime,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        run_id: str | None = None,
        session: str | None = None,
        tree: str | None = None,
    ) -> AsyncIterator[DiffItemView]:
        """Yield the items of all pages of `get_diff`; request pages as needed.

        Returns the changes of a run, a session, a tree or, for a token with the pattern `*`,
        the whole registry: items that were added, removed or changed, each with a patch (RFC
        6902) from left to right, in which `None` is an absent item. Items are ordered by
        their first event between the two moments. Each request scans a bounded number of
        events, so a page may be short or empty: the diff is complete only when `next_cursor`
        is None; `counts` are those of the page. In the diff of a tree or of the registry, a
        session has only the fields that follow from its own events; with `session`, it has
        all that `get_session` shows.

        Args:
            from_: Left side of the comparison: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started.
            to: Right side of the comparison, in the same forms; it may be the earlier
                moment.
            cursor: `next_cursor` of the previous page.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            run_id: Only this run.
            session: Only this session, as `GET /v1/sessions/{key}` shows it: a session
                key, a session id, or `current`.
            tree: Only this root session and the runs and sessions below it.
        """
        request: PageRequest[DiffView, DiffItemView] = page_request(
            "getDiff",
            path_of("diff"),
            {
                "from": from_,
                "to": to,
                "cursor": cursor,
                "limit": limit,
                "minPosition": min_position,
                "runId": run_id,
                "session": session,
                "tree": tree,
            },
            "DiffView",
            lists=("added", "removed", "changed"),
        )
        return self._items(request)

    def run_history(
        self,
        run_id: str,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        field: Sequence[str] = (),
        limit: int | None = None,
        min_position: int | None = None,
    ) -> AsyncIterator[StateChangeView]:
        """Yield the items of all pages of `get_run_history`; request pages as needed.

        Returns, for each event of the run, its changes as a patch (RFC 6902) from the
        previous state of the run to the next; the first patch applies to `{}`. All patches in
        order give the run at `version`. `set_by` maps each field of the newest state, or of
        the state as of `at`, to the event that last set it; with `field`, only those fields.
        An erased text is None, but the event that set it is still known. A token with scope
        `content` gets the run with its texts, others a summary.

        Args:
            run_id: Run id.
            after: Only states after this version: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            field: Only changes of this field of the run (repeatable): its name, or a JSON
                pointer such as `/announcement/state`.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: PageRequest[RunHistoryView, StateChangeView] = page_request(
            "getRunHistory",
            path_of("runs", run_id, "history"),
            {"after": after, "at": at, "field": field, "limit": limit, "minPosition": min_position},
            "RunHistoryView",
        )
        return self._items(request)

    def transcript(
        self,
        run_id: str,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        last: int | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        tools: bool | None = None,
        wait: float | None = None,
    ) -> AsyncIterator[TranscriptEntryView]:
        """Yield the items of all pages of `get_run_transcript`; request pages as needed.

        Returns entries in order, also before the run ends. The first entry of the run's own
        is its message. Tool calls and token counts are included with `tools=True`. If the
        child's context was forked, a leading `session` entry says how many of the following
        entries (`entries`) come from the requester's session. With `at`, it has the entries
        that had arrived when that position was recorded, or all of them if the run had ended
        by then. To follow a run, repeat the request with `wait` and with `after` set to
        `next_after`, or to `last_sequence` if that is None, until `complete` is true and
        `next_after` is None. Alternatively, send `Accept: text/event-stream`: each entry is
        an event `entry` whose `id` is its sequence number, and an event `end` follows the
        last one. The stream resumes after `Last-Event-ID`, else after `after`, else at the
        first entry.

        Args:
            run_id: Run id.
            after: Return only items after this number: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            last: Return this number of entries from the end. Cannot be combined with
                `after` or `limit`.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            tools: Include tool calls and token counts.
            wait: How long to wait for an entry after `after`, or for the end of the run,
                60 seconds at most. Cannot be combined with `at` or `last`.
        """
        request: PageRequest[TranscriptView, TranscriptEntryView] = page_request(
            "getRunTranscript",
            path_of("runs", run_id, "transcript"),
            {
                "after": after,
                "at": at,
                "last": last,
                "limit": limit,
                "minPosition": min_position,
                "tools": tools,
                "wait": wait,
            },
            "TranscriptView",
        )
        return self._items(request)

    def announcements(
        self,
        key: str,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        wait: float | None = None,
    ) -> AsyncIterator[AnnouncementView]:
        """Yield the items of all pages of `list_announcements`; request pages as needed.

        Returns announcements after `after`, by position. With `wait`, an empty response waits
        for the first one. `origin` says where to send the result, if known. With `at`, each
        announcement is shown as of then, including `state`, `acknowledged_at` and
        `deliveries`.

        Args:
            key: Session key in any spelling, session id, or `current` for the session
                that the token acts for.
            after: Return only items after this number: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            wait: How long to wait, 60 seconds at most.
        """
        request: PageRequest[InboxView, AnnouncementView] = page_request(
            "listAnnouncements",
            path_of("sessions", key, "announcements"),
            {"after": after, "at": at, "limit": limit, "minPosition": min_position, "wait": wait},
            "InboxView",
        )
        return self._items(request)

    def events(
        self,
        *,
        actor: str | None = None,
        after: int | None = None,
        at: str | datetime | None = None,
        before: int | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        run_id: str | None = None,
        tree: str | None = None,
        types: Sequence[str] = (),
    ) -> AsyncIterator[EventView]:
        """Yield the items of all pages of `list_events`; request pages as needed.

        Returns a page of events after `after`, or the newest ones with `before` or
        `order=desc`, as of `at`. With `Accept: text/event-stream` it is a live stream that
        resumes after `Last-Event-ID`, else after `after`, else at the head. A filtered stream
        also sends `checkpoint` events, so that a resume skips the events that were filtered
        out. A reader that is too slow is disconnected and may resume where it stopped. Each
        request scans a bounded number of events, so a page may be short or empty: continue
        after `next_after` until it equals `head`, or, newest first, before `next_before`
        until that is None.

        Args:
            actor: Only events recorded for this actor: a kind (`token`, `child`,
                `anybody`, `system`), the id of a token, or the key of the session that acted.
            after: Only events after this position. Default: the beginning of the log; for
                a stream, its head.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            before: Only events before this position, newest first.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            order: Order by position; `desc` is newest first. Default: `asc`; with
                `before`, `desc`.
            run_id: Only events about this run.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            types: Only events of these types (repeatable, or separated by commas).
        """
        request: PageRequest[EventListView, EventView] = page_request(
            "listEvents",
            path_of("events"),
            {
                "actor": actor,
                "after": after,
                "at": at,
                "before": before,
                "limit": limit,
                "minPosition": min_position,
                "order": order,
                "runId": run_id,
                "tree": tree,
                "types": types,
            },
            "EventListView",
        )
        return self._items(request)

    def ledger(
        self,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
        state: Literal["parked", "due", "delivered", "acknowledged"] | None = None,
    ) -> AsyncIterator[AnnouncementView]:
        """Yield the items of all pages of `list_ledger`; request pages as needed.

        Returns the announcements of all sessions that the token covers, in this `state` or in
        any, by position, after `after`. A parked announcement is listed at the position where
        it was last parked. `deliveries` has the state, attempts and next attempt for each
        webhook. Each request scans a bounded number of announcements, so a page may be short
        or empty: the ledger is complete only when `next_after` is None.

        Args:
            after: Return only items after this number: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            state: Only announcements in this state. `parked`: delivery to some webhook
                was abandoned; `due`: delivery to some webhook is still to come; `delivered`:
                in the inbox, not acknowledged; `acknowledged`: acknowledged by its session.
        """
        request: PageRequest[InboxView, AnnouncementView] = page_request(
            "listLedger",
            path_of("announcements"),
            {"after": after, "at": at, "limit": limit, "minPosition": min_position, "state": state},
            "InboxView",
        )
        return self._items(request)

    def revisions(
        self,
        *,
        at: str | datetime | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        min_position: int | None = None,
    ) -> AsyncIterator[RevisionSummary]:
        """Yield the items of all pages of `list_revisions`; request pages as needed.

        Returns the revisions of the configuration, newest first, with the times between which
        each was active. The first one is the active revision, now or as of `at`. Requires a
        token for all sessions (`*`).

        Args:
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            cursor: `next_cursor` of the previous page.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: PageRequest[RevisionListView, RevisionSummary] = page_request(
            "listRevisions",
            path_of("config", "revisions"),
            {"at": at, "cursor": cursor, "limit": limit, "minPosition": min_position},
            "RevisionListView",
        )
        return self._items(request)

    def run_events(
        self,
        run_id: str,
        *,
        after: int | None = None,
        at: str | datetime | None = None,
        limit: int | None = None,
        min_position: int | None = None,
    ) -> AsyncIterator[EventWithTexts | EventView]:
        """Yield the items of all pages of `list_run_events`; request pages as needed.

        Returns events after `after`, in order, with their envelopes. Free texts are
        references. A token with scope `content` also gets the texts of failures:
        `texts.error` of an `EffectAttempted` says why an effect failed, and `texts.errors` of
        `ScriptsResolved` why context scripts failed, by their ids. `texts.reason` is the
        reason of a `StopRequested` or `EffectRedriven`; if a stop ended a run at once, its
        reason is `texts.error` of `RunEnded`.

        Args:
            run_id: Run id.
            after: Return only items after this number: `next_after` of the previous page.
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
        """
        request: PageRequest[RunEventListView, EventWithTexts | EventView] = page_request(
            "listRunEvents",
            path_of("runs", run_id, "events"),
            {"after": after, "at": at, "limit": limit, "minPosition": min_position},
            "RunEventListView",
        )
        return self._items(request)

    def runs(
        self,
        *,
        agent_id: Sequence[str] = (),
        at: str | datetime | None = None,
        cause: str | None = None,
        cursor: str | None = None,
        depth: int | None = None,
        ended_since: str | None = None,
        ended_until: str | None = None,
        label: Sequence[str] = (),
        label_prefix: Sequence[str] = (),
        limit: int | None = None,
        min_position: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        outcome: Sequence[Literal["success", "error", "timeout", "stopped", "unknown"]] = (),
        q: str | None = None,
        requester: str | None = None,
        respawned_from: str | None = None,
        rule: str | None = None,
        since: str | datetime | None = None,
        stage: Sequence[
            Literal[
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
        ] = (),
        status: Sequence[
            Literal[
                "preparing",
                "waiting",
                "queued",
                "running",
                "done",
                "failed",
                "timeout",
                "stopped",
                "unknown",
                "refused",
            ]
        ] = (),
        totals: bool | None = None,
        tree: str | None = None,
        until: str | datetime | None = None,
    ) -> AsyncIterator[RunSummary]:
        """Yield the items of all pages of `list_runs`; request pages as needed.

        Runs as summaries, newest first. All pages of one listing show one snapshot: the
        cursor keeps the position at which the listing began. Each request scans a bounded
        number of runs, so a page may be short or empty for a token that may see few of them.
        The listing is complete only when `next_cursor` is None.

        Args:
            agent_id: Only runs of this agent, after any override (repeatable).
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            cause: Only runs that failed, timed out or have an unknown outcome with this
                cause: a `cause` of `/v1/summary`, or the last line of an error.
            cursor: `next_cursor` of the previous page.
            depth: Exact depth. Requires `requester`, `tree` or `rule`.
            ended_since: Only runs that ended or were refused after this moment:
                pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a
                time ago such as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such
                as run:reviewer@started.
            ended_until: Only runs that ended or were refused at or before this moment:
                pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a
                time ago such as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such
                as run:reviewer@started.
            label: Only runs with exactly this label (repeatable).
            label_prefix: Only runs whose label starts with this text (repeatable), or is
                a `label`.
            limit: Maximum number of items.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            order: Order by creation time.
            outcome: Only runs that ended with this outcome (repeatable).
            q: Only runs whose label, task, error or rule contain each of these words, 8
                at most, ignoring case. Searches the first 10,000 characters of a task and of
                an error; for a token without scope `content`, only the previews that lists
                show.
            requester: Only runs requested by this session: its key in any spelling, its
                session id, or `current`.
            respawned_from: Only respawns of the run with this id.
            rule: Only runs refused by this rule.
            since: Only runs created at or after this moment: pos:18342, an RFC 3339
                instant with an offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or
                -12h (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started.
            stage: Only runs at this stage (repeatable).
            status: Only runs with this status (repeatable).
            totals: Include the number of runs by status, agent and rule, and their tokens
                and cost, in the first page.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            until: Only runs created before this moment: pos:18342, an RFC 3339 instant
                with an offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h
                (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started.
        """
        request: PageRequest[RunListView, RunSummary] = page_request(
            "listRuns",
            path_of("runs"),
            {
                "agentId": agent_id,
                "at": at,
                "cause": cause,
                "cursor": cursor,
                "depth": depth,
                "endedSince": ended_since,
                "endedUntil": ended_until,
                "label": label,
                "labelPrefix": label_prefix,
                "limit": limit,
                "minPosition": min_position,
                "order": order,
                "outcome": outcome,
                "q": q,
                "requester": requester,
                "respawnedFrom": respawned_from,
                "rule": rule,
                "since": since,
                "stage": stage,
                "status": status,
                "totals": totals,
                "tree": tree,
                "until": until,
            },
            "RunListView",
        )
        return self._items(request)

    def timeline(
        self,
        *,
        agent_id: Sequence[str] = (),
        at: str | datetime | None = None,
        buckets: int | None = None,
        cursor: str | None = None,
        depth: int | None = None,
        ended_since: str | None = None,
        ended_until: str | None = None,
        from_: str | datetime | None = None,
        label: Sequence[str] = (),
        label_prefix: Sequence[str] = (),
        limit: int | None = None,
        min_position: int | None = None,
        outcome: Sequence[Literal["success", "error", "timeout", "stopped", "unknown"]] = (),
        requester: str | None = None,
        respawned_from: str | None = None,
        rule: str | None = None,
        since: str | datetime | None = None,
        stage: Sequence[
            Literal[
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
        ] = (),
        status: Sequence[
            Literal[
                "preparing",
                "waiting",
                "queued",
                "running",
                "done",
                "failed",
                "timeout",
                "stopped",
                "unknown",
                "refused",
            ]
        ] = (),
        to: str | datetime | None = None,
        tree: str | None = None,
        until: str | datetime | None = None,
    ) -> AsyncIterator[RunBarView]:
        """Yield the items of all pages of `list_timeline`; request pages as needed.

        Returns the runs that were requested and not over between `from_` and `to`, newest
        first, each with the position and instant of every stage that it had reached as of
        `at`; and time buckets of equal length with the events in them, as in
        `/v1/events/histogram`. The buckets count the whole log in that range, or only `tree`
        if given; the other filters apply to runs alone. A token that does not see the whole
        log gets no buckets unless it names a tree of its own.

        Args:
            agent_id: Only runs of this agent, after any override (repeatable).
            at: Return the state as of this moment: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. A run is named
                by its id, by 8 or more of the first characters of its id, or by its label.
                Default: now.
            buckets: Number of time buckets; 0 for none. Default: 100.
            cursor: `next_cursor` of the previous page.
            depth: Exact depth. Requires `requester`, `tree` or `rule`.
            ended_since: Only runs that ended or were refused after this moment:
                pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a
                time ago such as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such
                as run:reviewer@started.
            ended_until: Only runs that ended or were refused at or before this moment:
                pos:18342, an RFC 3339 instant with an offset such as 2026-03-01T09:00:00Z, a
                time ago such as 12h or -12h (ms, s, m, h, d or w), or a stage of a run such
                as run:reviewer@started.
            from_: Start of the range, exclusive: pos:18342, an RFC 3339 instant with an
                offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m,
                h, d or w), or a stage of a run such as run:reviewer@started. Default: the
                beginning of the log.
            label: Only runs with exactly this label (repeatable).
            label_prefix: Only runs whose label starts with this text (repeatable), or is
                a `label`. Requires `requester`, `tree` or `rule`.
            limit: Maximum number of runs.
            min_position: Return a state at or after this log position, such as one
                returned by another server. 503 if this server does not reach it within one
                second.
            outcome: Only runs that ended with this outcome (repeatable).
            requester: Only runs requested by this session: its key in any spelling, its
                session id, or `current`.
            respawned_from: Only respawns of the run with this id.
            rule: Only runs refused by this rule.
            since: Only runs created at or after this moment: pos:18342, an RFC 3339
                instant with an offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or
                -12h (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started.
            stage: Only runs at this stage (repeatable).
            status: Only runs with this status (repeatable).
            to: End of the range, inclusive: pos:18342, an RFC 3339 instant with an offset
                such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h (ms, s, m, h, d
                or w), or a stage of a run such as run:reviewer@started. Default: now.
            tree: Only the tree below this root session: a session key, a session id, or
                `current`.
            until: Only runs created before this moment: pos:18342, an RFC 3339 instant
                with an offset such as 2026-03-01T09:00:00Z, a time ago such as 12h or -12h
                (ms, s, m, h, d or w), or a stage of a run such as run:reviewer@started.
        """
        request: PageRequest[TimelineView, RunBarView] = page_request(
            "listTimeline",
            path_of("timeline"),
            {
                "agentId": agent_id,
                "at": at,
                "buckets": buckets,
                "cursor": cursor,
                "depth": depth,
                "endedSince": ended_since,
                "endedUntil": ended_until,
                "from": from_,
                "label": label,
                "labelPrefix": label_prefix,
                "limit": limit,
                "minPosition": min_position,
                "outcome": outcome,
                "requester": requester,
                "respawnedFrom": respawned_from,
                "rule": rule,
                "since": since,
                "stage": stage,
                "status": status,
                "to": to,
                "tree": tree,
                "until": until,
            },
            "TimelineView",
        )
        return self._items(request)
