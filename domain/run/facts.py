"""The values that events of a run are made of."""

from datetime import datetime
from typing import Annotated, Literal, get_args
from uuid import UUID

from pydantic import Field

from domain.values.record import ContentRef, Fact
from domain.values.rules import RefusalStatus
from domain.values.runtime_types import EXTERNAL
from domain.values.sources import ConfiguredAt, DepthSource

HookName = Literal["subagentSpawned", "subagentEnded", "onSubagentEnded"]
SpawnMode = Literal["run", "session"]


class AdmissionFacts(Fact):
    """What the answer is made from.

    `target_agent_id` is normalised; the requester's own when no id was given, None when what was
    given is no agent id. `mode` is the effective one. `allow_agents` is the list that holds for
    the requester, as configured; None when none is. `depth_from` says where the caller's depth was
    found. `require_agent_id_from` and `allow_agents_from` say where in the configuration their
    values stand; None when they are not configured. `places` is how many children were asked for at
    once. `shared_bytes` and `shared_keys` are how much its family would share with what the request
    adds; None when it shares nothing. `spawn_tool` is whether the tool policy of the requester's
    own run has `sessions_spawn`; None when it has no run here.
    """

    requester_agent_id: str
    agent_id_argument_given: bool
    target_agent_id: str | None
    mode: Literal["run", "session"]
    thread: bool
    caller_depth: int
    max_spawn_depth: int
    active_children: int
    max_children: int
    require_agent_id: bool
    allow_agents: tuple[str, ...] | None
    depth_from: DepthSource
    require_agent_id_from: ConfiguredAt | None = None
    allow_agents_from: ConfiguredAt | None = None
    places: int = 1
    shared_bytes: int | None = None
    shared_keys: int | None = None
    spawn_tool: Literal["permitted", "denied"] | None = None


Disposition = Literal["inbox", "skipped", "not_required"]
"""Where an announcement goes."""
RunOutcome = Literal["success", "error", "timeout", "stopped", "unknown"]
Cleanup = Literal["delete", "keep"]
ContextMode = Literal["isolated", "fork"]
OutputEncoding = Literal["utf-8", "base64"]


class Requester(Fact):
    """Who asks: the session as it is on record. `origin` refers to the addresses it gave.

    `sandboxed` is what held for it at this moment; `workspace_dir`, `model` (`provider/name`) and
    `thinking` are those of its own run, None for a session that was not spawned. A sub-agent
    inherits them. `may_yield` is whether its own run has the tool `sessions_yield`; None when it
    has no run here.
    """

    session_key: str
    display_key: str
    agent_id: str
    depth: int
    root_session_key: str
    run_id: UUID | None = None
    spawned_by: str | None = None
    origin: ContentRef | None = None
    sandboxed: bool
    workspace_dir: str | None = None
    model: str | None = None
    thinking: str | None = None
    may_yield: bool | None = None


ScriptChoice = Literal["again", "recorded"]
"""Whether context scripts run again for a spawn made from an earlier one, or what they printed then
is read once more."""


class RespawnFacts(Fact):
    """That a spawn was made from an earlier run, and how.

    `replaced` are the members of its request that were changed, by the names that a request has
    for them. With `transcript_up_to` the child begins with so many entries of that run's
    transcript. `is_revision_chosen` is whether the configuration revision was named by whoever
    asked, and not the one in force.
    """

    run_id: UUID
    replaced: tuple[str, ...] = ()
    scripts: ScriptChoice = "again"
    transcript_up_to: int | None = None
    is_revision_chosen: bool = False


class GivenOptions(Fact):
    """The options of a request that are recorded as they were given.

    A field here is a member of the body of a spawn, of the tool `sessions_spawn`, of the event that
    records the request, of the state of its run, and of a respawn.
    """

    run_timeout_seconds: Annotated[
        float | None,
        Field(description="Rounded down to whole seconds; 0, or less, is without limit."),
    ] = None
    sandbox: Annotated[
        Literal["inherit", "require"],
        Field(description="`require` refuses a child that would not be in a sandbox."),
    ] = "inherit"
    context: Annotated[
        ContextMode | None,
        Field(
            description=(
                "`fork`: the child begins with the requester's conversation up to now. Only of the"
                " requester's own agent. Without it a child in a thread of a channel follows"
                " `session.threadBindings.defaultSpawnContext`, any other starts `isolated`."
            )
        ),
    ] = None
    light_context: Annotated[
        bool, Field(description="Leave the files of the agent's workspace out of the prompt.")
    ] = False
    expects_completion_message: Annotated[
        bool, Field(description="False: nothing is announced when the run has ended.")
    ] = True


class SpawnOptions(GivenOptions):
    """The options of a run: those of its request, and what follows from them.

    `model` and `thinking` are names; of other texts the event has a reference. `mode` and `cleanup`
    are what holds if the request said nothing. `active_model` and `active_thinking` are what the
    request says of its requester, and `requester_sandboxed` too, which only ever tightens what is
    on record.
    """

    model: str | None = None
    thinking: str | None = None
    mode: SpawnMode = "run"
    cleanup: Cleanup = "keep"
    active_model: str | None = None
    active_thinking: str | None = None
    requester_sandboxed: bool = False


class AttachmentsRequest(Fact):
    """What a request attached, judged under the revision it was admitted under.

    `manifest` refers to the names, sizes and hashes of the files, `refusal` to the text of what
    was wrong with them; their contents are in no event. `retain` is whether they stay when the
    session is kept (`tools.sessions_spawn.attachments.retainOnSessionKeep`).
    """

    count: int
    total_bytes: int = 0
    mount_path_hint: str | None = None
    retain: bool = False
    manifest: ContentRef | None = None
    refusal: ContentRef | None = None
    refusal_status: RefusalStatus | None = None


class ForkFacts(Fact):
    """What a child's session took over from its requester's, or from the run that it was respawned
    from: so many entries, up to a position of the log. `tokens` is how many they were taken to be;
    None where there was nothing to count. With `mode` "isolated" they were too many, and nothing
    was taken over.
    """

    source_session_id: UUID | None = None
    position: int
    entries: int
    tokens: int | None = None
    mode: ContextMode


class ScriptReceipt(Fact):
    """What one context script did. Texts are references; `uri` is as configured.

    `output` is what it printed or answered, byte by byte: as text, or in base64 where
    `output_encoding` says so; `output_hmac` is the keyed hash of these bytes. `status_code` is that
    of a script at a URL. `reused_from` is the run for which it printed that: it was not run again;
    None when it was run.
    """

    id: str
    uri: str
    format: Literal["arguments", "json"]
    priority: float
    position: Literal["prepend", "append"]
    outcome: Literal["injected", "empty", "failed", "skipped"]
    duration_ms: int
    exit_code: int | None = None
    status_code: int | None = None
    output_bytes: int = 0
    output: ContentRef | None = None
    output_encoding: OutputEncoding | None = None
    output_hmac: str | None = None
    injected: ContentRef | None = None
    error: ContentRef | None = None
    candidate: str | None = None
    reused_from: UUID | None = None


class Candidate(Fact):
    """One proposal of another agent, and what became of it."""

    script_id: str
    priority: float
    agent_id: str | None = None
    verdict: str


SUBAGENT_LANE = "subagent"
EXTERNAL_LANE = "external"


class Plan(Fact):
    """How the child will run. Times in seconds and minutes; None means without limit.

    `model_applied` is whether the model that was named first is the one that will be told to the
    runtime; None when none was named anywhere. The `*_source` say where a value was found.
    `auth_profiles` are the ids of the credentials that the child will be given, never values. A
    session that stays open is put away `idle_hours` after its last run, and `max_age_hours` after
    its beginning; None is never.
    """

    model_provider: str | None = None
    model: str | None = None
    model_source: str
    model_applied: bool | None = None
    thinking: str | None = None
    run_timeout_seconds: int
    workspace_dir: str | None = None
    tools_allow: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...]
    runtime: str
    archive_after_minutes: int
    cost_input_usd_per_million: float | None = None
    cost_output_usd_per_million: float | None = None
    thinking_source: str | None = None
    run_timeout_source: Literal["argument", "defaults"]
    workspace_source: Literal["agent", "requester"]
    sandboxed: bool = False
    auth_profiles: tuple[str, ...] = ()
    idle_hours: float | None = None
    max_age_hours: float | None = None

    @property
    def lane(self) -> str:
        """Where it waits for its place. What is executed outside has a lane of its own, so that
        nobody stands behind a run that its executor has not come for."""
        return EXTERNAL_LANE if self.runtime == EXTERNAL else SUBAGENT_LANE

    @property
    def model_reference(self) -> str | None:
        """The model as it is told to the runtime: `provider/name`, or the name alone."""
        if self.model is None:
            return None
        return f"{self.model_provider}/{self.model}" if self.model_provider else self.model


class Ingredient(Fact):
    """A piece of the prompt known before the run starts, in the order it will stand there."""

    source: str
    position: Literal["preamble", "bootstrap", "prepend", "task", "append"]
    content: ContentRef


class PromptPart(Fact):
    """A stretch of a prompt text: UTF-8 byte offsets `[start, end)` and the keyed hash of it."""

    of: Literal["systemPrompt", "message"]
    source: str
    start: int
    end: int
    hmac: str


class ModelUsage(Fact):
    """The share of one model: its name as the runtime reported it, None where it reported none, its
    tokens, and what they cost in US dollars, None without a price. `priced_as` is whose price that
    is (`provider/model`)."""

    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    priced_as: str | None = None
    cost_usd: float | None = None


class Usage(Fact):
    """Tokens as the runtime reported them, those of the cache beside the input; `total_tokens` is
    input and output. `models` are the shares of the models."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    models: tuple[ModelUsage, ...]


class TranscriptSeal(Fact):
    """What the transcript was when the run ended: entries, bytes, keyed hash over all of it."""

    count: int
    bytes: int
    hmac: str
    path: str | None = None


# What a run waits for before it is queued, and with which others it was asked for.


DependencyVia = Literal["dependsOn", "chainAfter", "reference"]
DependencyNeeds = Literal["success", "ended"]


class Dependency(Fact):
    """An earlier run of the tree, by the `name` it was asked for with. It is waited for until it
    and all below it are over; `require` is whether any end of it will do."""

    run_id: UUID
    name: str
    via: DependencyVia
    require: DependencyNeeds = "success"


class BatchFacts(Fact):
    """The place of a run among those of one request, from 0 on, and all of them in their order."""

    batch_id: UUID
    index: int
    run_ids: tuple[UUID, ...]


# What a session goes on with, once its run has ended.


MessageCause = Literal["message", "steer", "wake"]
"""Somebody sent it; somebody sent it in the place of what the run was at; or the session's children
have reported."""


class QueuedMessage(Fact):
    """A message that waits for the run at work. `run_id` is that of the run which will go on with
    it, `traceparent` the trace context that it was sent with."""

    run_id: UUID
    message: ContentRef
    by: str
    cause: MessageCause = "message"
    queued_at: datetime
    traceparent: str | None = None


# The steps of a preparation: what is made for a child outside the log, and unmade from it.


StepName = Literal["thread_binding", "context_fork", "workspace", "attachments", "context_engine"]
STEP_ORDER: tuple[StepName, ...] = get_args(StepName)
"""Steps are taken in this order and undone in the reverse."""


StepOutcome = Literal["made", "written", "nothing", "bound", "forked", "isolated", "prepared"]
UndoOutcome = Literal["undone", "nothing_there", "left_in_place", "no_hook"]


def step_key(run_id: UUID, name: StepName) -> str:
    """By this a receiver tells a repeat of the same step of the same run."""
    return f"{run_id}:{name}"


class StepState(Fact):
    """One step of one run. Times are UTC.

    `epoch` is the claim under which it was begun last, `limit_seconds` how long from `begun_at` on
    its maker may be at work. `root` is a folder by its real path and `relative` what is made below
    it. `made` is whether anything was; None until it is taken. `token` is what its maker gave to be
    told when it is undone, `fork` what was taken over of the requester's conversation. That it is
    undone is an `Effect` of the run.
    """

    name: StepName
    key: str
    phase: Literal["begun", "taken"] = "begun"
    epoch: int
    begun_at: datetime
    limit_seconds: float
    root: str | None = None
    relative: str | None = None
    made: bool | None = None
    can_undo: bool = False
    manifest: ContentRef | None = None
    file_count: int | None = None
    total_bytes: int | None = None
    fork: ForkFacts | None = None
    token: ContentRef | None = None


# The hooks that are told of a run.


HOOK_ORDER: tuple[HookName, ...] = get_args(HookName)
"""Nobody is told of an end before the beginning."""


HOOKS_OF_ENDS: tuple[HookName, ...] = ("subagentEnded", "onSubagentEnded")


def hook_key(run_id: UUID, name: HookName) -> str:
    """By this a receiver tells a repeat of the same hook of the same run."""
    return f"{run_id}:{name}"


# What a run has to do outside the log, and how far each of it has come.


EffectKind = Literal["undo", "hook", "webhook"]
ParkReason = Literal["attempts", "refused", "not_configured", "erased"]


class Effect(Fact):
    """One effect of one run outside the log: the undo of a step, a call of a hook, or the
    announcement on its way to a webhook. `name` is that of the step, hook or webhook.

    It is attempted from `due_at` (UTC) on while its `phase` is `due`. A hook is `waiting` until
    its event happens, and `passed_on` if the run that continues this one calls it. `attempts`
    counts the attempts, `attempts_before` those before the last redrive. `status_code`, `error` and
    `outcome` are those of the last attempt, `reason` is why it is parked.
    """

    kind: EffectKind
    name: str
    phase: Literal["waiting", "due", "done", "parked", "passed_on"] = "due"
    attempts: int = 0
    attempts_before: int = 0
    due_at: datetime | None = None
    status_code: int | None = None
    error: ContentRef | None = None
    outcome: UndoOutcome | None = None
    reason: ParkReason | None = None
