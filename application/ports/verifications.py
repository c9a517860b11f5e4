"""Verifications of the log: recent results, and the running verification."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

VerificationState = Literal["running", "right", "different", "stopped", "failed", "broken-off"]
"""`right` and `different` are results. The others mean that the verification was not completed: a
user stopped it, it failed, or its process died."""
VerificationOrigin = Literal["server", "command"]
VERIFICATIONS_MAX = 20
"""Number of verifications kept, the newest."""


DifferenceKind = Literal[
    "changed",
    "hash",
    "missing",
    "inserted",
    "swapped",
    "truncated",
    "rewritten",
    "head",
    "order",
    "append",
    "version",
    "commit",
    "unreadable",
    "content",
    "transcript",
    "projection",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the log and its expected content, and the first position where it
    shows."""

    position: int
    kind: DifferenceKind
    text: str

    def __str__(self) -> str:
        return f"position {self.position}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVerification:
    """A verification of the log.

    Attributes:
        noted_at: When it last reported progress.
        seconds: How long it took, or has taken so far.
        began: Position after which it began.
        checked: Position up to which everything is right.
        last: Last position to check; None before it is known.
        head_hash: Chain hash at `last`, once it has ended.
    """

    number: int
    state: VerificationState
    started_by: str
    origin: VerificationOrigin
    process: str
    started_at: datetime
    noted_at: datetime
    ended_at: datetime | None
    seconds: float
    stop_requested_by: str | None
    began: int
    checked: int
    last: int | None
    head_hash: bytes | None
    run_rows: int
    session_rows: int
    contents: int
    transcripts: int
    erased: int
    difference: Difference | None
    failure: str | None


class LogVerifications(Protocol):
    """Verifications of one log, started by any server or command. Only one runs at a time."""

    async def latest(self) -> tuple[RecordedVerification, ...]:
        """Return verifications, newest first, at most `VERIFICATIONS_MAX`."""
        ...

    async def start(self, started_by: str) -> bool:
        """Start a verification in the background. Return False if one is in progress.

        It continues when the caller is gone, and ends with this process.

        Raises:
            LogUnavailableError: If it cannot be started.
        """
        ...

    async def request_stop(self, requested_by: str) -> bool:
        """Ask the verification in progress to stop, in whichever process. Return False if there is
        none."""
        ...

    async def chain_hash_at(self, position: int) -> bytes | None:
        """Return the stored chain hash of an event, even if the event is unreadable; None if there
        is no event."""
        ...
