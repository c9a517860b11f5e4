"""Operations of the API: a handler, its models, and the row that `@operation` attaches to it.

HTTP, the OpenAPI document, the command line and the client derive everything from the row and add
nothing by hand.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel, to_snake

from application.queries.access import AccessScope
from application.queries.command import Command
from application.queries.paging import LIMIT_DEFAULT, LIMIT_MAX
from application.queries.views.view import Answer, View
from domain.values.body import Body
from domain.values.moments import DURATION_FORMS, MOMENT_CHARACTERS_MAX, MOMENT_FORMS

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])
POSITION_MAX = 2**62
CURSOR_CHARACTERS_MAX = 2048
PATH_NAME = re.compile(r"\{(\w+)\}")


def _describe_texts(schema: dict[str, Any], model: type["Parameters"]) -> None:
    """Set `minLength` of each string in the schema to the length that the validator requires."""
    for name, about in model.model_fields.items():
        described = schema["properties"][about.alias or name]
        for schema_part in (described, described.get("items", {}), *described.get("anyOf", ())):
            if schema_part.get("type") == "string" and "enum" not in schema_part:
                schema_part.setdefault("minLength", int(name not in model.MAY_BE_EMPTY))


class Parameters(BaseModel):
    """Query parameters of an operation: camelCase in a URL, snake_case in Python.

    A tuple field may be repeated. HTTP refuses unknown parameters and repeated scalar ones. An
    empty string is refused, because a filter without a value would be ignored.
    """

    MAY_BE_EMPTY: ClassVar[frozenset[str]] = frozenset()
    """Names of fields that accept an empty string."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        json_schema_extra=_describe_texts,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _require_value(cls, value: Any, info: ValidationInfo) -> Any:
        if value == "" and info.field_name not in cls.MAY_BE_EMPTY:
            raise ValueError("must not be empty; omit it instead")
        return value


class Read(Parameters):
    """Parameters common to all reads."""

    min_position: int | None = Field(
        None,
        ge=0,
        le=POSITION_MAX,
        description=(
            "Return a state at or after this log position, such as one returned by another"
            " server. 503 if this server does not reach it within one second."
        ),
    )


class ReadAsOf(Read):
    """Parameters of a read that can show an earlier state."""

    at: str | None = Field(
        None,
        max_length=MOMENT_CHARACTERS_MAX,
        description=(
            f"Return the state as of this moment: {MOMENT_FORMS}. A run is named by its id, by 8"
            " or more of the first characters of its id, or by its label. Default: now."
        ),
        examples=["pos:18342"],
    )


class Page(Parameters):
    """Parameters of a list that is paged by cursor."""

    limit: int = Field(LIMIT_DEFAULT, ge=1, le=LIMIT_MAX, description="Maximum number of items.")
    cursor: str | None = Field(
        None,
        max_length=CURSOR_CHARACTERS_MAX,
        description="`nextCursor` of the previous page.",
    )


class PageAfter(Parameters):
    """Parameters of a list that is paged by position or sequence number."""

    after: int = Field(
        0,
        ge=0,
        le=POSITION_MAX,
        description="Return only items after this number: `nextAfter` of the previous page.",
    )
    limit: int = Field(LIMIT_DEFAULT, ge=1, le=LIMIT_MAX, description="Maximum number of items.")


WAIT: Any = Field(
    None,
    max_length=16,
    description=f"How long to wait, 60 s at most: {DURATION_FORMS}.",
    examples=["30s"],
)
"""Query parameter of reads that can long-poll."""


class LogPart(Parameters):
    """Parameters of a read of one range of the log."""

    begin: str | None = Field(
        None,
        alias="from",
        max_length=MOMENT_CHARACTERS_MAX,
        description=(
            f"Start of the range, exclusive: {MOMENT_FORMS}. Default: the beginning of the log."
        ),
        examples=["pos:0"],
    )
    end: str | None = Field(
        None,
        alias="to",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"End of the range, inclusive: {MOMENT_FORMS}. Default: now.",
        examples=["pos:18342"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The MCP tool that exposes a read operation to models.

    Its arguments are the path parameters and the query parameters listed in `arguments`. `runId`
    accepts any name of a sub-agent. `key` is exposed as `sessionKey` and defaults to the caller's
    session; so does `requester`. If several operations share a tool, a call uses the operation with
    the most path parameters that are all given.
    """

    name: str
    title: str
    description: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The MCP resource that exposes an operation on one run, with a fixed query."""

    name: str
    title: str
    description: str
    query: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One row of the operation table.

    Attributes:
        name: The operation id: camelCase, unique.
        scope: The scope that the caller's token requires, checked before parameters and body are
            read. None if the handler decides after they are read.
        token: False if no token is required.
        errors: Codes of the problems specific to this operation.
        answer: The model of a success, a union of models, or `str` for plain text.
        status: The HTTP status of a success; `statuses` maps kinds of stored answers to others.
        query: The model of the query parameters. `Read` if the handler of a read takes no `query`.
        body: The model of the request body. `Body` if the method has one and the handler takes
            none.
        repeat: `key` if the operation honors an `Idempotency-Key`, `itself` if repeating a request
            is a no-op, `once` if a client must not retry it.
        location: The template of the `Location` header, filled from members of the answer.
        shows_position: True if the answer contains the position as a member.
        etag: Returns the entity tag of an answer. With `if_none_match`, a known tag is answered
            with 304.
        if_match: True if `If-Match` names the version that the request was made for, as a number.
        media_types: Accepted content types of the body; problems name the first one.
        essential: True if the operation is answered even beyond the limit of open files.
        lines: True if the handler returns `Lines`; `answer` is the union of their models.
        streams: True if `Accept: text/event-stream` starts a live stream.
        other_answers: Descriptions and models of further statuses, for the OpenAPI document.
        values_max: Maximum number of JSON values in a body, if not the common limit.
        tool: The MCP tool of the operation, if models may call it.
        resource: The MCP resource of the operation.
        command: The command of the operation, or the reason why it has none.
    """

    handler: Callable[..., Any]
    method: Method
    path: str
    name: str
    tag: str
    summary: str
    description: str
    answer: Any
    scope: AccessScope | None
    token: bool = True
    errors: tuple[str, ...] = ()
    status: int = 200
    status_description: str = "Done"
    statuses: Mapping[str, int] = field(default_factory=dict)
    other_answers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    repeat: Literal["key", "itself", "once"] = "itself"
    location: str | None = None
    shows_position: bool = False
    etag: Callable[[Any], str] | None = None
    if_none_match: bool = False
    if_match: bool = False
    lines: bool = False
    streams: bool = False
    media_types: tuple[str, ...] = ("application/json",)
    values_max: int | None = None
    body_required: bool = False
    essential: bool = False
    tool: Tool | None = None
    resource: Resource | None = None
    command: Command | str = ""
    path_arguments: Mapping[str, str]
    """The path parameters: their names in the path, mapped to the handler's parameter names."""
    query: type[Parameters] | None
    body: type[BaseModel] | None
    takes: frozenset[str]
    """Names of the handler's parameters."""

    PROVIDED: ClassVar = frozenset({"services", "caller", "query", "body", "command", "request"})
    """Names of handler parameters that are not part of the path."""


def operation(
    method: Method,
    path: str,
    *,
    name: str,
    tag: str,
    summary: str,
    description: str = "",
    scope: AccessScope | None,
    answer: Any = None,
    **more: Any,
) -> Callable[[HandlerT], HandlerT]:
    """Return a decorator that turns a function into an operation.

    The function accepts, by name and in any order: `services`, `caller`, the path parameters in
    snake_case, `query` (annotated with a subclass of `Parameters`), `body` (annotated with a
    model), `command` (`CommandContext`), and `request` if it answers HTTP itself. It returns an
    `Answer`, a `View` that holds at no position, a `StoredAnswer`, a `CommandResponse` or a
    response.

    Raises:
        TypeError: The signature does not match the path.
    """

    def decorate(handler: HandlerT) -> HandlerT:
        signature = inspect.signature(handler)
        names = PATH_NAME.findall(path)
        takes = frozenset(signature.parameters)
        expected = {to_snake(name_in_path) for name_in_path in names} | (takes & Operation.PROVIDED)
        if takes != expected:
            raise TypeError(f"{name}: parameters {sorted(takes)} do not fit {path}")
        row = Operation(
            handler=handler,
            method=method,
            path=path,
            name=name,
            tag=tag,
            summary=summary,
            description=description,
            scope=scope,
            answer=answer or _answer_of(signature.return_annotation),
            path_arguments={path_name: to_snake(path_name) for path_name in names},
            query=_annotation(signature, "query")
            or (Read if method == "GET" and path.startswith("/v1/") else None),
            body=_annotation(signature, "body") or (Body if method in METHODS_WITH_BODY else None),
            takes=takes,
            **more,
        )
        handler.operation = row  # type: ignore[attr-defined]
        return handler

    return decorate


def operation_of(handler: Callable[..., Any]) -> Operation:
    """Return the operation row of a function decorated with `@operation`."""
    row: Operation = handler.operation  # type: ignore[attr-defined]
    return row


def _annotation(signature: inspect.Signature, name: str) -> Any:
    parameter = signature.parameters.get(name)
    return None if parameter is None else parameter.annotation


def _answer_of(annotation: Any) -> type | UnionType:
    if isinstance(annotation, type) and issubclass(annotation, View):
        return annotation
    if get_origin(annotation) is not Answer:
        raise TypeError(f"{annotation} is not an Answer; pass `answer`")
    model: type | UnionType = get_args(annotation)[0]
    return model
