"""What to verify, and what came of it: between the command, which shows it, and the log."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OnVerifyProgress = Callable[[int, int, int], None]
"""Told the position behind which it began, the one up to which all is right, and the last one."""


def ignore_verify_progress(_began: int, _position: int, _last: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The flags. `head` is a position and a chain hash that were noted earlier, `state_file` where
    progress is noted when not in the data directory; `resume` goes on from there."""

    head: tuple[int, bytes] | None = None
    resume: bool = False
    state_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was found. `events` were looked at, behind position `began`; of the texts and
    transcripts beside them `contents` and `transcripts` were compared and `erased` are gone with
    their keys. `position` and `kind` are of the first difference and `difference` says what it is.
    """

    head: str
    began: int
    events: int
    run_rows: int
    session_rows: int
    contents: int
    transcripts: int
    erased: int
    seconds: float
    position: int | None = None
    kind: str | None = None
    difference: str | None = None
