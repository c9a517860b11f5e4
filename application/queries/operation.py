"""Operations: each is a function, its models, and the row that `@operation` writes beside it.

A row says everything that HTTP, the OpenAPI document, the command line and the client need to know
of an operation. They derive from it and add nothing by hand.
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
    """Give the texts in the schema of a model the length that its validator requires."""
    for name, about in model.model_fields.items():
        described = schema["properties"][about.alias or name]
        for one in (described, described.get("items", {}), *described.get("anyOf", ())):
            if one.get("type") == "string" and "enum" not in one:
                one.setdefault("minLength", int(name not in model.MAY_BE_EMPTY))


class Parameters(BaseModel):
    """Query parameters of an operation: camelCase in a URL, snake_case in Python.

    A field that is a tuple may be given more than once. HTTP refuses unknown and repeated names.
    An empty text is refused: a filter without a value would be ignored.
    """

    MAY_BE_EMPTY: ClassVar[frozenset[str]] = frozenset()
    """Names of fields for which an empty text is a value."""

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
            raise ValueError("must not be empty: leave it out")
        return value


class Read(Parameters):
    """Parameters of a read."""

    min_position: int | None = Field(
        None,
        ge=0,
        le=POSITION_MAX,
        description=(
            "Answer no earlier state than that of this position, which another server has told;"
            " 503 when it is not known here within a second."
        ),
    )


class ReadAsOf(Read):
    """Parameters of a read of the present or of the past."""

    at: str | None = Field(
        None,
        max_length=MOMENT_CHARACTERS_MAX,
        description=(
            f"As of when: {MOMENT_FORMS}. A run is named by its id, 8 or more characters of its"
            " beginning, or its label. Default: now."
        ),
        examples=["pos:18342"],
    )


class Page(Parameters):
    """Parameters of a list that is read in pages by a cursor."""

    limit: int = Field(LIMIT_DEFAULT, ge=1, le=LIMIT_MAX, description="How many items at most.")
    cursor: str | None = Field(
        None,
        max_length=CURSOR_CHARACTERS_MAX,
        description="`nextCursor` of the page before this one.",
    )


class PageAfter(Parameters):
    """Parameters of a list that is read in pages by position or number."""

    after: int = Field(
        0,
        ge=0,
        le=POSITION_MAX,
        description="Only what stands behind this: `nextAfter` of a page.",
    )
    limit: int = Field(LIMIT_DEFAULT, ge=1, le=LIMIT_MAX, description="How many items at most.")


WAIT: Any = Field(
    None,
    max_length=16,
    description=f"How long to wait, 60 s at most: {DURATION_FORMS}.",
    examples=["30s"],
)
"""The field of a read that can wait."""


class LogPart(Parameters):
    """Parameters of a read of a part of the log, by moments."""

    begin: str | None = Field(
        None,
        alias="from",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Only what was recorded after this moment: {MOMENT_FORMS}. Default: all.",
        examples=["pos:0"],
    )
    end: str | None = Field(
        None,
        alias="to",
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"And not after this moment: {MOMENT_FORMS}. Default: now.",
        examples=["pos:18342"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The tool by which models are offered an operation that reads.

    Its arguments are the parameters of the path, and those of the query that `arguments` names.
    `runId` takes any name of a sub-agent. `key` is `sessionKey`, by default the caller's session,
    which is also `requester`. If several operations have the same tool, a call is of the one with
    the most parameters of the path that are all given.
    """

    name: str
    title: str
    description: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The resource by which models read an operation of one run, with this query."""

    name: str
    title: str
    description: str
    query: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A row of the table of operations.

    Attributes:
        name: The operation id, camelCase, unique.
        scope: The scope that the caller's token needs, checked before parameters and body are read.
            None if the handler decides, after they are read.
        token: False for operations that anybody may ask.
        errors: Codes of the problems that this operation can have beside those that all have.
        answer: The model of a success, a union of models, or `str` for plain text.
        status: The status of a success; `statuses` has others by the kind of a stored answer.
        query: The model of the query parameters; `Read` if the handler of a read does not take it.
        body: The model of the request body; `Body` if the method has one and the handler does not
            take it.
        repeat: `key` if an `Idempotency-Key` is honored, `itself` if a second request does no more
            than the first, `once` if a client must not send it twice by itself.
        location: The template of the `Location` header, of members of the answer.
        shows_position: True if the answer has the position as a member.
        etag: Makes the entity tag of an answer. With `if_none_match`, 304 answers a known one.
        if_match: True if the request names the version that it was made for, which is a number.
        media_types: What the body may be declared as; the first one is named in problems.
        essential: True if it is answered past the limit of open files too.
        lines: True if the handler returns `Lines`; `answer` is the union of their models.
        streams: True if `Accept: text/event-stream` gets a live stream.
        other_answers: Descriptions and models of further statuses, for the document.
        values_max: How many JSON values a body may hold, if that is not the common limit.
        tool: The tool of the Model Context Protocol, if models are offered the operation as one.
        resource: Its resource of the Model Context Protocol.
        command: Its command on the command line, or the reason why it has none.
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
    """The parameters of the path by their names in it, and as the handler names them."""
    query: type[Parameters] | None
    body: type[BaseModel] | None
    takes: frozenset[str]
    """The names of the handler's parameters."""

    PROVIDED: ClassVar = frozenset({"services", "caller", "query", "body", "command", "request"})
    """Names of parameters of a handler that are no part of the path."""


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
    """Make a function an operation.

    The function takes, by name and in any order: `services`, `caller`, the parameters of its path
    in snake_case, `query` (annotated with a subclass of `Parameters`), `body` (annotated with a
    model), `command` (`CommandContext`), or `request`, if it answers HTTP itself. It returns an
    `Answer`, a `View` that is true at no position, a `StoredAnswer`, a `CommandResponse` or a
    response.

    Raises:
        TypeError: The signature and the path do not agree.
    """

    def decorate(handler: HandlerT) -> HandlerT:
        signature = inspect.signature(handler)
        names = PATH_NAME.findall(path)
        takes = frozenset(signature.parameters)
        expected = {to_snake(one) for one in names} | (takes & Operation.PROVIDED)
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
            path_arguments={one: to_snake(one) for one in names},
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
    """Return the row of a function that `@operation` decorates."""
    row: Operation = handler.operation  # type: ignore[attr-defined]
    return row


def _annotation(signature: inspect.Signature, name: str) -> Any:
    parameter = signature.parameters.get(name)
    return None if parameter is None else parameter.annotation


def _answer_of(annotation: Any) -> type | UnionType:
    if isinstance(annotation, type) and issubclass(annotation, View):
        return annotation
    if get_origin(annotation) is not Answer:
        raise TypeError(f"{annotation} is no Answer: give `answer`")
    model: type | UnionType = get_args(annotation)[0]
    return model
