"""Verifications of the log: the last ones and what they found, and one that is under way."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

VerificationState = Literal["running", "right", "different", "stopped", "failed", "broken-off"]
"""`right` and `different` say what was found, the others that it was not looked at to the end:
somebody stopped it, it could not go on, or its process is gone."""
VerificationOrigin = Literal["server", "command"]
VERIFICATIONS_MAX = 20
"""So many verifications are kept, the newest."""


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
    """What is wrong, in words, and the first position at which it shows."""

    position: int
    kind: DifferenceKind
    text: str

    def __str__(self) -> str:
        return f"position {self.position}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVerification:
    """One verification. It began behind position `began`, all is right up to `checked`, and `last`
    is where it ends, None before it knows; `head_hash` is the chain hash there once it has ended.
    `noted_at` is when it was last heard of, `seconds` how long it took or takes so far."""

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
    """Verifications of one log, of all servers and commands. There is one at a time."""

    async def latest(self) -> tuple[RecordedVerification, ...]:
        """The newest first, `VERIFICATIONS_MAX` at most."""
        ...

    async def start(self, started_by: str) -> bool:
        """Begin one beside this process; False when one is under way. `LogUnavailable` when it
        cannot be begun. It goes on when the caller is gone, and ends with this process."""
        ...

    async def request_stop(self, requested_by: str) -> bool:
        """Ask the one under way to stop, wherever it is; False when there is none."""
        ...

    async def chain_hash_at(self, position: int) -> bytes | None:
        """The chain hash of an event as it stands, also where the event cannot be read; None when
        there is none at that position."""
        ...
