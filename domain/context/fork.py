"""Forks: decide if a child starts with its requester's conversation, or with an earlier run's."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from domain.run.facts import ContextMode, ForkFacts, Requester, SpawnOptions
from domain.values import rules
from domain.values.refusals import Refusal
from domain.values.session_key import is_cron_key

# Notes that a requester receives with the acceptance of its spawn.


FORK_TOKENS_MAX = 100_000
SESSION_NOTE = (
    "thread-bound session stays active after this task; continue in-thread for follow-ups."
)
_WAIT_BY_YIELDING = (
    "call sessions_yield to end the turn and wait for completion events as user messages"
)
_WAIT_FOR_INBOX = "end the turn and wait for completion events in the inbox of this session"
_RUN_NOTE = (
    "Auto-announce is push-based. After spawning children, do NOT call sessions_list, "
    "sessions_history, exec sleep, or any polling tool. Track expected child session keys. If any "
    "required child completion has not arrived yet, {wait}. Only send your final answer after ALL "
    "expected completions arrive. If a child completion event arrives AFTER your final answer, "
    "reply ONLY with NO_REPLY."
)
RUN_NOTE = _RUN_NOTE.format(wait=_WAIT_BY_YIELDING)
INBOX_NOTE = _RUN_NOTE.format(wait=_WAIT_FOR_INBOX)
TOOL_NOTE = _RUN_NOTE.format(wait="call subagents_wait, which waits for it")
"""Note for a session that has the tools but cannot yield."""

UNANNOUNCED_NOTE = (
    "No completion is announced for this child (expectsCompletionMessage: false), so do not"
    " wait for one. Read its result from its run."
)


def accepted_note(
    options: SpawnOptions, requester: Requester, fork_note: str | None = None
) -> str | None:
    """Return the note for an accepted spawn, or None if there is nothing to say.

    The note never asks for something that the requester cannot do: only a session whose run is
    executed here, with the yield tool allowed, can yield. A scheduled job receives the fork note
    only.
    """
    note: str | None = RUN_NOTE if requester.may_yield else INBOX_NOTE
    if options.mode == "session":
        note = SESSION_NOTE
    elif is_cron_key(requester.session_key):
        note = None
    elif not options.expects_completion_message:
        note = UNANNOUNCED_NOTE
    return " ".join(text for text in (note, fork_note) if text) or None


def fork_downgraded_note(parent_tokens: int) -> str:
    """Return the note for a child that starts without its parent's context because that is too
    large.
    """
    return (
        f"Parent context is too large to fork ({parent_tokens}/{FORK_TOKENS_MAX} tokens); "
        "starting with isolated context instead."
    )


SESSION_KIND: Literal["session"] = "session"
"""Kind of the first entry of a forked transcript."""


_OTHER_AGENT = (
    'context="fork" currently requires the same target agent as the requester; use '
    'context="isolated" for cross-agent spawns.'
)
_NO_TRANSCRIPT = 'context="fork" requested but the requester session transcript is not available.'
_NOT_FORKED = 'context="fork" requested but OpenClaw could not fork the requester transcript.'
_NOT_PREPARED = 'context="fork" requested but OpenClaw could not prepare forked context.'
OTHER_AGENT_WARNING = (
    "the child starts with isolated context: in a thread, a child gets its requester's"
    ' conversation only if both have the same agent; request context "isolated" to avoid this'
    " warning"
)
NO_TRANSCRIPT_WARNING = (
    "the child starts with isolated context: its requester has no transcript here; provide one"
    " with PUT /v1/sessions/{key}/transcript before the next spawn"
)


NOTHING_TO_FORK_WARNING = (
    "the child starts without its requester's conversation, because none is recorded yet"
)


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The requested context mode of a child.

    `is_explicit` is True if the request names the mode. A default that cannot be honored never
    refuses a spawn.
    """

    mode: ContextMode
    is_explicit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentExtent:
    """Size of a requester's transcript.

    Attributes:
        entries: Number of entries.
        bytes: Size in bytes.
        total_tokens: Reported total; None if not reported.
        last_usage_tokens: Tokens of the last usage entry; None if there is none.
    """

    entries: int
    bytes: int
    total_tokens: int | None = None
    last_usage_tokens: int | None = None

    @property
    def tokens(self) -> int:
        """Return the reported total, else the larger of the last usage and one token per four
        bytes.
        """
        if self.total_tokens is not None:
            return self.total_tokens
        return max(self.last_usage_tokens or 0, self.bytes // 4)

    @property
    def fits(self) -> bool:
        """Return True if a child can start with this transcript."""
        return self.tokens <= FORK_TOKENS_MAX


def resolve_context_request(
    argument: ContextMode | None, *, thread: bool, channel: str | None, default: ContextMode
) -> ContextRequest:
    """Return the mode that the request names, or else the default.

    The default only applies to a child bound to a thread of a channel; any other child is isolated.

    Args:
        argument: Mode named by the request.
        thread: True if the request asks for a thread.
        channel: Channel of the requester.
        default: Configured mode for children in threads.
    """
    if argument is not None:
        return ContextRequest(argument, is_explicit=True)
    in_thread = thread and bool((channel or "").strip())
    return ContextRequest(default if in_thread else "isolated", is_explicit=False)


def other_agent_refusal() -> Refusal:
    """Return the refusal for a child of an agent other than its requester's."""
    return _fork_refusal(_OTHER_AGENT)


def no_transcript_refusal() -> Refusal:
    """Return the refusal for a requester without a transcript."""
    return _fork_refusal(_NO_TRANSCRIPT)


def fork_failed_refusal() -> Refusal:
    """Return the refusal for a transcript that could not be copied for the child."""
    return _fork_refusal(_NOT_FORKED)


def lost_transcript_refusal(run_id: UUID) -> Refusal:
    """Return the refusal for a respawn whose original transcript has fewer entries than
    requested.
    """
    return _fork_refusal(f"the transcript of run {run_id} no longer exists; respawn without")


def unreadable_transcript_refusal() -> Refusal:
    """Return the refusal for a stored transcript that cannot be read."""
    return _fork_refusal(_NOT_PREPARED)


def _fork_refusal(text: str) -> Refusal:
    return rules.CONTEXT_FORK.refusal(text)


def inherited_rows(fork: ForkFacts | None) -> int:
    """Return the number of transcript entries before the child's first own entry.

    These are the copied entries, preceded by one that names their source. 0 without a fork.
    """
    return fork.entries + 1 if fork is not None and fork.mode == "fork" else 0


def told_entry(fork: ForkFacts | None) -> int:
    """Return the number of the entry with the run's message, the first entry of its own."""
    return inherited_rows(fork) + 1


def forked_entries(fork: ForkFacts | None) -> int:
    """Return the number of entries copied from the requester's conversation."""
    return fork.entries if fork is not None and fork.mode == "fork" else 0


def fork_note(fork: ForkFacts | None) -> str | None:
    """Return the requester's note if the context was too large to fork, else None."""
    if fork is None or fork.mode == "fork" or fork.tokens is None:
        return None
    return fork_downgraded_note(fork.tokens)


def fork_warnings(
    request: ContextRequest, fork: ForkFacts | None, *, same_agent: bool
) -> tuple[str, ...]:
    """Return warnings about a default fork that was not possible, or a fork with nothing to copy.

    Args:
        request: The requested context.
        fork: Recorded result of the fork; None if it was not attempted.
        same_agent: True if the child is of its requester's agent.
    """
    if fork is not None and fork.mode == "fork" and fork.entries == 0:
        return (NOTHING_TO_FORK_WARNING,)
    if request.mode == "isolated" or request.is_explicit:
        return ()
    if not same_agent:
        return (OTHER_AGENT_WARNING,)
    if fork is not None and fork.mode == "isolated" and fork.tokens is None:
        return (NO_TRANSCRIPT_WARNING,)
    return ()
