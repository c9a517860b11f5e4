# Written by `make client` from the description of the HTTP API.
"""Models of answers."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from spawnlog.core.model import AnswerModel


class AcknowledgedAnswer(AnswerModel):
    """An announcement that was acknowledged."""

    id: str
    run_id: str


class ActivatedRevisionView(AnswerModel):
    """A configuration revision that was activated in the range."""

    revision: int
    position: int
    activated_at: datetime
    activated_by: str


class ActorView(AnswerModel):
    """The actor that caused an event: `kind` is `token`, `child`, `anybody` or `system`."""

    kind: str
    token: str | None
    session: str | None


class AgentUsageView(AnswerModel):
    """Runs, tokens and cost of one agent."""

    runs: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None
    models: int
    unpriced_models: int
    agent_id: str


class AnnouncementStateView(AnswerModel):
    """The state of an announcement."""

    state: Literal["none", "pending", "delivered", "acknowledged", "skipped", "not_required"]
    reason: str | None
    attempts: int
    last_error: str | None


class AttachedFileView(AnswerModel):
    """An attached file. `sha256` is the hash of its content."""

    name: str
    bytes: int
    sha256: str


class AttachmentsReceipt(AnswerModel):
    """The attached files, and their folder relative to the child's workspace."""

    count: int
    total_bytes: int
    files: list[AttachedFileView]
    rel_dir: str


class AttachmentsView(AnswerModel):
    """
    The receipt of the attachments written to `rel_dir` below the child's workspace, and their
    current state.
    """

    count: int
    total_bytes: int
    rel_dir: str
    state: Literal["written", "removing", "removed", "left_in_place"]


class CallerView(AnswerModel):
    """
    Permissions of a token: `token` is its id (never the secret), `scopes` its scopes, and
    `patterns` the session keys that it may act for. `session` is set if the token acts for
    exactly one session, `run_id` if it belongs to a child.
    """

    kind: str
    token: str | None
    session: str | None
    run_id: str | None
    scopes: list[Literal["spawn", "read", "content", "control", "worker", "admin"]]
    patterns: list[str]


class ClaimedAnswer(AnswerModel):
    """
    The run is yours. `launch` is the input that a command would get (`stdin-json`). `token` is
    the child's token for `url`, valid until the run has ended; no other caller gets it.
    """

    run_id: str
    epoch: int
    lease_seconds: float
    url: str | None
    token: str | None
    launch: dict[str, Any]


class ComparedEntryView(AnswerModel):
    """An entry of a transcript."""

    sequence: int
    kind: str
    body: dict[str, Any]


class ComparedRuleView(AnswerModel):
    """The decision of a rule for one of the runs."""

    result: Literal["passed", "refused", "not_judged", "not_recorded"]
    compared: dict[str, Any] | None
    text: str
    config_revision: int


class ComparedRunView(AnswerModel):
    """One of the two runs."""

    run_id: str
    label: str | None
    stage: Literal[
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
    status: Literal[
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
    config_revision: int


class Change(AnswerModel):
    op: Literal["add", "remove", "replace"]
    path: str
    value: Any | None = None


class ComparedSectionView(AnswerModel):
    """
    A section of both runs, and the patch (RFC 6902) from left to right. `erased` lists members
    whose texts were erased and may have differed.
    """

    same: bool
    left: dict[str, Any]
    right: dict[str, Any]
    changes: list[Change]
    erased: list[str]


class ContinuedAnswer(AnswerModel):
    """The new run with which a session continues."""

    status: Literal["accepted"]
    run_id: str
    continues: str
    child_session_key: str
    session_id: str
    model_applied: bool | None
    warnings: list[str]


class DailyUsageView(AnswerModel):
    """
    Runs, tokens and cost of one agent on one day. `day` is the UTC day on which the runs were
    created.
    """

    runs: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None
    models: int
    unpriced_models: int
    agent_id: str
    day: date


class DeliveryView(AnswerModel):
    """
    The delivery of an announcement to one webhook. `status_code` and `error` belong to the
    last attempt. `next_attempt_at` is None if no attempt is scheduled; `parked_for` says why
    it was parked.
    """

    webhook: str
    state: Literal["due", "delivered", "parked"]
    attempts: int
    status_code: int | None
    error: str | None
    next_attempt_at: datetime | None
    parked_for: Literal["attempts", "refused", "not_configured", "erased"] | None


class DependencyView(AnswerModel):
    """
    A run that this run depends on. `state` is `unmet` if this run was over before that run
    ended as required. `run_id` is None if a name in the request matched no run, or several:
    then nothing was awaited, and lists of runs omit the entry.
    """

    run_id: str | None
    name: str
    via: Literal["dependsOn", "chainAfter", "reference"]
    require: Literal["success", "ended"]
    state: Literal["waiting", "met", "unmet"]


class DiffCountsView(AnswerModel):
    """
    The number of items on the page. `unchanged` items have events between the two moments but
    equal states.
    """

    added: int
    removed: int
    changed: int
    unchanged: int


class PatchItem(AnswerModel):
    op: Literal["add", "remove", "replace"]
    path: str
    value: Any | None = None


class DiffItemView(AnswerModel):
    """
    A run by its id, or a session by its key. `patch` (RFC 6902) transforms its left state
    into its right state; `None` is an absent one.
    """

    kind: Literal["run", "session"]
    id: str
    label: str | None
    patch: list[PatchItem]


class DiffView(AnswerModel):
    """
    Changes from the left state, as of `from_position`, to the right state, as of
    `to_position`, in the order of the first events between them. `next_cursor` is None on the
    last page. The configuration revisions are those in force at each position, None for none;
    their contents are not compared.
    """

    from_position: int
    to_position: int
    from_config_revision: int | None
    to_config_revision: int | None
    counts: DiffCountsView
    added: list[DiffItemView]
    removed: list[DiffItemView]
    changed: list[DiffItemView]
    next_cursor: str | None


class DifferenceView(AnswerModel):
    """
    The first difference: its JSON pointer, the recorded value, and the value under the other
    configuration.
    """

    field: str
    recorded: Any
    decided: Any


class EndedAnswer(AnswerModel):
    """The recorded end of the run."""

    run_id: str
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"]


class EventBucketView(AnswerModel):
    """
    The events of one bucket, from `first_position` at `first_at` to `last_position` at
    `last_at`; None if there are none. `outcomes` counts runs that ended, by outcome; `rules`
    counts refusals, by rule. `since` (exclusive) and `until` (inclusive) are the edges of a
    time bucket.
    """

    first_position: int | None
    first_at: datetime | None
    last_position: int | None
    last_at: datetime | None
    since: datetime | None
    until: datetime | None
    events: int
    types: dict[str, int]
    outcomes: dict[str, int]
    rules: dict[str, int]


class EventView(AnswerModel):
    """An event with its envelope and payload. Free texts appear only as references."""

    position: int
    stream: str
    version: int
    type: str
    type_version: int
    recorded_at: datetime
    occurred_at: datetime
    event_id: str
    command_id: str
    actor: ActorView
    causation: str | None
    correlation: str | None
    run_id: str | None
    traceparent: str | None
    config_revision: int
    writer_version: str
    append_last: int
    chain_hash: str
    payload: dict[str, Any]


class FailureText(AnswerModel):
    """
    The error of a failed undo, webhook delivery or hook call, or the reason of a stop that
    ended the run at once; None if the text was erased.
    """

    error: str | None


class FailureView(AnswerModel):
    """The error that ended the answer early."""

    detail: str


class FailuresView(AnswerModel):
    """
    Runs that failed with the same cause. `cause` is the line that names it, in which numbers,
    ids, instants, quoted texts, paths and URLs are placeholders: list runs with this `cause`
    to see them. `error` is the line as it was, with `…` for each word in which the runs
    differ, or `cause` if their numbers of words differ. `newest_at` is when the last of them
    ended. `statuses` and `agents` count them; `run_ids` has up to five, newest first.
    """

    cause: str
    error: str
    newest_at: datetime
    runs: int
    statuses: dict[str, int]
    agents: dict[str, int]
    run_ids: list[str]


class FinishedAnswer(AnswerModel):
    """A steer of a run that is already over: a no-op."""

    status: Literal["done"]
    run_id: str
    child_session_key: str
    session_id: str
    label: str | None
    text: str


class FirstDifferenceView(AnswerModel):
    """The first entries that differ; None on the side whose transcript had ended."""

    left: ComparedEntryView | None
    right: ComparedEntryView | None


class GivenTextsView(AnswerModel):
    """
    Arguments of the request that are stored outside the events; None for one that was not
    given, or is a name and therefore in the events. `dependencies` are the runs to wait for,
    as JSON, if one of the names matched no run or several.
    """

    agent_id: str | None
    model: str | None
    thinking: str | None
    workspace_dir: str | None
    dependencies: str | None


class HealthAnswer(AnswerModel):
    """The process answers. `version` is its release."""

    status: Literal["ok"]
    version: str


class HeartbeatAnswer(AnswerModel):
    """
    The answer to a heartbeat. If `stop` is set, end the execution and report the end: the
    lease is no longer renewed. `by` names the requester of the stop, and `reason` the reason
    that it gave. `lease_seconds` repeats the request.
    """

    run_id: str
    stop: Literal["stopped", "steered", "yielded"] | None
    by: str | None
    reason: str | None
    lease_seconds: float


class HistogramView(AnswerModel):
    """
    Buckets of the events after position `after`, up to position `until`. `counted_to` is None
    if all were counted; otherwise events after that position were not scanned.
    """

    by: Literal["position", "time"]
    after: int
    until: int
    counted_to: int | None
    items: list[EventBucketView]


class ListedAgent(AnswerModel):
    """
    One agent. An allowed agent may be absent from the configuration (`configured` false):
    then a spawn succeeds only if a context script overrides it with another agent, and
    `model` and `runtime` are None. `runtime` is the type of its runtime.
    """

    id: str
    name: str | None
    configured: bool
    model: str | None
    runtime: str | None


class ListedAttachmentsView(AnswerModel):
    """The receipt of a run's attachments, with the files by name."""

    count: int
    total_bytes: int
    files: list[AttachedFileView]
    rel_dir: str
    state: Literal["written", "removing", "removed", "left_in_place"]


class LogDifferenceView(AnswerModel):
    """The first difference from the record, and the position at which it appears."""

    position: int
    kind: str
    text: str


class ModelUsageView(AnswerModel):
    """
    Usage of one model, by the name that the runtime reported; None if it reported no name.
    `cost_usd` is None if no price is configured for the model.
    """

    model: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    priced_as: str | None
    cost_usd: float | None


class NearEventView(AnswerModel):
    """An event without its payload."""

    position: int
    type: str
    recorded_at: datetime
    run_id: str | None
    tree: str | None


class OwnRunView(AnswerModel):
    """A run of the child session itself; `continues` is the run before it."""

    run_id: str
    stage: Literal[
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
    continues: str | None


class PageCodeAnswer(AnswerModel):
    """
    A one-time code that signs in to the page, at `/ui/#code=…`. `code` is None if
    authentication is off, because no code is needed. `page_built` is false if the page was
    not built, so this server answers its address with 404.
    """

    code: str | None
    expires_in_seconds: int
    page_built: bool


class PageTokenAnswer(AnswerModel):
    """
    A token of the page, with the access of the token that requested its code, valid as long as
    that token.
    """

    token: str
    expires_in_seconds: int


class PendingUndoView(AnswerModel):
    """
    A step that is still to be undone: where it is, how often undoing it failed and why it failed
    last, and when it is retried.
    """

    step: Literal["thread_binding", "context_fork", "workspace", "attachments", "context_engine"]
    root: str | None
    relative: str | None
    failures: int
    next_attempt_at: datetime
    error: str | None


class PreambleAnswer(AnswerModel):
    """
    The preamble of a session's later runs. `characters` is 0 if there is none. `changed` is true
    if it differs from the previous one.
    """

    session_key: str
    session_id: str
    characters: int
    changed: bool


class PreambleView(AnswerModel):
    """Length of the preamble that the parent gave, before and after truncation, in characters."""

    given_characters: int
    kept_characters: int
    limit: int


class ProgressCountView(AnswerModel):
    """The log position reached so far, the last position, and the number of decisions."""

    position: int
    until: int
    decisions: int


class ProgressView(AnswerModel):
    """The latest progress that the run reported while running, and when."""

    text: str
    at: datetime


class PromptPartSideView(AnswerModel):
    """A part of one of the prompts. `sha256` is the hash of its bytes; None if they were erased."""

    bytes: int
    sha256: str | None


class PromptPartView(AnswerModel):
    """
    A part of a prompt text: its source, its UTF-8 byte offsets `[start, end)` within the
    text, and the SHA-256 of its bytes. `reused_from` is the earlier run whose recorded script
    output was reused; None if the script ran for this run, or no script wrote the part.
    """

    of: Literal["systemPrompt", "message"]
    source: str
    start: int
    end: int
    sha256: str
    reused_from: str | None


class PromptView(AnswerModel):
    """The prompt that the child received; the parts cover every byte of both texts."""

    system_prompt: str
    message: str
    parts: list[PromptPartView]


class QueuedAnswer(AnswerModel):
    """
    The receipt of a message that waits for the current run to end. `place` is its place among
    the waiting messages, from 1. `run_id` is the id of the run that will continue with it.
    """

    status: Literal["queued"]
    run_id: str
    continues: str
    child_session_key: str
    session_id: str
    place: int


class QueuedMessageView(AnswerModel):
    """
    A message waiting for the session's current run to end. `run_id` is the run that it will
    become. `message_preview` is None if its text was erased.
    """

    run_id: str
    message_preview: str | None
    by: str
    cause: Literal["message", "steer", "wake"]
    queued_at: datetime | None


class QueuedView(AnswerModel):
    """A queued run, its place in the queue (from 1), and the reason why it waits."""

    run_id: str | None
    label: str | None
    place: int
    waits_for: str


class ReachedStageView(AnswerModel):
    """A stage that a run reached, with the log position and time."""

    stage: Literal[
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
    position: int
    at: datetime


class ReadinessAnswer(AnswerModel):
    """The last position of the log, and the position up to which this server has read it."""

    status: Literal["ready"]
    head: int
    tail: int


class ReasonText(AnswerModel):
    """The reason of a stop or of a redrive; None if the text was erased."""

    reason: str | None


class RedriveRefusal(AnswerModel):
    """An announcement that stays parked, and why."""

    run_id: str
    code: Literal["erased"]
    detail: str


class RedrivenAnswer(AnswerModel):
    """Webhooks that receive the announcement again, and hooks that are called again."""

    run_id: str
    webhooks: list[str]
    hooks: list[str]


class RedrivenItem(AnswerModel):
    """An announcement that is sent again, and the webhooks that receive it."""

    run_id: str
    webhooks: list[str]


class RedrivenManyAnswer(AnswerModel):
    """
    Announcements that are sent again, and those that stay parked. If `more_after` is given,
    more may be parked after that position, up to `until`.
    """

    redriven: list[RedrivenItem]
    refused: list[RedriveRefusal]
    more_after: int | None
    until: int


class RefusalView(AnswerModel):
    """A refusal as returned to the caller."""

    rule: Literal[
        "agent_id",
        "mode",
        "depth",
        "tools",
        "active_children",
        "require_agent_id",
        "allow_agents",
        "shared_context",
        "dependency_unknown",
        "dependency_ambiguous",
        "reference_unknown",
        "reference_ambiguous",
        "dependency_cycle",
        "dependency_failed",
        "agent_unknown",
        "sandbox",
        "thinking",
        "runtime",
        "credentials",
        "workspace",
        "thread_binding",
        "context_fork",
        "attachments",
        "context_engine",
        "stopped",
        "erased",
        "batch",
    ]
    status: Literal["forbidden", "error"]
    text: str
    current: int | None
    limit: int | None
    step: str


class RefusedRunView(AnswerModel):
    """
    A run that was refused, and the rule that refused it. `child_session_key` is the session
    that a refused message was sent to; for most spawns it is None. `error` is a preview of
    the refusal.
    """

    run_id: str
    stage: Literal[
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
    status: Literal[
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
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"] | None
    agent_id: str | None
    label: str | None
    respawned_from: str | None
    created_at: datetime
    stages: list[ReachedStageView]
    task_preview: str | None
    error: str | None
    rule: (
        Literal[
            "agent_id",
            "mode",
            "depth",
            "tools",
            "active_children",
            "require_agent_id",
            "allow_agents",
            "shared_context",
            "dependency_unknown",
            "dependency_ambiguous",
            "reference_unknown",
            "reference_ambiguous",
            "dependency_cycle",
            "dependency_failed",
            "agent_unknown",
            "sandbox",
            "thinking",
            "runtime",
            "credentials",
            "workspace",
            "thread_binding",
            "context_fork",
            "attachments",
            "context_engine",
            "stopped",
            "erased",
            "batch",
        ]
        | None
    )
    child_session_key: str | None


class ReportedAnswer(AnswerModel):
    """The entries are recorded. `next` is the number of the next entry."""

    run_id: str
    next: int


class RequestedRunView(AnswerModel):
    """A run that the session requested."""

    run_id: str
    label: str | None
    stage: Literal[
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
    agent_id: str | None


class RevisionSummary(AnswerModel):
    """
    A revision, and the positions and instants between which it was active. `until_position`
    and `until_at` are those at which the next revision replaced it; None for the active one.
    `source` is the absolute path of its file, or `built-in`. `erased` is true if its text was
    erased.
    """

    revision: int
    position: int
    activated_at: datetime
    activated_by: str
    source: str
    until_position: int | None
    until_at: datetime | None
    bytes: int
    erased: bool


class RevisionView(AnswerModel):
    """
    A revision with its stored content, in which secrets are references. `content` is None if
    it was erased.
    """

    revision: int
    position: int
    activated_at: datetime
    activated_by: str
    source: str
    until_position: int | None
    until_at: datetime | None
    bytes: int
    erased: bool
    content: Any


class RevokedAnswer(AnswerModel):
    """The token is no longer valid. `was_known` is true if it was a token of the page."""

    was_known: bool


class RuleView(AnswerModel):
    """
    A rule, the facts that it compared, and its result. `position` is that of the event that
    records it, None if none does.
    """

    step: str
    rule: Literal[
        "agent_id",
        "mode",
        "depth",
        "tools",
        "active_children",
        "require_agent_id",
        "allow_agents",
        "shared_context",
        "dependency_unknown",
        "dependency_ambiguous",
        "reference_unknown",
        "reference_ambiguous",
        "dependency_cycle",
        "dependency_failed",
        "agent_unknown",
        "sandbox",
        "thinking",
        "runtime",
        "credentials",
        "workspace",
        "thread_binding",
        "context_fork",
        "attachments",
        "context_engine",
        "stopped",
        "erased",
        "batch",
        "dependencies",
        "context_scripts",
        "override",
        "model",
        "run_timeout",
        "tool_policy",
        "capabilities",
        "preamble",
    ]
    result: Literal["passed", "refused", "not_judged", "not_recorded"]
    compared: dict[str, Any] | None
    text: str
    position: int | None
    config_revision: int


class RunBarView(AnswerModel):
    """
    A run as a bar. `parent_run_id` is the run that requested it; None if its requester is a
    session that was not spawned here.
    """

    run_id: str
    stage: Literal[
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
    status: Literal[
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
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"] | None
    agent_id: str | None
    label: str | None
    depth: int
    requester_session_key: str
    parent_run_id: str | None
    child_session_key: str | None
    respawned_from: str | None
    stages: list[ReachedStageView]


class RunTotalsView(AnswerModel):
    """
    The number of runs that match the filters, as of the first page and for this token: in all
    (`runs`), by status, by agent (the hundred with the most runs) and, for refused runs, by
    rule. Zero counts are omitted. `statuses_by_agent` has the statuses of each of `agents`. A
    run that was refused because it named no valid agent counts for none. `counted_to` is None
    if all runs were counted; otherwise only the newest were, down to the one created at that
    position. Tokens and cost are summed over the same runs, without those of
    `running_not_summed` running ones: all but the newest 500 and, in the past, those with
    many usage entries, because at most 10,000 are read. `usage_by_agent` lists up to 100
    agents, the most expensive first, and `usage_by_day` up to 200 days of an agent, whole
    days, the newest first. Both omit agents without tokens and cost.
    """

    runs: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None
    models: int
    unpriced_models: int
    statuses: dict[str, int]
    agents: dict[str, int]
    statuses_by_agent: dict[str, dict[str, int]]
    rules: dict[str, int]
    usage_by_agent: list[AgentUsageView]
    usage_by_day: list[DailyUsageView]
    running_not_summed: int
    counted_to: int | None


class RunningView(AnswerModel):
    """
    A run that holds a slot, and the server that executes it. Fields that the caller may not
    see are None.
    """

    run_id: str | None
    label: str | None
    holder: str | None


class ScriptFailureTexts(AnswerModel):
    """The errors of context scripts that failed or were skipped, by script id."""

    errors: dict[str, str | None]


class SessionStoppedAnswer(AnswerModel):
    """
    A session that is stopped, with its newest run. `was_over` is true if there was nothing to
    stop, `closed` if the session accepts no more messages.
    """

    session_key: str
    session_id: str
    run_id: str | None
    was_over: bool
    closed: bool


class SessionView(AnswerModel):
    """
    A session. `asserted_by` is the actor whose word it was recorded on; `assertions` lists
    the facts that rest on that word alone. `depth_from` says where its depth was found. Model
    and thinking are those of its newest run, with their sources. `queue` holds the messages
    waiting for that run; `unread_reports` lists finished children not yet reported to any of
    its runs. These are empty for a session that was not spawned here. `preamble_position` is
    where the preamble of its later runs was written; None for the preamble of its spawn.
    `max_children` follows the configuration in force; None if that was erased.
    """

    session_key: str
    display_key: str
    session_id: str
    agent_id: str
    depth: int
    role: Literal["main", "orchestrator", "leaf"]
    control_scope: Literal["children", "none"]
    sandboxed: bool | None
    workspace_dir: str | None
    spawned_by: str | None
    root_session_key: str
    run_id: str | None
    stage: Literal["open", "closed"]
    created_at: datetime
    closed_at: datetime | None
    asserted_by: str | None
    assertions: list[Literal["agentId", "sandboxed"]]
    depth_from: str | None
    active_children: int
    active_runs: list[str]
    max_children: int | None
    pending_descendants: int
    running_descendants: int
    runs: list[RequestedRunView]
    own_runs: list[OwnRunView]
    model_provider: str | None
    model: str | None
    model_source: str | None
    thinking: str | None
    thinking_source: str | None
    queue: list[QueuedMessageView]
    unread_reports: list[str]
    preamble_position: int | None
    version: int


class SetByView(AnswerModel):
    """The event that last set a field."""

    position: int
    version: int
    type: str


class SharedChangeView(AnswerModel):
    """One change of a shared context."""

    position: int
    recorded_at: datetime
    cause: Literal["spawn", "patch", "inherited"]
    by: str | None
    run_id: str | None
    keys: list[str]


class SharedSizesView(AnswerModel):
    """The size in bytes of each key that a session shares, without its value."""

    session_key: str
    version: int
    position: int
    sizes: dict[str, int]


class SharedSourceView(AnswerModel):
    """
    The writer of a shared key: the session in which it was first written, and the position of
    the write. `run_id` is the spawn that wrote it, or the run whose result it is; `by` is the
    actor that patched it.
    """

    kind: Literal["literal", "reference"]
    session_key: str
    position: int | None
    run_id: str | None
    by: str | None


class SharedStartView(AnswerModel):
    """A child that started with a version of a shared context."""

    run_id: str
    position: int
    version: int
    label: str | None


class StateChangeView(AnswerModel):
    """
    The effect of one event on the run. `changes` is the patch (RFC 6902) from the previous
    state, initially `{}`, to the state of `version`.
    """

    position: int
    version: int
    type: str
    recorded_at: datetime
    actor: ActorView
    changes: list[Change]


class SteeredAnswer(AnswerModel):
    """
    A run that is being ended for a message. `run_id` is the id of the run that continues with
    it.
    """

    status: Literal["accepted"]
    run_id: str
    replaces: str
    child_session_key: str
    session_id: str
    mode: Literal["restart"]
    label: str | None
    text: str


class StoppedAnswer(AnswerModel):
    """A run that is stopped. `was_over` is true if it had already ended."""

    run_id: str
    was_over: bool


class TimelineView(AnswerModel):
    """
    Runs that were requested and not over between the positions `after` and `until`, newest
    first, and a histogram of the events in that range. `buckets_counted_to` is None if all
    events were counted; `next_cursor` is None on the last page.
    """

    after: int
    until: int
    items: list[RunBarView]
    next_cursor: str | None
    buckets: list[EventBucketView]
    buckets_counted_to: int | None


class ToolsView(AnswerModel):
    """The tools of a child. If `allow` is None, every tool that is not denied is allowed."""

    allow: list[str] | None
    deny: list[str]


class TotalsView(AnswerModel):
    """Totals of all decisions in a range of positions: by verdict, requested agent and rule."""

    from_position: int
    to_position: int
    decisions: int
    by_verdict: dict[str, int]
    by_agent: dict[str, dict[str, int]]
    by_rule: dict[str, dict[str, int]]


class TranscriptEntryView(AnswerModel):
    """
    An entry of a transcript. `sequence` counts from 1 within the run; `recorded_at` is when
    the entry arrived from the agent.
    """

    sequence: int
    recorded_at: datetime
    kind: str
    body: dict[str, Any]


class TranscriptProvidedAnswer(AnswerModel):
    """The receipt of an uploaded transcript. `position` is that of the event that recorded it."""

    session_key: str
    session_id: str
    entries: int
    bytes: int
    tokens: int | None
    position: int


class TranscriptView(AnswerModel):
    """
    A page of a transcript; `next_after` is None on the last page. Entries up to
    `last_sequence` were scanned, including other kinds: pass it as `after` to continue. If
    `complete`, the run is over, and no entry follows the last page.
    """

    items: list[TranscriptEntryView]
    next_after: int | None
    last_sequence: int
    complete: bool


class TreeRunView(AnswerModel):
    """
    A run in a tree. `respawned_from` is the run that it was respawned from, in any tree.
    `error` is a preview of why it failed. A running run has the tokens and cost that it had
    used by then, or None if they are unknown.
    """

    run_id: str
    stage: Literal[
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
    status: Literal[
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
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"] | None
    agent_id: str | None
    label: str | None
    respawned_from: str | None
    created_at: datetime
    stages: list[ReachedStageView]
    task_preview: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    estimated_cost_usd: float | None


class TreeUsageView(AnswerModel):
    """
    Runs, tokens and cost of the tree below one root session, `tree`. `running_not_summed` and
    `counted_to` are as in totals of runs.
    """

    runs: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None
    models: int
    unpriced_models: int
    tree: str
    running_not_summed: int
    counted_to: int | None


class UsageTotalsView(AnswerModel):
    """
    A number of runs, with their tokens and estimated cost. A run that was running counts with
    its usage by then. `models` is the number of models that they used, and `unpriced_models`
    the number of those without a price in at least one of the runs. The cost does not include
    those tokens, and is None if nothing has a price.
    """

    runs: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None
    models: int
    unpriced_models: int


class UsageView(AnswerModel):
    """
    Token counts as reported by the runtime. `total_tokens` is input plus output; cache tokens
    are separate. `unpriced_models` is the number of `models` without a price:
    `estimated_cost_usd` of the run does not include their tokens.
    """

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    models: list[ModelUsageView]
    unpriced_models: int


class VerificationView(AnswerModel):
    """
    One verification of the log. `state` is `running`, `right`, `different`, `stopped` (on
    request), `failed` (it could not continue) or `broken-off` (its process is gone). It began
    after position `began`; everything up to `checked` is verified, and it ends at `last`,
    None until that is known. `head_hash` is the chain hash there once it has ended.
    `noted_at` is its last sign of life, `seconds` the elapsed time. `origin` is `server` or
    `command`; `process` identifies it. The counts are of compared rows of runs and sessions,
    texts and transcripts; `erased` counts those whose keys were erased.
    """

    number: int
    state: Literal["running", "right", "different", "stopped", "failed", "broken-off"]
    started_by: str
    origin: Literal["server", "command"]
    process: str
    started_at: datetime
    noted_at: datetime
    ended_at: datetime | None
    seconds: float
    stop_requested_by: str | None
    began: int
    checked: int
    last: int | None
    head_hash: str | None
    run_rows: int
    session_rows: int
    contents: int
    transcripts: int
    erased: int
    difference: LogDifferenceView | None
    failure: str | None


class WaitView(AnswerModel):
    """
    Runs that wait for the same: `runs` for other runs to end, `slot` for a slot of a full
    lane, `claim` for a server that takes them. `lane` and `depth` name the lane of queued
    runs. `run_ids` has up to five, newest first.
    """

    reason: Literal["runs", "slot", "claim"]
    lane: str | None
    depth: int | None
    runs: int
    run_ids: list[str]


class WhatIfFailureView(AnswerModel):
    """The last line of an incomplete answer."""

    failure: FailureView


class WhatIfProgressView(AnswerModel):
    """Progress of the answer, about once a second."""

    progress: ProgressCountView


class WhatIfTotalsView(AnswerModel):
    """The last line of a complete answer."""

    totals: TotalsView


class WhatIfVerdictView(AnswerModel):
    """
    The verdict on one decision, a `spawn` or a `message` to a session. `position` is that of its
    request. `rule` is the rule that would refuse it or, if it is newly allowed, the rule that
    refused it. `text` is the answer that the caller would get. `missing` lists unrecorded facts
    that decide it; `assumed` lists unrecorded facts that were assumed to hold.
    """

    run_id: str
    position: int
    kind: Literal["spawn", "message"]
    agent_id: str | None
    label: str | None
    requester_session_key: str
    config_revision: int
    verdict: Literal[
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
    rule: (
        Literal[
            "agent_id",
            "mode",
            "depth",
            "tools",
            "active_children",
            "require_agent_id",
            "allow_agents",
            "shared_context",
            "dependency_unknown",
            "dependency_ambiguous",
            "reference_unknown",
            "reference_ambiguous",
            "dependency_cycle",
            "dependency_failed",
            "agent_unknown",
            "sandbox",
            "thinking",
            "runtime",
            "credentials",
            "workspace",
            "thread_binding",
            "context_fork",
            "attachments",
            "context_engine",
            "stopped",
            "erased",
            "batch",
        ]
        | None
    )
    text: str | None
    difference: DifferenceView | None
    missing: list[str]
    assumed: list[str]


class YieldedAnswer(AnswerModel):
    """A run that ends its turn and waits for its children."""

    status: Literal["yielded"]
    message: str
    run_id: str
    session_key: str


class AcceptedRun(AnswerModel):
    """
    A child of an accepted spawn. `model_applied` is true if the first requested model is the
    one that runs, and None if none was requested.
    """

    run_id: str
    child_session_key: str
    session_id: str
    label: str | None
    mode: Literal["run", "session"]
    note: str | None
    model_applied: bool | None
    attachments: AttachmentsReceipt | None
    warnings: list[str]


class AcceptedSpawn(AnswerModel):
    """An accepted spawn of one run, listed in `runs`, whose fields are repeated at the top."""

    status: Literal["accepted"]
    runs: list[AcceptedRun]
    run_id: str
    child_session_key: str
    session_id: str
    label: str | None
    mode: Literal["run", "session"]
    note: str | None
    model_applied: bool | None
    attachments: AttachmentsReceipt | None
    warnings: list[str]


class AgentListing(AnswerModel):
    """
    The agents that a requester may spawn. `requester` is the requester's agent. It comes
    first if it may spawn itself; the others are sorted. If `allow_any` is true, `agents`
    lists the configured agents, and any other id is allowed too.
    """

    requester: str
    allow_any: bool
    agents: list[ListedAgent]


class AnnouncementView(AnswerModel):
    """
    An announcement in an inbox. `requester` owns the inbox. `origin` says where to send the
    result: those of `channel`, `accountId`, `to` and `threadId` that are known. `deliveries` are
    its deliveries to webhooks. If one is parked, the announcement appears in the inbox again at a
    later position, unacknowledged.
    """

    id: str
    run_id: str
    requester: str
    child_session_key: str | None
    label: str | None
    position: int
    created_at: datetime | None
    status: str
    state: Literal["none", "pending", "delivered", "acknowledged", "skipped", "not_required"]
    text: str | None
    origin: dict[str, str | int] | None
    dedupe_key: str
    acknowledged_at: datetime | None
    deliveries: list[DeliveryView]


class BreakpointView(AnswerModel):
    """
    A position at which something begins to hold. Pass `as_of` as `at` to other endpoints to
    see the state there. `event` is the event recorded there, None if none of the scanned
    events was. `before` and `after` are the numbers or the field before that position and
    from it on. `already_held` is true if it held already when the range began; the position
    is then the beginning.
    """

    position: int
    as_of: str
    recorded_at: datetime | None
    run_id: str | None
    session_key: str | None
    before: dict[str, Any]
    after: dict[str, Any]
    already_held: bool
    event: EventView | None


class ComparedDecisionView(AnswerModel):
    """A rule in both explanations; None on the side whose explanation lacks it."""

    step: str
    rule: Literal[
        "agent_id",
        "mode",
        "depth",
        "tools",
        "active_children",
        "require_agent_id",
        "allow_agents",
        "shared_context",
        "dependency_unknown",
        "dependency_ambiguous",
        "reference_unknown",
        "reference_ambiguous",
        "dependency_cycle",
        "dependency_failed",
        "agent_unknown",
        "sandbox",
        "thinking",
        "runtime",
        "credentials",
        "workspace",
        "thread_binding",
        "context_fork",
        "attachments",
        "context_engine",
        "stopped",
        "erased",
        "batch",
        "dependencies",
        "context_scripts",
        "override",
        "model",
        "run_timeout",
        "tool_policy",
        "capabilities",
        "preamble",
    ]
    same: bool
    left: ComparedRuleView | None
    right: ComparedRuleView | None


class ComparedPartView(AnswerModel):
    """
    A part of the prompts. `verdict` is `erased` if the part may have differed, which can no
    longer be verified. `diff` is a unified diff; None for equal parts and for parts that are
    too long.
    """

    of: Literal["systemPrompt", "message"]
    source: str
    verdict: Literal["equal", "different", "left_only", "right_only", "erased"]
    left: PromptPartSideView | None
    right: PromptPartSideView | None
    diff: str | None


class ComparedPromptsView(AnswerModel):
    """The prompts by their parts; a run that has not started has none."""

    same: bool
    parts: list[ComparedPartView]


class ComparedTranscriptsView(AnswerModel):
    """
    Comparison of the transcripts: the number of entries of each (None while the run is
    running), the number of equal entries from the start, and the first entries that differ.
    `same` is None if the comparison stopped after many equal entries. If `erased`, entries of
    one of them were erased and may have differed.
    """

    same: bool | None
    left_entries: int | None
    right_entries: int | None
    equal_entries: int
    first_difference: FirstDifferenceView | None
    erased: bool


class EventListView(AnswerModel):
    """
    A page of the log. `head` is the end of the log, now or as of `at`. The page was scanned
    up to `next_after`; newest first, it was scanned from `next_after` down to `next_before`.
    `next_before` is None if no older event matches, and on pages with the oldest first.
    """

    items: list[EventView]
    next_after: int
    next_before: int | None
    head: int


class EventWithTexts(AnswerModel):
    """An event with its error or reason, or the errors of its context scripts."""

    position: int
    stream: str
    version: int
    type: str
    type_version: int
    recorded_at: datetime
    occurred_at: datetime
    event_id: str
    command_id: str
    actor: ActorView
    causation: str | None
    correlation: str | None
    run_id: str | None
    traceparent: str | None
    config_revision: int
    writer_version: str
    append_last: int
    chain_hash: str
    payload: dict[str, Any]
    texts: FailureText | ReasonText | ScriptFailureTexts


class ExplanationView(AnswerModel):
    """Every rule in the order of the decision. `refused` is the refusal, None if there is none."""

    run_id: str
    stage: Literal[
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
    config_revision: int
    given: GivenTextsView
    decisions: list[RuleView]
    refused: RefusalView | None


class InboxView(AnswerModel):
    """A page of an inbox; `next_after` is None on the last page."""

    items: list[AnnouncementView]
    next_after: int | None


class LaneView(AnswerModel):
    """A lane at one depth. `width` follows the configuration in force; None if that was erased."""

    lane: str
    depth: int
    width: int | None
    running: list[RunningView]
    queued: list[QueuedView]


class LiveRunsView(AnswerModel):
    """
    The number of unfinished runs by status, and the waiting and queued ones grouped by
    reason, largest group first. `parked_deliveries` counts webhook deliveries of
    `parked_announcements` that were given up. `usage_by_agent` has the tokens and cost by
    then of the running runs, except `running_not_summed` of them (as in totals of runs). If
    `runs_cut`, more runs were not counted; if `parked_cut`, more announcements; `cut` is true
    if either is.
    """

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


class LogHeadView(AnswerModel):
    """
    The end of the log, now or as of `at`, and the hash that chains all events up to it; None
    if there is no event. `verifications` are always the current ones, newest first, because
    they are not part of the log.
    """

    log_id: str
    position: int
    recorded_at: datetime | None
    chain_hash: str | None
    verifications: list[VerificationView]


class MomentView(AnswerModel):
    """
    A position of the log and the time when its event was recorded; None before the first
    event. `append_last` is the last position of its append. `config_revision` is the
    configuration revision in force; None before the first one, and for tokens that do not see
    the whole log. `before` are the events up to the position, `after` those after it, both in
    order, without events that the token may not see.
    """

    position: int
    recorded_at: datetime | None
    append_last: int | None
    config_revision: int | None
    before: list[NearEventView]
    after: list[NearEventView]


class RevisionListView(AnswerModel):
    """A page of revisions, newest first; `next_cursor` is None on the last page."""

    items: list[RevisionSummary]
    next_cursor: str | None


class RunComparisonView(AnswerModel):
    """
    Two runs side by side. `same` is true if nothing differs; run time is ignored. `prompt`
    and `transcript` are None for a token without scope `content`.
    """

    same: bool
    left: ComparedRunView
    right: ComparedRunView
    request: ComparedSectionView
    decisions: list[ComparedDecisionView]
    plan: ComparedSectionView
    prompt: ComparedPromptsView | None
    transcript: ComparedTranscriptsView | None
    outcome: ComparedSectionView


class RunEventListView(AnswerModel):
    """Events of one run; `next_after` is None on the last page."""

    items: list[EventWithTexts | EventView]
    next_after: int | None


class RunHistoryView(AnswerModel):
    """
    The states of a run in order. `version` is the newest state considered; `set_by` maps each
    of its fields to the event that last set it. `next_after` is None on the last page.
    """

    run_id: str
    version: int
    items: list[StateChangeView]
    set_by: dict[str, SetByView]
    next_after: int | None


class RunMetadataView(AnswerModel):
    """
    A run for a caller that may not read its texts: previews of the task and of an error, and
    every field that holds no text. `parent_run_id` is the run that requested it; None if its
    requester is a session that was not spawned here. `respawns` lists the first hundred
    respawns that the caller may see. Times are UTC; `*Ms` fields are milliseconds.
    """

    run_id: str
    stage: Literal[
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
    status: Literal[
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
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"] | None
    agent_id: str | None
    requested_agent_id: str | None
    requester_session_key: str
    parent_run_id: str | None
    child_session_key: str | None
    session_id: str
    controller_session_key: str
    continues: str | None
    respawned_from: str | None
    batch_id: str | None
    label: str | None
    task_preview: str | None
    task_bytes: int
    depth: int
    role: str | None
    model_provider: str | None
    model: str | None
    thinking: str | None
    run_timeout_seconds: int | None
    mode: Literal["run", "session"]
    cleanup: Literal["delete", "keep"]
    context_mode: Literal["isolated", "fork"]
    workspace_dir: str | None
    sandboxed: bool | None
    tools: ToolsView | None
    warnings: list[str]
    lane: str | None
    attachments: ListedAttachmentsView | AttachmentsView | None
    undoing: list[PendingUndoView]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    announced_at: datetime | None
    archived_at: datetime | None
    archive_at: datetime | None
    stages: list[ReachedStageView]
    runtime_ms: int | None
    error: str | None
    rule: (
        Literal[
            "agent_id",
            "mode",
            "depth",
            "tools",
            "active_children",
            "require_agent_id",
            "allow_agents",
            "shared_context",
            "dependency_unknown",
            "dependency_ambiguous",
            "reference_unknown",
            "reference_ambiguous",
            "dependency_cycle",
            "dependency_failed",
            "agent_unknown",
            "sandbox",
            "thinking",
            "runtime",
            "credentials",
            "workspace",
            "thread_binding",
            "context_fork",
            "attachments",
            "context_engine",
            "stopped",
            "erased",
            "batch",
        ]
        | None
    )
    usage: UsageView | None
    estimated_cost_usd: float | None
    transcript_path: str | None
    announcement: AnnouncementStateView
    depends_on: list[DependencyView]
    config_revision: int
    version: int
    cause: Literal["message", "steer", "wake"] | None
    continued_by: str | None
    yielded: bool
    respawns: list[str]
    context_preamble: PreambleView | None
    transcript_entries: int | None
    stop_requested_by: str | None


class RunSharedContextView(AnswerModel):
    """
    The shared context that a run received when it was claimed at `position`. `erased` lists
    the keys whose values are None because they were erased.
    """

    run_id: str
    position: int | None
    values: dict[str, Any]
    erased: list[str]
    sources: dict[str, SharedSourceView]


class RunSummary(AnswerModel):
    """
    A run in a list, with previews of its task and its error. Times are UTC; `*Ms` fields are
    milliseconds.
    """

    run_id: str
    stage: Literal[
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
    status: Literal[
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
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"] | None
    agent_id: str | None
    requested_agent_id: str | None
    requester_session_key: str
    child_session_key: str | None
    session_id: str
    controller_session_key: str
    continues: str | None
    respawned_from: str | None
    batch_id: str | None
    label: str | None
    task_preview: str | None
    task_bytes: int
    depth: int
    role: str | None
    model_provider: str | None
    model: str | None
    thinking: str | None
    run_timeout_seconds: int | None
    mode: Literal["run", "session"]
    cleanup: Literal["delete", "keep"]
    context_mode: Literal["isolated", "fork"]
    workspace_dir: str | None
    sandboxed: bool | None
    tools: ToolsView | None
    warnings: list[str]
    lane: str | None
    attachments: ListedAttachmentsView | AttachmentsView | None
    undoing: list[PendingUndoView]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    announced_at: datetime | None
    archived_at: datetime | None
    archive_at: datetime | None
    stages: list[ReachedStageView]
    runtime_ms: int | None
    error: str | None
    rule: (
        Literal[
            "agent_id",
            "mode",
            "depth",
            "tools",
            "active_children",
            "require_agent_id",
            "allow_agents",
            "shared_context",
            "dependency_unknown",
            "dependency_ambiguous",
            "reference_unknown",
            "reference_ambiguous",
            "dependency_cycle",
            "dependency_failed",
            "agent_unknown",
            "sandbox",
            "thinking",
            "runtime",
            "credentials",
            "workspace",
            "thread_binding",
            "context_fork",
            "attachments",
            "context_engine",
            "stopped",
            "erased",
            "batch",
        ]
        | None
    )
    usage: UsageView | None
    estimated_cost_usd: float | None
    transcript_path: str | None
    announcement: AnnouncementStateView
    depends_on: list[DependencyView]
    config_revision: int
    version: int
    cause: Literal["message", "steer", "wake"] | None
    continued_by: str | None
    yielded: bool
    error_cause: Annotated[
        str | None,
        Field(description="Line of the error that names its cause; requires scope `content`."),
    ] = None


class RunView(AnswerModel):
    """
    A run with its texts. `parent_run_id` is the run that requested it; None if its requester
    is a session that was not spawned here. `respawns` lists the first hundred respawns that
    the caller may see. Times are UTC; `*Ms` fields are milliseconds.
    """

    run_id: str
    stage: Literal[
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
    status: Literal[
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
    outcome: Literal["success", "error", "timeout", "stopped", "unknown"] | None
    agent_id: str | None
    requested_agent_id: str | None
    requester_session_key: str
    parent_run_id: str | None
    child_session_key: str | None
    session_id: str
    controller_session_key: str
    continues: str | None
    respawned_from: str | None
    batch_id: str | None
    label: str | None
    task: str | None
    depth: int
    role: str | None
    model_provider: str | None
    model: str | None
    thinking: str | None
    run_timeout_seconds: int | None
    mode: Literal["run", "session"]
    cleanup: Literal["delete", "keep"]
    context_mode: Literal["isolated", "fork"]
    workspace_dir: str | None
    sandboxed: bool | None
    tools: ToolsView | None
    warnings: list[str]
    lane: str | None
    attachments: ListedAttachmentsView | AttachmentsView | None
    undoing: list[PendingUndoView]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    announced_at: datetime | None
    archived_at: datetime | None
    archive_at: datetime | None
    stages: list[ReachedStageView]
    runtime_ms: int | None
    error: str | None
    rule: (
        Literal[
            "agent_id",
            "mode",
            "depth",
            "tools",
            "active_children",
            "require_agent_id",
            "allow_agents",
            "shared_context",
            "dependency_unknown",
            "dependency_ambiguous",
            "reference_unknown",
            "reference_ambiguous",
            "dependency_cycle",
            "dependency_failed",
            "agent_unknown",
            "sandbox",
            "thinking",
            "runtime",
            "credentials",
            "workspace",
            "thread_binding",
            "context_fork",
            "attachments",
            "context_engine",
            "stopped",
            "erased",
            "batch",
        ]
        | None
    )
    usage: UsageView | None
    estimated_cost_usd: float | None
    transcript_path: str | None
    announcement: AnnouncementStateView
    depends_on: list[DependencyView]
    config_revision: int
    version: int
    cause: Literal["message", "steer", "wake"] | None
    continued_by: str | None
    yielded: bool
    respawns: list[str]
    context_preamble: PreambleView | None
    transcript_entries: int | None
    progress: ProgressView | None
    result_text: str | None
    stop_requested_by: str | None
    stop_reason: str | None
    requester_origin: Any


class SearchView(AnswerModel):
    """
    The breakpoints found, in order, and the cost: `events_read` events in `reads` queries of
    the log, up to `searched_to`. If `next_cursor` is set, the search is not complete.
    """

    items: list[BreakpointView]
    method: Literal["scan", "bisection"]
    events_read: int
    reads: int
    from_position: int
    to_position: int
    searched_to: int
    next_cursor: str | None


class SharedContextView(AnswerModel):
    """The shared context of a session, and its history."""

    session_key: str
    version: int
    position: int
    sizes: dict[str, int]
    values: dict[str, Any]
    erased: list[str]
    sources: dict[str, SharedSourceView]
    history: list[SharedChangeView]
    started_with: list[SharedStartView]


class SummaryView(AnswerModel):
    """
    The summary of a range of the log: after position `after`, up to `until`; `from_at` and
    `to_at` are the instants of both. `spawned` are the runs requested in the range, with
    their status at its end. `ended` are the runs that ended or were refused in it, whenever
    they were requested: by status, by rule, and with their tokens and cost. `failures` groups
    those of `ended` that failed, timed out or have an unknown outcome by cause, most first,
    up to fifty; `further_causes` is the number of causes left out. `revisions` are the
    configuration revisions activated in the range, newest first, up to fifty; None for a
    token that does not see the whole log. `live` is the state at the end of the range.
    """

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


class TreeNodeView(AnswerModel):
    """
    A session with its own runs in order of creation, and the sessions below it. `session_key`
    is None for a spawn that is being prepared and has no session yet. `own` sums its runs,
    and `total` those runs and all in the nodes below it that the answer has. If
    `children_cut`, there may be more children than those in `children`: request the tree of
    this session. `refused` are the refused runs that this session requested, in order of
    creation: spawns, and messages to its children. If `refused_cut`, there may be more: list
    runs to see them.
    """

    session_key: str | None
    session_id: str | None
    agent_id: str | None
    depth: int
    role: str | None
    open: bool
    created_at: datetime
    active_children: int
    own: UsageTotalsView
    total: UsageTotalsView
    runs: list[TreeRunView]
    children: list[TreeNodeView]
    children_cut: bool
    refused: list[RefusedRunView]
    refused_cut: bool


class TreeUsageListView(AnswerModel):
    """
    Usage of trees, in the order of the request. Trees without runs that the token may see are
    omitted.
    """

    items: list[TreeUsageView]


class VerificationStartView(AnswerModel):
    """
    The running verification. `began` is true if this request started it, false if it was running
    already. A short one may be over already.
    """

    began: bool
    verification: VerificationView


class VerificationStopView(AnswerModel):
    """
    `was_under_way` is true if a verification was running; it stops within a few seconds.
    `verification` is the newest one, if any.
    """

    was_under_way: bool
    verification: VerificationView | None


class AcceptedBatch(AnswerModel):
    """An accepted batch, with one run per task."""

    status: Literal["accepted"]
    batch_id: str
    runs: list[AcceptedRun]


class AcceptedBatchOfOne(AnswerModel):
    """An accepted batch of one task, with the fields of its run repeated at the top."""

    status: Literal["accepted"]
    batch_id: str
    runs: list[AcceptedRun]
    run_id: str
    child_session_key: str
    session_id: str
    label: str | None
    mode: Literal["run", "session"]
    note: str | None
    model_applied: bool | None
    attachments: AttachmentsReceipt | None
    warnings: list[str]


class LaneListView(AnswerModel):
    """The lanes that are not empty."""

    items: list[LaneView]


class RunListView(AnswerModel):
    """
    A page of runs; `next_cursor` is None on the last page. `totals` is set on the first page
    if it was requested.
    """

    items: list[RunSummary]
    next_cursor: str | None
    totals: RunTotalsView | None = None


class SessionTreeView(AnswerModel):
    """
    A session and its descendants. `nodes` counts sessions and spawns being prepared, and
    `running_not_summed` the running runs whose tokens and cost are not known (as in totals of
    runs, of the whole tree). If `cut`, nodes are missing; `children_cut` marks the nodes
    above them. `position` is where the answer is true; `at` is the requested instant, or the
    time when that position was recorded.
    """

    position: int
    at: datetime | None
    nodes: int
    running_not_summed: int
    cut: bool
    root: TreeNodeView


TreeNodeView.model_rebuild()
