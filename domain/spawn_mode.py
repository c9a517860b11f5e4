"""What mode and cleanup a spawn gets from what was asked."""

from typing import Literal

from domain.run.facts import Cleanup

SpawnMode = Literal["run", "session"]


def effective_mode(mode: SpawnMode | None, *, thread: bool) -> SpawnMode:
    """The mode that was asked for; else `session` when a thread was, else `run`."""
    return mode or ("session" if thread else "run")


def effective_cleanup(cleanup: Cleanup | None, mode: SpawnMode) -> Cleanup:
    """`keep` for a session that lives on; else what was asked for, else `keep`."""
    return "keep" if mode == "session" else cleanup or "keep"
