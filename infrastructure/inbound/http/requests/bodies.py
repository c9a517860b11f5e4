"""Reading bodies: JSON that can be kept, in the shape that is asked for, or a clear problem."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from application.queries.errors import validation_problem
from infrastructure.contract.json_values import (
    VALUES_MAX,
    MalformedJson,
    RepeatedKey,
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
    """The body in its shape, and its bytes. An empty body is an empty object. One that may have
    many values is read aside, so that others are served meanwhile."""
    raw = await request.body()
    if raw:
        _must_be_json(request, media_types)
    if values_max > VALUES_MAX:
        return await asyncio.to_thread(_validate_shape, raw, model, values_max), raw
    return _validate_shape(raw, model, values_max), raw


def _validate_shape(raw: bytes, model: type[BodyModel], values_max: int) -> BodyModel:
    try:
        values = parse_json(raw, values_max, what="the body") if raw else {}
    except RepeatedKey as error:
        raise HttpProblem("invalid_request", str(error), errors=error.errors) from None
    except MalformedJson as error:
        raise HttpProblem("malformed_json", str(error), errors=error.errors) from None
    if not isinstance(values, dict):
        raise HttpProblem("invalid_request", "the body must be a JSON object")
    try:
        return model.model_validate(values)
    except ValidationError as failure:
        raise validation_problem(failure, values) from None


def _must_be_json(request: Request, media_types: Sequence[str]) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise HttpProblem("not_json", f"send the body with Content-Type: {media_types[0]}")
