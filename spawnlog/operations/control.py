"""Control: stopping runs and sessions, and saying something to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from uuid import UUID

from spawnlog.core.request import (
    Request,
    command_request,
    path_of,
)

if TYPE_CHECKING:
    from infrastructure.inbound.http.schemas.answers import (
        ContinuedAnswer,
        FinishedAnswer,
        PreambleAnswer,
        QueuedAnswer,
        SessionStoppedAnswer,
        SteeredAnswer,
        StoppedAnswer,
        YieldedAnswer,
    )


def stop_run(
    run_id: str | UUID, *, reason: str | None = None, idempotency_key: str | None = None
) -> Request[StoppedAnswer]:
    """Stop a run and its descendants."""
    return command_request(
        "stopRun",
        "POST",
        path_of("runs", run_id, "stop"),
        {"reason": reason},
        "StoppedAnswer",
        idempotency_key=idempotency_key,
    )


def stop_session(
    key: str, *, reason: str | None = None, idempotency_key: str | None = None
) -> Request[SessionStoppedAnswer]:
    """Stop a session's run and all below it."""
    return command_request(
        "stopSession",
        "POST",
        path_of("sessions", key, "stop"),
        {"reason": reason},
        "SessionStoppedAnswer",
        idempotency_key=idempotency_key,
    )


def send_message(
    run_id: str | UUID,
    message: str,
    *,
    mode: Literal["send", "steer"] | None = None,
    idempotency_key: str | None = None,
) -> Request[ContinuedAnswer | QueuedAnswer | SteeredAnswer | FinishedAnswer]:
    """Go on with a session."""
    return command_request(
        "sendMessage",
        "POST",
        path_of("runs", run_id, "messages"),
        {"message": message, "mode": mode},
        "ContinuedAnswer",
        "QueuedAnswer",
        "SteeredAnswer",
        "FinishedAnswer",
        idempotency_key=idempotency_key,
    )


def write_preamble(
    key: str, preamble: str, *, idempotency_key: str | None = None
) -> Request[PreambleAnswer]:
    """Change the preamble of a session."""
    return command_request(
        "writePreamble",
        "PUT",
        path_of("sessions", key, "preamble"),
        {"preamble": preamble},
        "PreambleAnswer",
        idempotency_key=idempotency_key,
    )


def clear_preamble(key: str) -> Request[PreambleAnswer]:
    """Take the preamble of a session away. It is sent once only."""
    return Request(
        operation="clearPreamble",
        method="DELETE",
        path=path_of("sessions", key, "preamble"),
        answers=("PreambleAnswer",),
    )


def yield_session(
    key: str, *, message: str | None = None, idempotency_key: str | None = None
) -> Request[YieldedAnswer]:
    """End a turn and wait for sub-agents."""
    return command_request(
        "yieldSession",
        "POST",
        path_of("sessions", key, "yield"),
        {"message": message},
        "YieldedAnswer",
        idempotency_key=idempotency_key,
    )
