# Written by `make client` from the description of the HTTP API.
"""Typed dictionaries for the objects in request bodies, with JSON names."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class AttachAsBody(TypedDict):
    """Hint for the child where to look for attachments."""

    mountPath: NotRequired[str]


class AttachmentBody(TypedDict):
    """Attached file: name, and content as text or base64."""

    name: str
    """File name, without a path."""
    content: str
    """Content, in the encoding `encoding`."""
    encoding: NotRequired[Literal["utf8", "base64"]]
    """`utf8`: `content` is the text. `base64`: `content` is encoded bytes."""
    mimeType: NotRequired[str]
    """MIME type; stored with the run, and not used."""


class DependencyBody(TypedDict):
    """A run to wait for, and how it has to end."""

    run: str
    require: NotRequired[Literal["success", "ended"]]


class EntryBody(TypedDict):
    """A transcript entry. A `message` has `role` and `text`; a `tool` has `name` and optionally
    `input` and `output` (any JSON) and `durationMs`, the time from call to output; a `usage`
    has `inputTokens` and `outputTokens` and optionally `model`; all others have `text`.
    """

    kind: Literal["message", "tool", "usage", "progress", "result", "text"]
    role: NotRequired[Literal["assistant", "user", "system", "tool"]]
    text: NotRequired[str]
    name: NotRequired[str]
    input: NotRequired[Any]
    output: NotRequired[Any]
    durationMs: NotRequired[int]
    inputTokens: NotRequired[int]
    outputTokens: NotRequired[int]
    model: NotRequired[str]


class RequesterBody(TypedDict):
    """Requesting session, and the addresses for its answers."""

    sessionKey: str
    """The session key in any spelling, the session id, or `current` for the session that the
    token acts for.
    """
    channel: NotRequired[str]
    """Channel of the requester, such as `slack`."""
    accountId: NotRequired[str]
    """Account on the channel."""
    to: NotRequired[str]
    """Address on the channel."""
    threadId: NotRequired[str | int]
    """Thread on the channel."""
    groupId: NotRequired[str]
    """Group on the channel."""
    groupChannel: NotRequired[str]
    """Channel of the group."""
    groupSpace: NotRequired[str]
    """Space of the group."""
    memberRoleIds: NotRequired[list[str]]
    """Roles of the requester in the group."""
    agentIdOverride: NotRequired[str]
    """Agent of the requester, if it differs from the agent in its key."""
    workspaceDir: NotRequired[str]
    """The requester's folder, as an absolute path. A child of the same agent works there too. It
    must be inside the recorded folder of the session; if none is recorded, inside its agent's
    folder or below `spawnlog.workspaceRoots`.
    """
    sandboxed: NotRequired[bool]
    """Treat the requester as sandboxed even if it is not recorded so."""
    activeModel: NotRequired[str]
    """Current model of the requester, for a child of the same agent."""
    activeThinking: NotRequired[str]
    """Current thinking level of the requester, for a child of the same agent."""


class TranscriptChoice(TypedDict):
    """The part of the earlier run's transcript that the child begins with."""

    upTo: int
    """The `sequence` of the last entry to copy."""


class UsageBody(TypedDict):
    """Token usage of one model."""

    inputTokens: int
    outputTokens: int
    cacheReadTokens: NotRequired[int]
    cacheWriteTokens: NotRequired[int]
    model: NotRequired[str]


class WhatIfFilter(TypedDict):
    """The decisions to report; all filters must match. With `cascade`, all other decisions are
    replayed too, but not reported.
    """

    runId: NotRequired[str]
    """Only this run."""
    tree: NotRequired[str]
    """Only the tree below this root session, by its key or session id."""
    requester: NotRequired[str]
    """Only runs requested by this session, by its key or session id."""
    agentId: NotRequired[list[str]]
    """Only runs of these agents. Empty: of all."""


class SpawnChoices(TypedDict, total=False):
    """Options of `spawn` other than its task and its requester, by the same names."""

    label: str
    """Label of the run, one line, by which others can name it."""
    agent_id: str
    """The agent that runs the child, or an alias of it. Default: the requester's agent."""
    model: str
    """The model, as `provider/name`. Default: as configured."""
    thinking: str
    """The thinking level: `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or
    `adaptive`. Default: as configured.
    """
    run_timeout_seconds: float
    """Timeout in seconds, rounded down; 0 or less: no limit. Default: as configured."""
    sandbox: Literal["inherit", "require"]
    """`require`: refuse the spawn if the child would not be in a sandbox."""
    context: Literal["isolated", "fork"]
    """`fork`: the child begins with the requester's conversation up to now; only for the
    requester's own agent. Default: in a channel thread,
    `session.threadBindings.defaultSpawnContext`; otherwise `isolated`.
    """
    light_context: bool
    """Leave the workspace's bootstrap files out of the prompt."""
    expects_completion_message: bool
    """If false, the end of the run is not announced."""
    thread: bool
    """Bind the child to a thread of the requester's channel. `mode` then defaults to `session`:
    the child stays open and takes messages until it is stopped.
    """
    mode: Literal["run", "session"]
    """`run`: one run. `session`: a session that stays; requires `thread`."""
    cleanup: Literal["delete", "keep"]
    """`delete`: archive the session right after the announcement. `keep` (default): archive it
    later.
    """
    attachments: Sequence[AttachmentBody]
    """Files to put into the child's workspace, within the limits of
    `tools.sessions_spawn.attachments`. Refused unless enabled there.
    """
    attach_as: AttachAsBody
    """Path where the child's prompt says to find the files."""
    context_preamble: str
    """Text to put in front of the child's system prompt."""
    shared_context: Mapping[str, Any]
    """Keys and JSON values, at most 64 KiB together with those that the requester's session
    shares already. They are added to the prompts of the child, of later children of this
    session, and of their descendants.
    """
    shared_context_scope: Literal["family", "child"]
    """`child`: share the keys only with this child and its descendants."""
    depends_on: Sequence[str | DependencyBody]
    """Earlier runs of the same tree to wait for, by label or id. The child is prepared at once,
    and queued when all of them have ended with `success` and their descendants are done. With
    `{"run": …, "require": "ended"}`, any outcome will do.
    """
    chain_after: str | DependencyBody
    """One more run to wait for, as in `depends_on`."""
    idempotency_key: str
    """A repeat with the same key and body returns the first answer, with `is_replayed`. A key is
    valid for one token and path, for seven days.
    """
