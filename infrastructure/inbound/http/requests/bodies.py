"""Reading bodies: JSON that can be kept, in the shape that is asked for, or a clear problem."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import orjson
from fastapi import Request
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from domain.configuration.problems import render_error
from infrastructure.inbound.http.responses.problems import HttpProblem

BodyModel = TypeVar("BodyModel", bound=BaseModel)
JSON = "application/json"
DEPTH_MAX = 100
VALUES_MAX = 10_000
ERRORS_SHOWN_MAX = 20

# One that does not end goes to the end of the text, so that no text is gone through twice.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class Body(BaseModel):
    """A request body: camelCase names only, no unknown keys, no types made to fit."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        hide_input_in_errors=True,
    )


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
    values = _parse_json(raw, values_max) if raw else {}
    if not isinstance(values, dict):
        raise HttpProblem("invalid_request", "the body must be a JSON object")
    try:
        return model.model_validate(values)
    except ValidationError as failure:
        raise validation_problem(failure) from None


def _must_be_json(request: Request, media_types: Sequence[str]) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise HttpProblem("not_json", f"send the body with Content-Type: {media_types[0]}")


def _parse_json(raw: bytes, values_max: int) -> Any:
    if _has_too_many_values(raw, values_max):
        raise HttpProblem("malformed_json", f"the body has more than {values_max} values")
    try:
        values = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise HttpProblem(
            "malformed_json", f"the body is not JSON in UTF-8: {_shorten(str(error))}"
        ) from None
    for pointer, text, depth in _walk(values, "", 1):
        if depth > DEPTH_MAX:
            raise HttpProblem("malformed_json", f"the body is nested deeper than {DEPTH_MAX}")
        if "\0" in text:
            raise HttpProblem(
                "malformed_json",
                "texts must not contain NUL",
                errors=({"pointer": pointer, "detail": "contains NUL"},),
            )
    return values


def _has_too_many_values(raw: bytes, values_max: int) -> bool:
    """Told from the bytes: to make millions of values only to refuse them would hold up the server
    for all its callers. Commas inside strings count for nothing, they are text."""
    if raw.count(b",") <= values_max:
        return False
    if raw.count(b'"') - raw.count(b'\\"') > 4 * values_max:
        return True
    return _STRING.sub(b"", raw).count(b",") > values_max


def _walk(value: Any, pointer: str, depth: int) -> Iterator[tuple[str, str, int]]:
    if isinstance(value, str):
        yield pointer, value, depth
    elif isinstance(value, dict):
        yield pointer, "", depth
        if depth <= DEPTH_MAX:
            for key, item in value.items():
                yield pointer, key, depth
                yield from _walk(item, f"{pointer}/{_escape_pointer(key)}", depth + 1)
    elif isinstance(value, list):
        yield pointer, "", depth
        if depth <= DEPTH_MAX:
            for index, item in enumerate(value):
                yield from _walk(item, f"{pointer}/{index}", depth + 1)


def _escape_pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")[:100]


def validation_problem(failure: ValidationError) -> HttpProblem:
    """Every fault of a body, with where it is."""
    errors = [
        {
            "pointer": "".join(f"/{_escape_pointer(str(part))}" for part in error["loc"]),
            "detail": render_error(error)[0].removeprefix("Value error, "),
        }
        for error in failure.errors(include_url=False, include_input=False)[:ERRORS_SHOWN_MAX]
    ]
    first = errors[0]
    return HttpProblem(
        "invalid_request",
        f"{first['pointer'] or 'the body'}: {first['detail']}",
        errors=errors,
    )


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
