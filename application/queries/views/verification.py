"""Views of the log's head and verifications."""

from datetime import datetime
from uuid import UUID

from application.ports.verifications import (
    RecordedVerification,
    VerificationOrigin,
    VerificationState,
)
from application.queries.views.view import View


class LogDifferenceView(View):
    """The first difference from the record, and the position at which it appears."""

    position: int
    kind: str
    text: str


class VerificationView(View):
    """One verification of the log. `state` is `running`, `right`, `different`, `stopped` (on
    request), `failed` (it could not continue) or `broken-off` (its process is gone). It began after
    position `began`; everything up to `checked` is verified, and it ends at `last`, null until that
    is known. `headHash` is the chain hash there once it has ended. `notedAt` is its last sign of
    life, `seconds` the elapsed time. `origin` is `server` or `command`; `process` identifies it.
    The counts are of compared rows of runs and sessions, texts and transcripts; `erased` counts
    those whose keys were erased."""

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
    """The end of the log, now or as of `at`, and the hash that chains all events up to it; null if
    there is no event. `verifications` are always the current ones, newest first, because they are
    not part of the log."""

    log_id: UUID
    position: int
    recorded_at: datetime | None
    chain_hash: str | None
    verifications: list[VerificationView]


class VerificationStartView(View):
    """The running verification. `began` is true if this request started it, false if it was running
    already. A short one may be over already."""

    began: bool
    verification: VerificationView


class VerificationStopView(View):
    """`wasUnderWay` is true if a verification was running; it stops within a few seconds.
    `verification` is the newest one, if any."""

    was_under_way: bool
    verification: VerificationView | None


def verification_view(found: RecordedVerification) -> VerificationView:
    """Return the view of one verification."""
    head_hash = found.head_hash.hex() if found.head_hash is not None else None
    return VerificationView.from_source(found, head_hash=head_hash)
