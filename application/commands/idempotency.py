"""Idempotency keys: a command that is repeated under its key takes effect once."""

import hashlib

from application.log.event_log import Reservation, Reserved, StoredAnswer
from application.queries.access import Caller
from application.queries.errors import QueryError

IDEMPOTENCY_KEY_CHARS_MAX = 255


def reserve(caller: Caller, method: str, path: str, *, key: str, content: bytes) -> Reservation:
    """Return the reservation of a request's idempotency key.

    Raises:
        QueryError: If the key is empty, too long or not printable.
    """
    if not key or len(key) > IDEMPOTENCY_KEY_CHARS_MAX or not key.isprintable():
        raise QueryError(
            "invalid_request",
            f"Idempotency-Key must have 1 to {IDEMPOTENCY_KEY_CHARS_MAX} printable characters",
        )
    return Reservation(
        token=caller.actor.token or caller.actor.kind,
        method=method,
        path=path,
        key=key,
        fingerprint=hashlib.sha256(content).digest(),
    )


def stored_answer(found: Reserved, reservation: Reservation) -> StoredAnswer:
    """Return the answer to the first request under a key.

    Raises:
        QueryError: If that was a different request, or is still in progress.
    """
    if found.fingerprint != reservation.fingerprint:
        raise QueryError(
            "idempotency_key_reused",
            "this Idempotency-Key was used for another request; use a new one",
        )
    if found.answer is None:
        raise QueryError(
            "idempotency_in_flight",
            "a request with this Idempotency-Key is in progress; retry in a moment",
            runId=str(found.run_id) if found.run_id else None,
        )
    return found.answer
