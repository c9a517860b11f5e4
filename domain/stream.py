"""The names of streams: `run:<uuid>`, `session:<canonical key>` and `log:config`."""

from functools import lru_cache
from uuid import UUID

CONFIG_STREAM = "log:config"
RUN_PREFIX = "run:"
SESSION_PREFIX = "session:"
NAMES_KEPT = 4_096
"""Names of runs that are not made or read anew: each is asked for a dozen times in an append."""


@lru_cache(maxsize=NAMES_KEPT)
def run_stream(run_id: UUID) -> str:
    """The stream of one run."""
    return f"{RUN_PREFIX}{run_id}"


def session_stream(session_key: str) -> str:
    """The stream of one session, by its canonical key."""
    return f"{SESSION_PREFIX}{session_key}"


@lru_cache(maxsize=NAMES_KEPT)
def run_id_of(stream: str) -> UUID | None:
    """The run a stream belongs to; None for any other stream."""
    return UUID(stream.removeprefix(RUN_PREFIX)) if stream.startswith(RUN_PREFIX) else None


def session_key_of(stream: str) -> str | None:
    """The session a stream belongs to; None for any other stream."""
    return stream.removeprefix(SESSION_PREFIX) if stream.startswith(SESSION_PREFIX) else None
