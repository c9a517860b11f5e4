"""Values used in the events of a run."""

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
    """Facts that the admission rules compare.

    Attributes:
        target_agent_id: Normalized; the requester's own if no id was given, None if the given text
            is not an agent id.
        mode: The effective mode.
        depth_from: Where the caller's depth was found.
        allow_agents: The list configured for the requester, or None.
        require_agent_id_from: Where in the configuration the value was found, or None; so for
            `allow_agents_from`.
        places: How many children the request asks for.
        shared_bytes: Size of the family's shared context with the request's keys; None if the
            request shares nothing. `shared_keys` counts its keys.
        spawn_tool: Whether the tool policy of the requester's own run permits `sessions_spawn`;
            None if the requester has no run here.
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
"""Whether a result goes to the requester's inbox."""
RunOutcome = Literal["success", "error", "timeout", "stopped", "unknown"]
Cleanup = Literal["delete", "keep"]
ContextMode = Literal["isolated", "fork"]
OutputEncoding = Literal["utf-8", "base64"]


class Requester(Fact):
    """Requesting session, as recorded when the spawn was requested.

    Attributes:
        origin: The addresses that it gave, as JSON.
        sandboxed: Whether it was in a sandbox at that moment.
        workspace_dir: The folder of its own run, which a child inherits; None if the session was
            not spawned. The same holds for `model` (`provider/name`) and `thinking`.
        may_yield: Whether its own run has the tool `sessions_yield`; None if it has no run here.
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
"""For a respawn: whether context scripts run again, or their recorded output is reused."""


class RespawnFacts(Fact):
    """Earlier run that a spawn was made from, and the changes.

    Attributes:
        replaced: Members of the request that were changed, by their names in the request body.
        transcript_up_to: How many entries of that run's transcript the child begins with.
        is_revision_chosen: True if the caller named the configuration revision; otherwise the one
            in force was used.
    """

    run_id: UUID
    replaced: tuple[str, ...] = ()
    scripts: ScriptChoice = "again"
    transcript_up_to: int | None = None
    is_revision_chosen: bool = False


class GivenOptions(Fact):
    """Options of a request that are recorded unchanged.

    Each field here also becomes a member of the spawn body, of the tool `sessions_spawn`, of the
    event that records the request, of the state of its run, and of a respawn.
    """

    run_timeout_seconds: Annotated[
        float | None,
        Field(
            description=(
                "Timeout in seconds, rounded down; 0 or less: no limit. Default: as configured."
            )
        ),
    ] = None
    sandbox: Annotated[
        Literal["inherit", "require"],
        Field(description="`require`: refuse the spawn if the child would not be in a sandbox."),
    ] = "inherit"
    context: Annotated[
        ContextMode | None,
        Field(
            description=(
                "`fork`: the child begins with the requester's conversation up to now; only for the"
                " requester's own agent. Default: in a channel thread,"
                " `session.threadBindings.defaultSpawnContext`; otherwise `isolated`."
            )
        ),
    ] = None
    light_context: Annotated[
        bool, Field(description="Leave the workspace's bootstrap files out of the prompt.")
    ] = False
    expects_completion_message: Annotated[
        bool, Field(description="If false, the end of the run is not announced.")
    ] = True


class SpawnOptions(GivenOptions):
    """Options of a run: those of its request, and the effective values derived from it.

    Attributes:
        model: A model name; other given text is referenced by the event (`model_argument`). The
            same holds for `thinking`.
        mode: The effective mode, with the default applied; likewise `cleanup`.
        active_model: The requester's model, as stated in the request; likewise `active_thinking`.
        requester_sandboxed: True if the request states that the requester is in a sandbox. It can
            only tighten the recorded value.
    """

    model: str | None = None
    thinking: str | None = None
    mode: SpawnMode = "run"
    cleanup: Cleanup = "keep"
    active_model: str | None = None
    active_thinking: str | None = None
    requester_sandboxed: bool = False


class AttachmentsRequest(Fact):
    """Attachments of a request, checked under the configuration revision of its admission.

    The file contents are in no event.

    Attributes:
        retain: Whether the files stay if the session is kept
            (`tools.sessions_spawn.attachments.retainOnSessionKeep`).
        manifest: Names, sizes and hashes of the files.
        refusal: Text of the reason why they are refused, if they are.
    """

    count: int
    total_bytes: int = 0
    mount_path_hint: str | None = None
    retain: bool = False
    manifest: ContentRef | None = None
    refusal: ContentRef | None = None
    refusal_status: RefusalStatus | None = None


class ForkFacts(Fact):
    """Entries that a child's session copied from its requester, or from the respawned run.

    Attributes:
        position: The log position up to which entries were copied.
        entries: How many entries.
        tokens: Their estimated number of tokens; None if there was nothing to count.
        mode: `isolated` if they were too many, so that nothing was copied.
    """

    source_session_id: UUID | None = None
    position: int
    entries: int
    tokens: int | None = None
    mode: ContextMode


class ScriptReceipt(Fact):
    """Receipt of one context script. Texts are references; `uri` is as configured.

    Attributes:
        output: Its exact output: as text, or in base64 according to `output_encoding`.
        output_hmac: The keyed hash of the output bytes.
        status_code: The HTTP status, for a script at a URL.
        reused_from: The run whose recorded output was reused instead of running the script; None
            if the script ran.
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
    """Proposal of another agent by a context script, with its verdict."""

    script_id: str
    priority: float
    agent_id: str | None = None
    verdict: str


SUBAGENT_LANE = "subagent"
EXTERNAL_LANE = "external"


class Plan(Fact):
    """Plan of how the child will run.

    Attributes:
        model_applied: True if the runtime receives the model that was named first; None if no
            place names one. `*_source` fields name the place of a value.
        run_timeout_seconds: 0 means no limit.
        archive_after_minutes: 0 means never.
        auth_profiles: Ids of the credentials that the child receives, never their values.
        idle_hours: When to archive an open session after its last run; None means never.
        max_age_hours: When to archive an open session after its beginning; None means never.
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
        """Return the lane that the run waits in.

        External runs have their own lane, so that they do not block others until an executor claims
        them.
        """
        return EXTERNAL_LANE if self.runtime == EXTERNAL else SUBAGENT_LANE

    @property
    def model_reference(self) -> str | None:
        """Return the model as the runtime receives it: `provider/name`, or only the name."""
        if self.model is None:
            return None
        return f"{self.model_provider}/{self.model}" if self.model_provider else self.model


class Ingredient(Fact):
    """Piece of the prompt that is known before the run starts."""

    source: str
    position: Literal["preamble", "bootstrap", "prepend", "task", "append"]
    content: ContentRef


class PromptPart(Fact):
    """Part of a prompt text: UTF-8 byte offsets `[start, end)` and a keyed hash."""

    of: Literal["systemPrompt", "message"]
    source: str
    start: int
    end: int
    hmac: str


class ModelUsage(Fact):
    """Tokens and cost of one model.

    Attributes:
        model: The name that the runtime reported, if it reported one.
        priced_as: The model (`provider/model`) whose price was applied.
        cost_usd: US dollars; None without a price.
    """

    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    priced_as: str | None = None
    cost_usd: float | None = None


class Usage(Fact):
    """Tokens as reported by the runtime, in total and by model.

    Cache tokens are counted apart from input tokens; `total_tokens` is input plus output.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    models: tuple[ModelUsage, ...]

    @property
    def unpriced_models(self) -> int:
        """Return the number of models without a price, whose tokens are missing from the cost."""
        return sum(share.cost_usd is None for share in self.models)


class TranscriptSeal(Fact):
    """Seal of a transcript at the end of the run: entries, bytes, and keyed hash over all of it."""

    count: int
    bytes: int
    hmac: str
    path: str | None = None


# Dependencies and batches.


DependencyVia = Literal["dependsOn", "chainAfter", "reference"]
DependencyNeeds = Literal["success", "ended"]


class Dependency(Fact):
    """Earlier run of the tree that a run waits for, until it and all runs below it are over.

    Attributes:
        name: The name used in the request.
        require: `success`, or `ended` if any outcome will do.
    """

    run_id: UUID
    name: str
    via: DependencyVia
    require: DependencyNeeds = "success"


class BatchFacts(Fact):
    """Runs of one request in order, and the 0-based index of this one."""

    batch_id: UUID
    index: int
    run_ids: tuple[UUID, ...]


# Messages.


MessageCause = Literal["message", "steer", "wake"]
"""Why a message exists: sent by a caller, sent to replace the current turn, or made by the server
because children have reported."""


class QueuedMessage(Fact):
    """Message that waits for the active run.

    `run_id` is the id of the run that will process it, `traceparent` the sender's trace context.
    """

    run_id: UUID
    message: ContentRef
    by: str
    cause: MessageCause = "message"
    queued_at: datetime
    traceparent: str | None = None


# Preparation steps: resources made for a child outside the log.


StepName = Literal["thread_binding", "context_fork", "workspace", "attachments", "context_engine"]
STEP_ORDER: tuple[StepName, ...] = get_args(StepName)
"""Order of the steps; undos run in reverse."""


StepOutcome = Literal["made", "written", "nothing", "bound", "forked", "isolated", "prepared"]
UndoOutcome = Literal["undone", "nothing_there", "left_in_place", "no_hook"]


def step_key(run_id: UUID, name: StepName) -> str:
    """Return the key by which a receiver recognizes a repeat of the same step of the same run."""
    return f"{run_id}:{name}"


class StepState(Fact):
    """State of one preparation step of a run. Times are UTC. The undo of the step is an `Effect`.

    Attributes:
        epoch: The claim under which it was last begun.
        limit_seconds: How long after `begun_at` work on it may last.
        root: The real path of a folder; `relative` is the path to make below it.
        made: Whether anything was made; None until the step is taken.
        token: A value from the hook that performed it, to be sent back with the undo.
        fork: The copied part of the requester's conversation.
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


# Lifecycle hooks.


HOOK_ORDER: tuple[HookName, ...] = get_args(HookName)
"""Call order: hooks for the start of a run before those for its end."""


HOOKS_OF_ENDS: tuple[HookName, ...] = ("subagentEnded", "onSubagentEnded")


def hook_key(run_id: UUID, name: HookName) -> str:
    """Return the key by which a receiver recognizes a repeat of the same hook of the same run."""
    return f"{run_id}:{name}"


# Effects.


EffectKind = Literal["undo", "hook", "webhook"]
ParkReason = Literal["attempts", "refused", "not_configured", "erased"]


class Effect(Fact):
    """Effect of a run outside the log: an undo, a hook call, or a delivery to a webhook.

    Attributes:
        name: The name of the step, hook or webhook.
        phase: `due` effects are attempted. A hook is `waiting` until its event happens, and
            `passed_on` if the run that continues this one calls it.
        due_at: When the next attempt is due (UTC).
        attempts: All attempts; `attempts_before` counts those before the last redrive.
        status_code: From the last attempt, as are `error` and `outcome`.
        reason: Why it is parked.
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
