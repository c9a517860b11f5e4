"""Parts of request bodies that are objects themselves, with the names that they have in JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class RequesterObject(TypedDict):
    """Who asks, and where it can be answered."""

    sessionKey: str
    channel: NotRequired[str]
    accountId: NotRequired[str]
    to: NotRequired[str]
    threadId: NotRequired[str | int]
    groupId: NotRequired[str]
    groupChannel: NotRequired[str]
    groupSpace: NotRequired[str]
    memberRoleIds: NotRequired[list[str]]
    agentIdOverride: NotRequired[str]
    workspaceDir: NotRequired[str]
    sandboxed: NotRequired[bool]
    activeModel: NotRequired[str]
    activeThinking: NotRequired[str]


class AttachmentObject(TypedDict):
    """A file that is put into the child's workspace."""

    name: str
    content: str
    encoding: NotRequired[Literal["utf8", "base64"]]
    mimeType: NotRequired[str]


class AttachAsObject(TypedDict):
    """Where attachments are wanted."""

    mountPath: NotRequired[str]


class DependencyObject(TypedDict):
    """A run that is waited for, and how it has to end."""

    run: str
    require: NotRequired[Literal["success", "ended"]]


class TranscriptCutObject(TypedDict):
    """How much of an earlier run's transcript a respawn begins with."""

    upTo: int


class UsageObject(TypedDict):
    """Tokens, of one model."""

    inputTokens: int
    outputTokens: int
    cacheReadTokens: NotRequired[int]
    cacheWriteTokens: NotRequired[int]
    model: NotRequired[str]


class EntryObject(TypedDict):
    """One entry of a conversation that is told."""

    kind: Literal["message", "tool", "usage", "progress", "result", "text"]
    role: NotRequired[Literal["assistant", "user", "system", "tool"]]
    text: NotRequired[str]
    name: NotRequired[str]
    input: NotRequired[Any]
    output: NotRequired[Any]
    inputTokens: NotRequired[int]
    outputTokens: NotRequired[int]
    model: NotRequired[str]


class DecisionFilterObject(TypedDict):
    """Which decisions a what-if is about."""

    runId: NotRequired[str]
    tree: NotRequired[str]
    requester: NotRequired[str]
    agentId: NotRequired[list[str]]


class SpawnChoices(TypedDict, total=False):
    """What may be said of a spawn beside its task and its requester, as `spawn` takes it."""

    label: str
    agent_id: str
    model: str
    thinking: str
    run_timeout_seconds: float
    thread: bool
    mode: Literal["run", "session"]
    cleanup: Literal["delete", "keep"]
    sandbox: Literal["inherit", "require"]
    context: Literal["isolated", "fork"]
    light_context: bool
    expects_completion_message: bool
    attachments: Sequence[AttachmentObject]
    attach_as: AttachAsObject
    context_preamble: str
    shared_context: Mapping[str, Any]
    shared_context_scope: Literal["family", "child"]
    depends_on: Sequence[str | DependencyObject]
    chain_after: str | DependencyObject
    idempotency_key: str
