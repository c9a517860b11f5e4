"""What a requester is told beside the acceptance of its spawn."""

from domain.spawn_mode import SpawnMode
from domain.values.session_key import is_cron_key

FORK_TOKENS_MAX = 100_000
SESSION_NOTE = (
    "thread-bound session stays active after this task; continue in-thread for follow-ups."
)
RUN_NOTE = (
    "Auto-announce is push-based. After spawning children, do NOT call sessions_list, "
    "sessions_history, exec sleep, or any polling tool. Track expected child session keys. If any "
    "required child completion has not arrived yet, call sessions_yield to end the turn and wait "
    "for completion events as user messages. Only send your final answer after ALL expected "
    "completions arrive. If a child completion event arrives AFTER your final answer, reply ONLY "
    "with NO_REPLY."
)


def accepted_note(
    mode: SpawnMode, requester_session_key: str, fork_note: str | None = None
) -> str | None:
    """The note for an accepted spawn; a scheduled job gets none, save what is said of its fork."""
    note: str | None = RUN_NOTE
    if mode == "session":
        note = SESSION_NOTE
    elif is_cron_key(requester_session_key):
        note = None
    return " ".join(text for text in (note, fork_note) if text) or None


def fork_downgraded_note(parent_tokens: int) -> str:
    """Said when a parent's context is too large to fork and the child starts without it."""
    return (
        f"Parent context is too large to fork ({parent_tokens}/{FORK_TOKENS_MAX} tokens); "
        "starting with isolated context instead."
    )
