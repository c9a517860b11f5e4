"""Reading of request bodies: storable JSON of the expected shape, or a problem."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from application.queries.errors import validation_problem
from infrastructure.contract.json_values import (
    VALUES_MAX,
    DuplicateKeyError,
    MalformedJsonError,
    parse_json,
)
from infrastructure.inbound.http.responses.problems import HttpProblem

BodyModel = TypeVar("BodyModel", bound=BaseModel)
JSON = "application/json"


async def read_body(
    request: Request,
    model: type[BodyModel],
    *,
    values_max: int = VALUES_MAX,
    media_types: Sequence[str] = (JSON,),
) -> tuple[BodyModel, bytes]:
    """Return the validated body and its bytes. An empty body counts as an empty object.

    Args:
        request: The request.
        model: The shape of the body.
        values_max: Maximum number of JSON values. If it is above the default, the body is validated
            in a thread, so that other requests are served meanwhile.
        media_types: The accepted media types.

    Raises:
        HttpProblem: The body is not JSON, has another media type, or does not fit the model.
    """
    raw = await request.body()
    if raw:
        _require_json(request, media_types)
    if values_max > VALUES_MAX:
        return await asyncio.to_thread(_validate_shape, raw, model, values_max), raw
    return _validate_shape(raw, model, values_max), raw


def _validate_shape(raw: bytes, model: type[BodyModel], values_max: int) -> BodyModel:
    try:
        values = parse_json(raw, values_max, subject="the body") if raw else {}
    except DuplicateKeyError as error:
        raise HttpProblem("invalid_request", str(error), errors=error.errors) from None
    except MalformedJsonError as error:
        raise HttpProblem("malformed_json", str(error), errors=error.errors) from None
    if not isinstance(values, dict):
        raise HttpProblem("invalid_request", "the body must be a JSON object")
    try:
        return model.model_validate(values)
    except ValidationError as failure:
        raise validation_problem(failure, values) from None


def _require_json(request: Request, media_types: Sequence[str]) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise HttpProblem("not_json", f"send the body with Content-Type: {media_types[0]}")
