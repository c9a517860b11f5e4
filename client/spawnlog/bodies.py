# Written by `make client` from the description of the HTTP API.
"""Objects in the bodies of requests, with the names that they have in JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class AttachAsBody(TypedDict):
    """Where attachments are wanted; a hint that the child is told."""

    mountPath: NotRequired[str]


class AttachmentBody(TypedDict):
    """A file: its name, and its content as text or as base64."""

    name: str
    content: str
    encoding: NotRequired[Literal["utf8", "base64"]]
    mimeType: NotRequired[str]


class DependencyBody(TypedDict):
    """A run to wait for, and how it has to end."""

    run: str
    require: NotRequired[Literal["success", "ended"]]


class EntryBody(TypedDict):
    """One entry: a `message` has `role` and `text`, a `tool` `name` and maybe `input` and
    `output` (any JSON), a `usage` `inputTokens` and `outputTokens` and maybe `model`, all
    others `text`.
    """

    kind: Literal["message", "tool", "usage", "progress", "result", "text"]
    role: NotRequired[Literal["assistant", "user", "system", "tool"]]
    text: NotRequired[str]
    name: NotRequired[str]
    input: NotRequired[Any]
    output: NotRequired[Any]
    inputTokens: NotRequired[int]
    outputTokens: NotRequired[int]
    model: NotRequired[str]


class RequesterBody(TypedDict):
    """Who asks, and where it can be answered."""

    sessionKey: str
    """Its key in any spelling, its session id, or `current` for the one session that the token
    acts for.
    """
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
    """The folder it works in, as an absolute path: a child of the same agent works there too. It
    has to be in its folder on record; without one, in its agent's own or below
    `spawnlog.workspaceRoots`.
    """
    sandboxed: NotRequired[bool]
    """That it is in a sandbox, also when the record does not say so."""
    activeModel: NotRequired[str]
    activeThinking: NotRequired[str]


class TranscriptChoice(TypedDict):
    """How much of the earlier run's transcript the child begins with."""

    upTo: int
    """The `sequence` of the last entry taken over."""


class UsageBody(TypedDict):
    """Tokens, of one model."""

    inputTokens: int
    outputTokens: int
    cacheReadTokens: NotRequired[int]
    cacheWriteTokens: NotRequired[int]
    model: NotRequired[str]


class WhatIfFilter(TypedDict):
    """Which decisions: of one run, of the tree below a root session, of one requester, for any
    of these agents. With `cascade` the others are decided too, and not given out.
    """

    runId: NotRequired[str]
    tree: NotRequired[str]
    requester: NotRequired[str]
    agentId: NotRequired[list[str]]


class SpawnChoices(TypedDict, total=False):
    """Options of a spawn beside its task and its requester, as `spawn` takes them."""

    label: str
    """A name for the run, on one line."""
    agent_id: str
    """The agent that runs the child, or an alias of it."""
    model: str
    """The model, as `provider/name`."""
    thinking: str
    """The thinking level."""
    run_timeout_seconds: float
    """Rounded down to whole seconds; 0, or less, is without limit."""
    sandbox: Literal["inherit", "require"]
    """`require` refuses a child that would not be in a sandbox."""
    context: Literal["isolated", "fork"]
    """`fork`: the child begins with the requester's conversation up to now. Only of the
    requester's own agent. Without it a child in a thread of a channel follows
    `session.threadBindings.defaultSpawnContext`, any other starts `isolated`.
    """
    light_context: bool
    """Leave the files of the agent's workspace out of the prompt."""
    expects_completion_message: bool
    """False: nothing is announced when the run has ended."""
    thread: bool
    """Bind the child to a thread of the requester's channel. `mode` is `session` then, unless it
    is given: the child stays and takes messages until it is stopped.
    """
    mode: Literal["run", "session"]
    """One run, or a session that stays, which needs `thread`."""
    cleanup: Literal["delete", "keep"]
    """`delete`: the session is archived right after the announcement; `keep`, the default:
    later.
    """
    attachments: Sequence[AttachmentBody]
    """Files that are put into the child's workspace, as far as
    `tools.sessions_spawn.attachments` permits; off unless it is enabled.
    """
    attach_as: AttachAsBody
    """Where the child is told to look for the files."""
    context_preamble: str
    """A text that stands in front of the child's system prompt."""
    shared_context: Mapping[str, Any]
    """Keys with any values, at most 64 KiB of JSON with what the requester's session shares
    already. The child reads them in its prompt, as do those that are spawned by this session
    later, and those below it.
    """
    shared_context_scope: Literal["family", "child"]
    """`child`: the keys are for this child, and for those below it, alone."""
    depends_on: Sequence[str | DependencyBody]
    """Earlier runs of the same tree, by their labels or ids. The child is prepared, and queued
    when all of them have ended with `success` and all below them is done; with `{"run": …,
    "require": "ended"}` any end will do.
    """
    chain_after: str | DependencyBody
    """One run more to wait for, as in `depends_on`."""
    idempotency_key: str
    """The same key with the same body gets the first answer again, with `is_replayed`. It counts
    for one token and path, for seven days.
    """
