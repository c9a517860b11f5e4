"""How the head of the log and the verifications of it read."""

from datetime import datetime
from uuid import UUID

from application.ports.verifications import (
    RecordedVerification,
    VerificationOrigin,
    VerificationState,
)
from application.queries.views.view import View


class LogDifferenceView(View):
    """The first thing that is not as it was recorded, and the position at which it shows."""

    position: int
    kind: str
    text: str


class VerificationView(View):
    """One verification. `state` is `running`, `right`, `different`, `stopped` by somebody, `failed`
    because it could not go on, or `broken-off` when its process is gone. It began behind position
    `began`, all is right up to `checked`, and it ends at `last`, null before it knows; `headHash`
    is the chain hash there once it has ended. `notedAt` is when it was last heard of, `seconds` how
    long it took or takes so far. `origin` is `server` or `command`, and `process` which one. The
    counts are of what was compared: rows of runs and sessions, texts and transcripts, and of those
    the `erased` ones that are gone with their keys."""

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
    head_hash: str | None
    run_rows: int
    session_rows: int
    contents: int
    transcripts: int
    erased: int
    difference: LogDifferenceView | None
    failure: str | None


class LogHeadView(View):
    """Where the log ends, or ended then, and the hash that chains all of it: null where there is no
    event. The verifications are those of now, the newest first: no moment of the log has them."""

    log_id: UUID
    position: int
    recorded_at: datetime | None
    chain_hash: str | None
    verifications: list[VerificationView]


class VerificationStartView(View):
    """The verification that is under way: whether this request `began` it, or another one did
    before. A short one may be over already."""

    began: bool
    verification: VerificationView


class VerificationStopView(View):
    """Whether one was under way, which stops within some seconds; and the newest one, if any."""

    was_under_way: bool
    verification: VerificationView | None


def verification_view(found: RecordedVerification) -> VerificationView:
    """One verification."""
    head_hash = found.head_hash.hex() if found.head_hash is not None else None
    return VerificationView.from_source(found, head_hash=head_hash)
