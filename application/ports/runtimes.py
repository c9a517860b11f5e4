"""Runtimes: the programs and models that execute runs."""

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
    """An entry of a child's transcript, as the runtime produced it.

    Attributes:
        kind: Kind of the entry. `session` has no author; it marks the start of a forked
            conversation.
        body: JSON members of the kind, such as `role`, `text`, `name`, `input`, `output`,
            `inputTokens`, `outputTokens` and `model`.
        arrived_at: When this process received it, in seconds of the event loop's clock; None means
            now.
    """

    kind: EntryKind
    body: Mapping[str, object]
    arrived_at: float | None = field(default=None, compare=False)


def message_entry(message: str) -> TranscriptEntry:
    """Return the message to the child, as the first entry of its transcript."""
    return TranscriptEntry("message", {"role": "user", "text": message})


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything that a runtime is given.

    Attributes:
        attachments_dir: Absolute folder of the attachments; None without attachments.
        history_files: JSONL transcripts of the session's earlier runs, oldest first.
        delivery_origin: Addresses of the session's thread.
        deliver: Whether the runtime itself delivers the result to `delivery_origin`.
        requester: Addresses that the requester gave for itself.
        run_timeout_seconds: Time limit of the run; 0 means none.
        fallback_models: Models to try in this order if `model` is not available.
        environment: Environment of a process. For a model: its endpoint and key, under the names
            that the runtime uses.
        traceparent: Trace context for spans of its own; None if spans are not exported.
        token: Token with which the child calls back. It is never recorded.
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
"""Addresses that a requester may give. Missing ones are null."""


def launch_object(launch: Launch) -> dict[str, object]:
    """Return the launch as JSON: the input of a program, or the answer to an executor's claim."""
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
    """Return an `mcp.json` that gives the child the session's tools; None if it cannot call back.

    The form is the one that most coding agents read. It contains the child's token, as the child's
    environment does.
    """
    url = mcp_url(launch)
    if url is None or launch.token is None:
        return None
    headers = {"Authorization": f"Bearer {launch.token}"}
    return {"mcpServers": {"spawnlog": {"type": "http", "url": url, "headers": headers}}}


def mcp_url(launch: Launch) -> str | None:
    """Return the URL of the MCP endpoint; None without a server."""
    return f"{launch.url}/mcp" if launch.url is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeEnd:
    """The end of an execution.

    Attributes:
        outcome: Derived from signals such as the exit status, never from text.
        reason: One of the words of `RunEnded.reason`.
        error: Explanation for people: the tail of standard error.
        usages: Reported token usages, in order.
        notes: Notes that the last entries carry.
    """

    outcome: Literal["success", "error", "timeout", "stopped", "unknown"]
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    result: str | None = None
    error: str | None = None
    usages: tuple[UsageEntry, ...] = ()
    notes: tuple[OutputNote, ...] = ()


class LaunchError(Exception):
    """The runtime cannot be started.

    `reason` is a word for `RunEnded.reason`; the message is for people.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class RuntimeSession(Protocol):
    """One child that is about to run or running. Nothing executes before `go`."""

    def go(self) -> None:
        """Start the execution. Call it only after `RunStarted` is recorded."""
        ...

    def ready_entries(self) -> Sequence[TranscriptEntry] | None:
        """Return all entries if the child has already ended without waiting, else None.

        Entries returned here are not yielded by `entries`.
        """
        ...

    def entries(self) -> AsyncIterator[TranscriptEntry]:
        """Yield the child's entries as they arrive, until the child has ended.

        Buffers are bounded, so a slow reader slows the child down.
        """
        ...

    async def end(self) -> RuntimeEnd:
        """Return how the child ended. Call it after `entries` is exhausted; no process is left by
        then."""
        ...

    async def kill(self) -> None:
        """Kill the child and everything it started, and return when nothing is left.

        Idempotent; also allowed before `go` and after the end.
        """
        ...


class AgentRuntimes(Protocol):
    """Launcher for every supported runtime type."""

    def is_in_process(self, runtime: "Runtime") -> bool:
        """Return True if the runtime executes in this process, so nothing must be prepared before
        `RunStarted`."""
        ...

    async def open(self, launch: Launch) -> RuntimeSession:
        """Prepare an execution, without starting it.

        Raises:
            LaunchError: If the runtime cannot be started.
        """
        ...
