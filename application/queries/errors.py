"""Errors of queries: a stable code and a message that every interface passes on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from domain.configuration.problems import render_error
from domain.values.json_text import escape_pointer

FAULTS_SHOWN_MAX = 20

QueryErrorCode = Literal[
    "unauthorized",
    "not_permitted",
    "not_found",
    "invalid_request",
    "foreign_cursor",
    "not_started",
    "erased",
    "not_served_yet",
    "too_large",
    "unavailable",
    "idempotency_key_reused",
    "idempotency_in_flight",
    "what_if_busy",
]


class QueryError(Exception):
    """A refused query.

    `position` is where the refusal is true, None for now. `errors` name single values by their JSON
    pointers; `details` are extra members beside the message.
    """

    def __init__(
        self,
        code: QueryErrorCode,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        position: int | None = None,
        **details: Any,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.position = position
        self.details = details


def invalid_value(pointer: str, detail: str) -> QueryError:
    """Return the error for one value of a request."""
    return QueryError(
        "invalid_request",
        f"{pointer}: {detail}",
        errors=({"pointer": pointer, "detail": detail},),
    )


def validation_problem(failure: ValidationError, body: object) -> QueryError:
    """Return the error for the validation failures of a body, each with its pointer."""
    return invalid_values(faults_of(failure, body))


def invalid_values(errors: Sequence[Mapping[str, str]]) -> QueryError:
    """Return the error for several invalid values of a request."""
    first = errors[0]
    return QueryError(
        "invalid_request",
        f"{first['pointer'] or 'the body'}: {first['detail']}",
        errors=errors[:FAULTS_SHOWN_MAX],
    )


def faults_of(failure: ValidationError, values: object, place: str = "") -> list[dict[str, str]]:
    """Return the pointer and message of each validation failure.

    Args:
        failure: The failure that pydantic raised.
        values: The values that were validated.
        place: JSON pointer of the values within the request.
    """
    return [
        {
            "pointer": place
            + "".join(f"/{escape_pointer(str(part))}" for part in _place(error, values)),
            "detail": render_error(error)[0],
        }
        for error in failure.errors(include_url=False, include_input=False)[:FAULTS_SHOWN_MAX]
    ]


def _place(error: ErrorDetails, body: Any) -> Iterator[int | str]:
    """Yield the keys and indexes down to the value, without pydantic's names of union members."""
    for part in error["loc"]:
        is_index = isinstance(body, list) and isinstance(part, int)
        is_key = isinstance(body, dict) and part in body
        if is_index or is_key:
            body = body[part]
        elif error["type"] != "missing":
            return
        yield part
