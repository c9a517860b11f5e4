"""Runtimes: what executes a child."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol
from uuid import UUID

from domain.delivery.output_notes import OutputNote
from domain.delivery.transcript import UsageEntry

if TYPE_CHECKING:
    # A process that folds the log reads no configuration.
    from domain.configuration.runtimes import Runtime

EntryKind = Literal["session", "message", "tool", "usage", "progress", "result", "text"]


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """Something the runtime said while it ran. `body` is JSON: `role`, `text`, `name`, `input`,
    `output`, `inputTokens`, `outputTokens`, `model`, as the kind has them. An entry `session` is
    said by nobody: it stands where a conversation that was forked begins. `arrived_at` is when this
    process got it, in seconds of the event loop's clock; None means now."""

    kind: EntryKind
    body: Mapping[str, object]
    arrived_at: float | None = field(default=None, compare=False)


def message_entry(message: str) -> TranscriptEntry:
    """What the child was told, as the first entry of its transcript."""
    return TranscriptEntry("message", {"role": "user", "text": message})


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything a runtime gets. `token` lets the child call back; it is never recorded.

    `attachments_dir` is the absolute folder of what was attached, None when nothing was;
    `history_files` are the JSONL files of what was said in the session before, the earliest first.
    `delivery_origin` is where the session's thread is; with `deliver` the runtime brings its result
    there. `requester` is what the requester said of where it is. `run_timeout_seconds` 0 is without
    limit. `fallback_models` stand in for `model`, in their order. `environment` is that of a
    process; for a model it is where its endpoint is and what opens it, by the names of its runtime.
    `traceparent` is for spans of its own, None where none are sent.
    """

    run_id: UUID
    session_key: str
    agent_id: str
    requester_session_key: str
    depth: int
    runtime: "Runtime"
    system_prompt: str
    message: str
    model: str | None
    fallback_models: tuple[str, ...] = ()
    thinking: str | None
    tools_allow: tuple[str, ...] | None
    tools_deny: tuple[str, ...]
    shared_context: Mapping[str, object] = field(default_factory=dict)
    workspace_dir: str | None
    attachments_dir: str | None = None
    history_files: tuple[str, ...] = ()
    delivery_origin: Mapping[str, str | int] | None = None
    deliver: bool = False
    requester: Mapping[str, object] = field(default_factory=dict)
    label: str | None = None
    run_timeout_seconds: int = 0
    lane: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str | None
    traceparent: str | None = None
    token: str | None = field(repr=False)


REQUESTER_FIELDS = (
    "channel",
    "accountId",
    "to",
    "threadId",
    "groupId",
    "groupChannel",
    "groupSpace",
    "memberRoleIds",
)
"""What a requester may say of where it is; null for what it did not."""


def launch_object(launch: Launch) -> dict[str, object]:
    """What whoever executes it is told, as JSON: a program on its input, an executor outside when
    it has claimed it."""
    allow = launch.tools_allow
    return {
        "runId": str(launch.run_id),
        "sessionKey": launch.session_key,
        "agentId": launch.agent_id,
        "label": launch.label,
        "depth": launch.depth,
        "lane": launch.lane,
        "runTimeoutSeconds": launch.run_timeout_seconds,
        "requester": {
            "sessionKey": launch.requester_session_key,
            **{name: launch.requester.get(name) for name in REQUESTER_FIELDS},
        },
        "systemPrompt": launch.system_prompt,
        "message": launch.message,
        "model": launch.model,
        "thinking": launch.thinking,
        "sharedContext": dict(launch.shared_context),
        "tools": {
            "allow": None if allow is None else list(allow),
            "deny": list(launch.tools_deny),
        },
        "attachmentsDir": launch.attachments_dir,
        "history": list(launch.history_files),
        "deliveryOrigin": dict(launch.delivery_origin) if launch.delivery_origin else None,
        "deliver": launch.deliver,
        "mcp": mcp_configuration(launch),
    }


def mcp_configuration(launch: Launch) -> dict[str, object] | None:
    """An `mcp.json`, as agents of many makers read it, that opens the tools of the session to the
    child; None for one that cannot call back. It holds the child's token, as its environment
    does."""
    url = mcp_url(launch)
    if url is None or launch.token is None:
        return None
    headers = {"Authorization": f"Bearer {launch.token}"}
    return {"mcpServers": {"spawnlog": {"type": "http", "url": url, "headers": headers}}}


def mcp_url(launch: Launch) -> str | None:
    """Where the tools for models are; None without a server."""
    return f"{launch.url}/mcp" if launch.url is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeEnd:
    """How the runtime ended. `outcome` comes from signals (exit status), never from the text.

    `reason` is one of the words of `RunEnded.reason`. `error` is for people: the tail of stderr.
    `usages` are the tokens as they were told, one after the other. `notes` are those with which the
    entries ended.
    """

    outcome: Literal["success", "error", "timeout", "stopped", "unknown"]
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    result: str | None = None
    error: str | None = None
    usages: tuple[UsageEntry, ...] = ()
    notes: tuple[OutputNote, ...] = ()


class CannotLaunch(Exception):
    """The runtime cannot be opened.

    `reason` is a word for `RunEnded.reason`, the text is for people.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class RuntimeSession(Protocol):
    """One child about to run or running. Nothing executes before `go`."""

    def go(self) -> None:
        """Execute now: `RunStarted` is on record."""
        ...

    def ready_entries(self) -> Sequence[TranscriptEntry] | None:
        """Return all that the child says if it has ended without a wait, or None. What is returned
        here is not among `entries`."""
        ...

    def entries(self) -> AsyncIterator[TranscriptEntry]:
        """What the child says, as it comes; ends when the child has ended. Slow readers slow the
        child down (bounded buffers)."""
        ...

    async def end(self) -> RuntimeEnd:
        """How it ended; after `entries` is exhausted. No process of it is left by then."""
        ...

    async def kill(self) -> None:
        """End it with everything it started; returns when nothing is left. Safe to repeat, also
        before `go` and after the end."""
        ...


class AgentRuntimes(Protocol):
    """Opens runtime sessions of every type that is served."""

    def is_in_process(self, runtime: "Runtime") -> bool:
        """Whether what it executes lives in this very process, so that nothing has to stand ready
        before its start is recorded."""
        ...

    async def open(self, launch: Launch) -> RuntimeSession:
        """Make everything ready. Raises `CannotLaunch`."""
        ...
