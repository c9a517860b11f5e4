"""Whether a child begins with the conversation of who asked for it, or with that of the run that it
was respawned from."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from domain.run.facts import ContextMode, ForkFacts, Requester, SpawnOptions
from domain.values import rules
from domain.values.refusals import Refusal
from domain.values.session_key import is_cron_key

# What a requester is told beside the acceptance of its spawn.


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
"""For a session that has the tools and cannot yield."""

UNANNOUNCED_NOTE = (
    "No completion is announced for this child (expectsCompletionMessage: false), so do not wait "
    "for one. Its result stands in its run."
)


def accepted_note(
    options: SpawnOptions, requester: Requester, fork_note: str | None = None
) -> str | None:
    """The note for an accepted spawn. It orders nothing that its reader cannot do: only a session
    whose run is executed here, and whose tools have it, can yield. A scheduled job gets none, save
    what is said of its fork."""
    note: str | None = RUN_NOTE if requester.may_yield else INBOX_NOTE
    if options.mode == "session":
        note = SESSION_NOTE
    elif is_cron_key(requester.session_key):
        note = None
    elif not options.expects_completion_message:
        note = UNANNOUNCED_NOTE
    return " ".join(text for text in (note, fork_note) if text) or None


def fork_downgraded_note(parent_tokens: int) -> str:
    """Said when a parent's context is too large to fork and the child starts without it."""
    return (
        f"Parent context is too large to fork ({parent_tokens}/{FORK_TOKENS_MAX} tokens); "
        "starting with isolated context instead."
    )


SESSION_KIND: Literal["session"] = "session"
"""The kind of the entry that a forked transcript begins with."""


_OTHER_AGENT = (
    'context="fork" currently requires the same target agent as the requester; use '
    'context="isolated" for cross-agent spawns.'
)
_NO_TRANSCRIPT = 'context="fork" requested but the requester session transcript is not available.'
_NOT_FORKED = 'context="fork" requested but OpenClaw could not fork the requester transcript.'
_NOT_PREPARED = 'context="fork" requested but OpenClaw could not prepare forked context.'
OTHER_AGENT_WARNING = (
    "the child starts with isolated context: a thread's child begins with its requester's"
    ' conversation only when both are of one agent; ask with context "isolated" to expect that'
)
NO_TRANSCRIPT_WARNING = (
    "the child starts with isolated context: its requester has no transcript here; provide one"
    " with PUT /v1/sessions/{key}/transcript before the next spawn"
)


NOTHING_TO_FORK_WARNING = (
    "the child begins with nothing of its requester's conversation: nothing of it is on record yet"
)


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The context that a child is to have. `is_explicit` is whether the request says so; what
    nobody asked for is no reason to refuse a spawn."""

    mode: ContextMode
    is_explicit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentExtent:
    """How much a requester has in its transcript. `total_tokens` is what was said of it as a
    whole, `last_usage_tokens` those of its last usage entry; None when nobody said."""

    entries: int
    bytes: int
    total_tokens: int | None = None
    last_usage_tokens: int | None = None

    @property
    def tokens(self) -> int:
        """The total that was given; else the last usage, or a token for each four bytes when that
        is more."""
        if self.total_tokens is not None:
            return self.total_tokens
        return max(self.last_usage_tokens or 0, self.bytes // 4)

    @property
    def fits(self) -> bool:
        """Whether a child can begin with it."""
        return self.tokens <= FORK_TOKENS_MAX


def resolve_context_request(
    argument: ContextMode | None, *, thread: bool, channel: str | None, default: ContextMode
) -> ContextRequest:
    """What the request says; without that `default`, for a child in a thread of a channel."""
    if argument is not None:
        return ContextRequest(argument, is_explicit=True)
    in_thread = thread and bool((channel or "").strip())
    return ContextRequest(default if in_thread else "isolated", is_explicit=False)


def other_agent_refusal() -> Refusal:
    """The child is of another agent than its requester."""
    return _fork_refusal(_OTHER_AGENT)


def no_transcript_refusal() -> Refusal:
    """There is nothing to begin with."""
    return _fork_refusal(_NO_TRANSCRIPT)


def fork_failed_refusal() -> Refusal:
    """The transcript is there and could not be written for the child."""
    return _fork_refusal(_NOT_FORKED)


def lost_transcript_refusal(run_id: UUID) -> Refusal:
    """The transcript of the run that the spawn was made from has less than was to be taken over."""
    return _fork_refusal(f"the transcript of run {run_id} is not there any more; respawn without")


def unreadable_transcript_refusal() -> Refusal:
    """What is kept of the transcript cannot be read."""
    return _fork_refusal(_NOT_PREPARED)


def _fork_refusal(text: str) -> Refusal:
    return rules.CONTEXT_FORK.refusal(text)


def inherited_rows(fork: ForkFacts | None) -> int:
    """How many entries a child's transcript has before it says anything: those that were taken
    over, and one in front of them that says where they are from."""
    return fork.entries + 1 if fork is not None and fork.mode == "fork" else 0


def told_entry(fork: ForkFacts | None) -> int:
    """Return the number of the entry that holds the message of the run: the first of its own."""
    return inherited_rows(fork) + 1


def forked_entries(fork: ForkFacts | None) -> int:
    """How many entries of its requester's conversation a child begins with."""
    return fork.entries if fork is not None and fork.mode == "fork" else 0


def fork_note(fork: ForkFacts | None) -> str | None:
    """What the requester is told when there was too much to begin with."""
    if fork is None or fork.mode == "fork" or fork.tokens is None:
        return None
    return fork_downgraded_note(fork.tokens)


def fork_warnings(
    request: ContextRequest, fork: ForkFacts | None, *, same_agent: bool
) -> tuple[str, ...]:
    """What is said of a fork that nobody asked for and that could not be, and of one in which
    there was nothing to take over."""
    if fork is not None and fork.mode == "fork" and fork.entries == 0:
        return (NOTHING_TO_FORK_WARNING,)
    if request.mode == "isolated" or request.is_explicit:
        return ()
    if not same_agent:
        return (OTHER_AGENT_WARNING,)
    if fork is not None and fork.mode == "isolated" and fork.tokens is None:
        return (NO_TRANSCRIPT_WARNING,)
    return ()
