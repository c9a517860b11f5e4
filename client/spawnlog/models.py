# Written by `make client` from the description of the HTTP API.
"""Models of answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from spawnlog.core.model import AnswerModel


class AcknowledgedAnswer(AnswerModel):
    """An announcement that was acknowledged."""

    id: str
    run_id: str


class ActorView(AnswerModel):
    """On whose word something is recorded: `kind` is `token`, `child`, `anybody` or `system`."""

    kind: str
    token: str | None
    session: str | None


class AnnouncementStateView(AnswerModel):
    """What became of an announcement."""

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
    The receipt of files that were written, in `rel_dir` below the child's workspace, and what
    has become of them.
    """

    count: int
    total_bytes: int
    rel_dir: str
    state: Literal["written", "removing", "removed", "left_in_place"]


class CallerView(AnswerModel):
    """
    What a token is good for: the id it is known by and never the token itself, its scopes,
    and the patterns of the sessions it may act for. `session` is set when that is just one,
    `run_id` for the token of a child.
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
    """How a rule was decided for one of the runs."""

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
    A part of both runs, and the patch (RFC 6902) from the left to the right one. `erased` are
    the members whose texts are gone and may have differed.
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


class DeliveryView(AnswerModel):
    """
    How far an announcement has come on its way to one webhook. `status_code` and `error` are
    of the last attempt, `next_attempt_at` is None when there is to be none; `parked_for` is
    why then.
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
    A run that another one waits for. `state` is `unmet` when that one was over itself before
    this was done as it was required to be. `run_id` is None where one of the names in a
    request stood for no run, or for several: then nothing was waited for, and lists of runs
    show none.
    """

    run_id: str | None
    name: str
    via: Literal["dependsOn", "chainAfter", "reference"]
    require: Literal["success", "ended"]
    state: Literal["waiting", "met", "unmet"]


class DiffCountsView(AnswerModel):
    """How many are on the page; `unchanged` have events between the two, and read the same."""

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
    A run by its id, or a session by its key. `patch` (RFC 6902) makes what it was at the left
    into what it is at the right; `None` stands for one that was not there.
    """

    kind: Literal["run", "session"]
    id: str
    label: str | None
    patch: list[PatchItem]


class DiffView(AnswerModel):
    """
    What makes the left, as of `from_position`, into the right, as of `to_position`, in the
    order of the first events between them; `next_cursor` is None behind the last page. The
    revisions are those of the configuration that was in force at either, None for none: what
    it says is not part of what is compared.
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
    The first thing that differs: which it is, as a JSON pointer, as it was recorded, and as it
    would be.
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
    What was recorded in a bucket: from `first_position` at `first_at` up to `last_position`
    at `last_at`, which are None where nothing was. `outcomes` are those of runs that ended,
    `rules` those that refused a spawn. `since` and `until` are the edges of a bucket of time:
    behind the one, and not behind the other.
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
    """The envelope and the payload. Free texts are references in it, never the texts."""

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
    Why a step could not be undone, or a webhook or hook did not take what it was sent; None
    if that was erased.
    """

    error: str | None


class FailureView(AnswerModel):
    """Why the answer goes no further."""

    detail: str


class FinishedAnswer(AnswerModel):
    """A steer of a run that is already over: a no-op."""

    status: Literal["done"]
    run_id: str
    child_session_key: str
    session_id: str
    label: str | None
    text: str


class FirstDifferenceView(AnswerModel):
    """The first entries that differ; None where the transcript had ended."""

    left: ComparedEntryView | None
    right: ComparedEntryView | None


class GivenTextsView(AnswerModel):
    """
    What was asked for and is kept beside the log; None what was not given, or is a name and
    stands in the events. `dependencies` are the runs that it was to wait for, as JSON, when
    one of the names stood for no run, or for several.
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
    The answer to a heartbeat. If `stop` is set, end the execution and report the end: the lease
    is no longer renewed. `by` is who requested the stop, `reason` the reason given.
    """

    run_id: str
    stop: Literal["stopped", "steered", "yielded"] | None
    by: str | None
    reason: str | None
    lease_seconds: float


class HistogramView(AnswerModel):
    """
    Buckets of the events behind position `after` up to position `until`. `counted_to` is None
    when all of them were counted; else what stands behind that position was not looked at.
    """

    by: Literal["position", "time"]
    after: int
    until: int
    counted_to: int | None
    items: list[EventBucketView]


class ListedAgent(AnswerModel):
    """
    One agent. It may be allowed and not be configured: then only a context script that names
    another one in its place saves the spawn, and it has no `model` and no `runtime`, which is the
    type of its runtime.
    """

    id: str
    name: str | None
    configured: bool
    model: str | None
    runtime: str | None


class ListedAttachmentsView(AnswerModel):
    """The receipt with the files by name."""

    count: int
    total_bytes: int
    files: list[AttachedFileView]
    rel_dir: str
    state: Literal["written", "removing", "removed", "left_in_place"]


class LogDifferenceView(AnswerModel):
    """The first thing that is not as it was recorded, and the position at which it shows."""

    position: int
    kind: str
    text: str


class ModelUsageView(AnswerModel):
    """
    The share of one model, by the name that the runtime reported; None for one that it did
    not name. `cost_usd` None: there is no price for it.
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
    """A run of a child's session itself; `continues` is the one before it."""

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
    authentication is off, because no code is needed.
    """

    code: str | None
    expires_in_seconds: int


class PageTokenAnswer(AnswerModel):
    """
    A token of the page, with the access of the token that requested its code, valid as long as
    that token.
    """

    token: str
    expires_in_seconds: int


class PendingUndoView(AnswerModel):
    """
    A step that is to be undone and is not yet: where that is, how often it failed and why the
    last time, and when it is tried again.
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
    """How much of what its parent said was handed over, in characters."""

    given_characters: int
    kept_characters: int
    limit: int


class ProgressCountView(AnswerModel):
    """Up to which position the log was gone through, of so many, and how many decisions it was."""

    position: int
    until: int
    decisions: int


class ProgressView(AnswerModel):
    """The last progress that a run at work has told, and when."""

    text: str
    at: datetime


class PromptPartSideView(AnswerModel):
    """A part of one of the prompts; `sha256` is of its bytes, None when they were erased."""

    bytes: int
    sha256: str | None


class PromptPartView(AnswerModel):
    """
    A stretch of a prompt text: where it comes from, UTF-8 offsets `[start, end)` within the
    text, and the SHA-256 of its bytes. `reused_from` is the earlier run for which a context
    script said it; None when it was run for this one, and for what no script said.
    """

    of: Literal["systemPrompt", "message"]
    source: str
    start: int
    end: int
    sha256: str
    reused_from: str | None


class PromptView(AnswerModel):
    """The prompt as the child got it; the parts cover every byte of both texts."""

    system_prompt: str
    message: str
    parts: list[PromptPartView]


class QueuedAnswer(AnswerModel):
    """
    A message that waits for the current run to end. `place` counts from 1. `run_id` is the id
    of the run that will continue with the message.
    """

    status: Literal["queued"]
    run_id: str
    continues: str
    child_session_key: str
    session_id: str
    place: int


class QueuedMessageView(AnswerModel):
    """
    A message that waits for the session's run at work. `run_id` is that of the run which will
    go on with it; `message_preview` None: its text was erased.
    """

    run_id: str
    message_preview: str | None
    by: str
    cause: Literal["message", "steer", "wake"]
    queued_at: datetime | None


class QueuedView(AnswerModel):
    """A run that waits, its place from 1 on, and for what."""

    run_id: str | None
    label: str | None
    place: int
    waits_for: str


class ReachedStageView(AnswerModel):
    """That a run came to a stage: at which position of the log, and when."""

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


class RedrivenAnswer(AnswerModel):
    """Webhooks that receive the announcement again, and hooks that are called again."""

    run_id: str
    webhooks: list[str]
    hooks: list[str]


class RefusalView(AnswerModel):
    """A refusal as the caller was answered."""

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
    A run that was refused, and the rule that refused it. Of a refused message
    `child_session_key` is the session that it was for; of most spawns it is None.
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
    """A run that a session asked for."""

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
    A revision, and the positions and instants between which it was active: `until_position`
    and `until_at` are those at which the next one took its place, None for the one that is
    active. `source` is the absolute path of its file, or `built-in`; `erased` whether its
    text is gone.
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
    A revision with its content as it is kept: secrets are references. Null when it was
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
    content: Any


class RevokedAnswer(AnswerModel):
    """The token is no longer valid. `was_known` is true if it was a token of the page."""

    was_known: bool


class RuleView(AnswerModel):
    """
    What a rule compared, and what came of it; `position` is that of the event which records
    it, None when nothing does.
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
    A run as a bar. `parent_run_id` is the run that asked for it; None where that is a session
    that nobody spawned here.
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
    How many runs the filters leave, at that moment and for that token: all of them, by
    status, by agent (the hundred with the most) and, of those refused, by rule. What has none
    is left out. `counted_to` is None when all were counted; else only the newest were, down
    to the one created at that position.
    """

    runs: int
    statuses: dict[str, int]
    agents: dict[str, int]
    rules: dict[str, int]
    counted_to: int | None


class RunningView(AnswerModel):
    """A run in a slot, and the server that holds it; None what the caller may not see."""

    run_id: str | None
    label: str | None
    holder: str | None


class ScriptFailureTexts(AnswerModel):
    """Why context scripts failed or were skipped, each under its id."""

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
    A session. `asserted_by` is on whose word it is on record, `assertions` which facts rest
    on that alone, `depth_from` where its depth was found. Model and thinking are those of its
    newest run, with where they come from; `queue` are the messages that wait for it,
    `unread_reports` its children that are done and of which no run of it was told. A session
    that nobody spawned here has none of them. `preamble_position` is where the preamble of
    its later runs was written; None for the one of its spawn. `max_children` is by the
    configuration in force; None when that was erased.
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
    """The event that set a field last."""

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
    """How many bytes a session shares under which key, without what it is."""

    session_key: str
    version: int
    position: int
    sizes: dict[str, int]


class SharedSourceView(AnswerModel):
    """
    Who wrote a key: in which session first, and since which position it is so; `run_id` is
    the spawn that brought it or the run whose result it is, `by` who patched it.
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
    What one event made of the run: `changes` is the patch (RFC 6902) from the state before it,
    at first `{}`, to the state of `version`.
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
    Runs that were asked for and not over between the positions `after` and `until`, the
    newest first, and the buckets of what was recorded in between. `buckets_counted_to` is
    None when all of that was counted; `next_cursor` is None behind the last run.
    """

    after: int
    until: int
    items: list[RunBarView]
    next_cursor: str | None
    buckets: list[EventBucketView]
    buckets_counted_to: int | None


class ToolsView(AnswerModel):
    """The tools of a child; `allow` None allows all that are not denied."""

    allow: list[str] | None
    deny: list[str]


class TotalsView(AnswerModel):
    """
    All decisions from one position to another: how many there are of each verdict, by agent
    (the one that was requested) and by rule.
    """

    from_position: int
    to_position: int
    decisions: int
    by_verdict: dict[str, int]
    by_agent: dict[str, dict[str, int]]
    by_rule: dict[str, dict[str, int]]


class TranscriptEntryView(AnswerModel):
    """
    An entry of a transcript; `sequence` counts from 1 within the run, `recorded_at` is when
    the entry came from the agent.
    """

    sequence: int
    recorded_at: datetime
    kind: str
    body: dict[str, Any]


class TranscriptProvidedAnswer(AnswerModel):
    """The stored transcript."""

    session_key: str
    session_id: str
    entries: int
    bytes: int
    tokens: int | None
    position: int


class TranscriptView(AnswerModel):
    """
    A page of a transcript; `next_after` is None behind the last one. Up to `last_sequence`
    all entries were looked at, those of other kinds too: ask again with it as `after`. If
    `complete`, the run is over, and no entry comes behind the last page.
    """

    items: list[TranscriptEntryView]
    next_after: int | None
    last_sequence: int
    complete: bool


class TreeRunView(AnswerModel):
    """A run in a tree. `respawned_from` is the run that it was made from, in whichever tree."""

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


class UsageView(AnswerModel):
    """
    Tokens as the runtime reported them; `total_tokens` is input and output, those of the
    cache stand beside.
    """

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    models: list[ModelUsageView]


class VerificationView(AnswerModel):
    """
    One verification. `state` is `running`, `right`, `different`, `stopped` by somebody,
    `failed` because it could not go on, or `broken-off` when its process is gone. It began
    behind position `began`, all is right up to `checked`, and it ends at `last`, None before
    it knows; `head_hash` is the chain hash there once it has ended. `noted_at` is when it was
    last heard of, `seconds` how long it took or takes so far. `origin` is `server` or
    `command`, and `process` which one. The counts are of what was compared: rows of runs and
    sessions, texts and transcripts, and of those the `erased` ones that are gone with their
    keys.
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


class WhatIfFailureView(AnswerModel):
    """The last line of an answer that is not whole."""

    failure: FailureView


class WhatIfProgressView(AnswerModel):
    """How far the answer is; about once a second."""

    progress: ProgressCountView


class WhatIfTotalsView(AnswerModel):
    """The last line of an answer that is whole."""

    totals: TotalsView


class WhatIfVerdictView(AnswerModel):
    """
    What would have come of one decision: of a `spawn`, or of a `message` to a session.
    `position` is that of its request, `rule` the one that would refuse it, or, of what is newly
    allowed, the one that refused it; `text` is what the caller would have been told. `missing`
    names what is not on record and decides it, `assumed` what is not on record and was taken to be
    in order.
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
    `requester` is the requester's agent, which is first when it may name itself; the others are
    sorted. With `allow_any` these are the configured ones, and any other may be named too.
    """

    requester: str
    allow_any: bool
    agents: list[ListedAgent]


class AnnouncementView(AnswerModel):
    """
    An announcement in an inbox. `origin` has those of `channel`, `accountId`, `to` and
    `threadId` that are known: where the result is to be sent from here. `requester` is whose inbox
    it is; `deliveries` are its ways to webhooks, and when one of them was parked it stands in the
    inbox again, further on, and is not taken any more.
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
    Where something begins to be so: `as_of` is the `at` by which everything is shown as it
    was then, `event` what was recorded there, None when nothing of what was looked at was.
    `before` and `after` are the numbers or the field in front of it and from it on.
    `already_held`: it was so before the range began, which is where it begins.
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
    """A rule in both explanations; None where the explanation has no such rule."""

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
    A part of the prompts. `erased`: it may have differed, and nobody can tell any more.
    `diff` is a unified diff, None for equal parts and for such as are too long.
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
    How many entries each has (None while the run is at work), how many are equal from the
    first one on, and the first that differ. `same` is None when so many are equal that the
    others were not looked at. With `erased` entries of one of them are gone, and may have
    differed.
    """

    same: bool | None
    left_entries: int | None
    right_entries: int | None
    equal_entries: int
    first_difference: FirstDifferenceView | None
    erased: bool


class EventListView(AnswerModel):
    """
    A page of the log. It was looked through up to `next_after`; `head` is where the log ends,
    or ended at the moment that was asked about. With the newest first it was looked through
    from `next_after` down to `next_before`, which is None when nothing that was asked for is
    older, and on pages with the oldest first.
    """

    items: list[EventView]
    next_after: int
    next_before: int | None
    head: int


class EventWithTexts(AnswerModel):
    """An event with those of its texts that can be read nowhere else."""

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
    texts: FailureText | ScriptFailureTexts


class ExplanationView(AnswerModel):
    """Every rule in the order of the decision, and the refusal, None when there is none."""

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
    """A page of an inbox; `next_after` is None behind the last one."""

    items: list[AnnouncementView]
    next_after: int | None


class LaneView(AnswerModel):
    """
    One lane at one depth. `width` is by the configuration in force; None when that was
    erased.
    """

    lane: str
    depth: int
    width: int | None
    running: list[RunningView]
    queued: list[QueuedView]


class LogHeadView(AnswerModel):
    """
    Where the log ends, or ended then, and the hash that chains all of it: None where there is
    no event. The verifications are those of now, the newest first: no moment of the log has
    them.
    """

    log_id: str
    position: int
    recorded_at: datetime | None
    chain_hash: str | None
    verifications: list[VerificationView]


class MomentView(AnswerModel):
    """
    A position of the log and when its event was recorded: None before all events.
    `append_last` is the last position of the append that it is of, `config_revision` the
    number of the configuration in force then, None before the first one and for who does not
    see all of the log. `before` are the events up to the position, `after` those behind it,
    both in order; of what others did a token sees nothing.
    """

    position: int
    recorded_at: datetime | None
    append_last: int | None
    config_revision: int | None
    before: list[NearEventView]
    after: list[NearEventView]


class RevisionListView(AnswerModel):
    """A page of revisions, the newest first; `next_cursor` is None behind the last one."""

    items: list[RevisionSummary]
    next_cursor: str | None


class RunComparisonView(AnswerModel):
    """
    Two runs side by side. `same` is whether nothing differs; how long each took does not
    count. `prompt` and `transcript` are None for a token without the scope `content`.
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
    """Events of one run; `next_after` is None behind the last page."""

    items: list[EventWithTexts | EventView]
    next_after: int | None


class RunHistoryView(AnswerModel):
    """
    States of a run in order. `version` is the newest one that is looked at; `set_by` has of
    each field of that state the event which set it last; `next_after` is None behind the last
    page.
    """

    run_id: str
    version: int
    items: list[StateChangeView]
    set_by: dict[str, SetByView]
    next_after: int | None


class RunMetadataView(AnswerModel):
    """
    One run for a caller that may not read its texts: previews of the task and of an error, and
    every field that holds no text. `respawns` are the first hundred runs that were made from it,
    of those that the caller may see. Times are UTC, `*Ms` milliseconds.
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
    respawns: list[str]
    context_preamble: PreambleView | None
    transcript_entries: int | None


class RunSharedContextView(AnswerModel):
    """
    What a run was given when it was claimed at `position`; `erased` are the keys whose values
    are None because they were erased.
    """

    run_id: str
    position: int | None
    values: dict[str, Any]
    erased: list[str]
    sources: dict[str, SharedSourceView]


class RunSummary(AnswerModel):
    """
    A run with the beginning of its task, as lists show it. Times are UTC, `*Ms`
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


class RunView(AnswerModel):
    """
    A run with its texts. `respawns` are the first hundred runs that were made from it, of those
    that the caller may see. Times are UTC, `*Ms` milliseconds.
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
    requester_origin: Any


class SearchView(AnswerModel):
    """
    The breakpoints that were found, in order, and what that took: `events_read` in `reads`
    questions to the log, up to `searched_to`. With a `next_cursor` the search is not at its
    end.
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
    """What a session shares, and how it came to that."""

    session_key: str
    version: int
    position: int
    sizes: dict[str, int]
    values: dict[str, Any]
    erased: list[str]
    sources: dict[str, SharedSourceView]
    history: list[SharedChangeView]
    started_with: list[SharedStartView]


class TreeNodeView(AnswerModel):
    """
    A session with its own runs in order of creation, and those below it. `session_key` is
    None for a spawn that is prepared and has no session yet. `children_cut` says that there
    may be others below it than those in `children`: ask for the tree of this session.
    `refused` are the runs that this session asked for and that were refused, in order of
    creation: spawns, and messages to its children. `refused_cut` says that there may be more
    of them: ask the registry.
    """

    session_key: str | None
    session_id: str | None
    agent_id: str | None
    depth: int
    role: str | None
    open: bool
    created_at: datetime
    active_children: int
    runs: list[TreeRunView]
    children: list[TreeNodeView]
    children_cut: bool
    refused: list[RefusedRunView]
    refused_cut: bool


class VerificationStartView(AnswerModel):
    """
    The verification that is under way: whether this request `began` it, or another one did
    before. A short one may be over already.
    """

    began: bool
    verification: VerificationView


class VerificationStopView(AnswerModel):
    """Whether one was under way, which stops within some seconds; and the newest one, if any."""

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
    """The lanes that have somebody in them."""

    items: list[LaneView]


class RunListView(AnswerModel):
    """
    A page of the registry; `next_cursor` is None behind the last one. `totals` are there when
    they were asked for, beside the first page.
    """

    items: list[RunSummary]
    next_cursor: str | None
    totals: RunTotalsView | None = None


class SessionTreeView(AnswerModel):
    """
    A session and its descendants. `nodes` counts sessions and spawns that are prepared. `cut`
    says that some are left out: the nodes above them say so. `position` is where it is true, `at`
    the instant that was asked for, or when the position was recorded.
    """

    position: int
    at: datetime | None
    nodes: int
    cut: bool
    root: TreeNodeView


TreeNodeView.model_rebuild()
