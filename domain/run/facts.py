"""The values that events of a run are made of."""

from typing import Literal
from uuid import UUID

from domain.content import ContentRef
from domain.values.record import Fact

RunOutcome = Literal["success", "error", "timeout", "stopped", "unknown"]
RefusalStatus = Literal["forbidden", "error"]
Cleanup = Literal["delete", "keep"]
ContextMode = Literal["isolated", "fork"]
OutputEncoding = Literal["utf-8", "base64"]


class Requester(Fact):
    """Who asks: the session as it is on record. `origin` refers to the addresses it gave.

    `sandboxed` is what held for it at this moment; `workspace_dir`, `model` (`provider/name`) and
    `thinking` are those of its own run, None for a session that was not spawned. A sub-agent
    inherits them. All four are None before version 2 of `SpawnRequested`.
    """

    session_key: str
    display_key: str
    agent_id: str
    depth: int
    root_session_key: str
    run_id: UUID | None = None
    spawned_by: str | None = None
    origin: ContentRef | None = None
    sandboxed: bool | None = None
    workspace_dir: str | None = None
    model: str | None = None
    thinking: str | None = None


class SpawnOptions(Fact):
    """The options of a request as they were given, after the request's own defaults.

    `requester_sandboxed` is what the request says of its requester; it only ever tightens what is
    on record.
    """

    model: str | None = None
    thinking: str | None = None
    run_timeout_seconds: float | None = None
    mode: Literal["run", "session"] = "run"
    cleanup: Cleanup = "keep"
    context_mode: ContextMode = "isolated"
    expects_completion_message: bool = True
    active_model: str | None = None
    active_thinking: str | None = None
    workspace_dir: str | None = None
    sandbox: Literal["inherit", "require"] = "inherit"
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
    """What a child's session took over from its requester's: so many entries, up to a position of
    the log. `tokens` is how many they were taken to be; None where there was nothing to count.
    With `mode` "isolated" they were too many, and nothing was taken over.
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
    of a script at a URL. All three are None before version 2 of `ScriptsResolved`, in which
    `output` was the text without the blanks around it.
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


class Candidate(Fact):
    """One proposal of another agent, and what became of it."""

    script_id: str
    priority: float
    agent_id: str | None = None
    verdict: str


class Plan(Fact):
    """How the child will run. Times in seconds and minutes; None means without limit.

    `model_applied` is whether the model that was named first is the one that will be told to the
    runtime; None when none was named anywhere. The `*_source` say where a value was found.
    `auth_profiles` are the ids of the credentials that the child will be given, never values.
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
    run_timeout_source: Literal["argument", "defaults"] | None = None
    workspace_source: Literal["agent", "requester"] | None = None
    sandboxed: bool = False
    auth_profiles: tuple[str, ...] = ()


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


class Usage(Fact):
    """Tokens as the runtime reported them."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


class TranscriptSeal(Fact):
    """What the transcript was when the run ended: entries, bytes, keyed hash over all of it."""

    count: int
    bytes: int
    hmac: str
    path: str | None = None
