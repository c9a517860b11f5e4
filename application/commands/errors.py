"""Stable error codes of refused commands, for every kind of caller."""

from collections.abc import Mapping

from application.context.recorded_scripts import NothingRecorded, RecordErased
from application.execution.external import (
    ClaimedElsewhere,
    ClaimOver,
    NotExternal,
    NotOffered,
    ReportTooLarge,
    RunOver,
    TranscriptGap,
)
from application.log.event_log import LogUnavailableError
from application.log.texts import ContentsErased
from application.session.shared_context import SharedContextTooLarge
from application.session.transcript import TranscriptTooLarge
from application.spawn.respawn import CannotRespawn, OriginalErased, RevisionNotFound
from domain.run.continuation import CannotYield, QueueFull, SteeredTooSoon, SteerTooLong
from domain.run.effects import NothingParked
from domain.session.decide import ContextMoved, NotSpawnedHere, TranscriptStoredHere
from domain.spawn.continuation import NoSession, RunIsActive
from domain.values.refusals import CannotDeliver, Rejected, ToolDenied

ERROR_CODES: Mapping[type[Exception], str] = {
    LogUnavailableError: "unavailable",
    # Another process decided meanwhile; the record has its decision.
    Rejected: "session_closed",
    ContentsErased: "erased",
    CannotRespawn: "cannot_respawn",
    OriginalErased: "erased",
    RevisionNotFound: "not_found",
    NothingRecorded: "cannot_respawn",
    RecordErased: "erased",
    RunIsActive: "run_active",
    NoSession: "no_session",
    NotSpawnedHere: "no_session",
    QueueFull: "queue_full",
    SteeredTooSoon: "steered_too_soon",
    SteerTooLong: "invalid_request",
    CannotYield: "cannot_yield",
    ToolDenied: "not_permitted",
    CannotDeliver: "no_announcement",
    NothingParked: "no_announcement",
    TranscriptStoredHere: "transcript_is_kept_here",
    TranscriptTooLarge: "too_much_told",
    SharedContextTooLarge: "invalid_request",
    NotExternal: "not_external",
    NotOffered: "not_offered",
    ClaimedElsewhere: "claimed_elsewhere",
    ClaimOver: "claim_over",
    RunOver: "run_over",
    TranscriptGap: "transcript_gap",
    ReportTooLarge: "too_large",
    ContextMoved: "precondition_failed",
}
"""Codes of errors whose message is the answer. The nearest base class counts."""


def error_code(error: Exception) -> str:
    """Return the code of one of these errors."""
    return next(
        ERROR_CODES[error_type] for error_type in type(error).__mro__ if error_type in ERROR_CODES
    )
