"""The form in which models are offered a tool.

A function with `@tool` is one; `rows` makes tools of operations.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from application.queries.access import AccessScope
from application.queries.views.view import View
from domain.configuration.problems import nearest_word
from domain.values.text import quote_name
from infrastructure.inbound.mcp.tools.arguments import (
    Properties,
    ToolArguments,
    properties_of,
    read_arguments,
)
from infrastructure.inbound.mcp.tools.call import McpCall, ToolAnswer, ToolInputError, answer_of

MEMBERS_SHOWN_MAX = 20
FunctionT = TypeVar("FunctionT", bound=Callable[..., Awaitable[View | ToolAnswer]])


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool.

    Attributes:
        scope: The scope that a token needs to be offered the tool.
        output: The model of its answers, or a union of models.
        required: The names of the mandatory arguments.
        judged_as: Further names that the tool policy of a session must permit, besides its own.
        also_read: Arguments that are accepted but not in the schema.
        refuses: Arguments that the tool refuses in words of its own.
        reads: True if it changes nothing.
        destroys: True if it can end the work of other sessions.
        schema: Builds the schema of the arguments, if it is not that of `properties`.
    """

    name: str
    title: str
    description: str
    scope: AccessScope
    answers: Callable[[McpCall], Awaitable[ToolAnswer]]
    output: Any
    properties: Properties = field(default_factory=dict)
    required: tuple[str, ...] = ()
    judged_as: tuple[str, ...] = ()
    also_read: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    reads: bool = True
    destroys: bool = False
    schema: Callable[..., Mapping[str, object]] | None = None

    @property
    def names_judged(self) -> tuple[str, ...]:
        """Return the names that the tool policy must permit: its own, and those of `judged_as`."""
        return (self.name, *self.judged_as)

    def input_schema(self, *, threads: bool) -> dict[str, Any]:
        """Return the JSON schema of the arguments.

        Args:
            threads: True if a child can be bound to a thread.
        """
        if self.schema is not None:
            return dict(self.schema(threads=threads))
        required = {"required": list(self.required)} if self.required else {}
        return {"type": "object", "properties": dict(self.properties), **required}

    @property
    def arguments_read(self) -> frozenset[str]:
        """Return the names of all accepted arguments."""
        return frozenset((*self._arguments_shown, *self.also_read))

    @property
    def _arguments_shown(self) -> tuple[str, ...]:
        return tuple(self.input_schema(threads=True)["properties"])

    def require_known(self, arguments: Mapping[str, object]) -> None:
        """Refuse an unknown argument: a misspelt `agentId` would start the default agent.

        Raises:
            ToolInputError: Names the unknown argument, the one probably meant, and all known ones.
        """
        if any(name in arguments for name in self.refuses):
            return
        unknown = next((name for name in arguments if name not in self.arguments_read), None)
        if unknown is None:
            return
        shown = self._arguments_shown
        meant = nearest_word(unknown, shown)
        hint = f'; did you mean "{meant}"?' if meant else "."
        listed = f"It takes {', '.join(shown)}." if shown else "It takes none."
        raise ToolInputError(f"{self.name}: unknown argument {quote_name(unknown)}{hint} {listed}")

    def output_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the answers, always an object.

        It includes refusals, since clients validate each result against it.
        """
        return {"type": "object", "anyOf": [*_brief_schemas(self.output), _FAILURE]}


def tool(
    name: str,
    *,
    title: str,
    description: str,
    scope: AccessScope,
    output: Any = None,
    **more: Any,
) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator that registers a function as a tool.

    The function takes the call and, if it has arguments, a model of them. It returns a view, or a
    `ToolAnswer` of the model `output`.
    """

    def decorate(function: FunctionT) -> FunctionT:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        model = parameters[1].annotation if len(parameters) > 1 else ToolArguments
        properties = properties_of(model)
        required = tuple(model.model_json_schema(by_alias=True).get("required", ()))

        async def answers(call: McpCall) -> ToolAnswer:
            arguments = model.model_validate(read_arguments(properties, required, call.arguments))
            answer = await function(call, *(arguments,) * (len(parameters) - 1))
            return answer_of(answer) if isinstance(answer, View) else answer

        function.offered = OfferedTool(  # type: ignore[attr-defined]
            name=name,
            title=title,
            description=description,
            scope=scope,
            answers=answers,
            output=output or signature.return_annotation,
            properties=properties,
            required=required,
            **more,
        )
        return function

    return decorate


def offered_by(function: Callable[..., Any]) -> OfferedTool:
    """Return the tool that `@tool` made of a function."""
    offered: OfferedTool = function.offered  # type: ignore[attr-defined]
    return offered


_FAILURE = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["error", "forbidden"]},
        "error": {"type": "string"},
        "code": {"type": "string"},
    },
    "required": ["status", "error"],
}


@cache
def _brief_schemas(output: Any) -> list[dict[str, Any]]:
    """Return each answer's members with their types, or only the title of a long answer.

    The full schemas are in `/openapi.json`; their hundred kilobytes are too much for a model.
    """
    whole = TypeAdapter(output).json_schema(mode="serialization", by_alias=True)
    kinds: Mapping[str, Any] = whole.get("$defs", {})
    if "anyOf" not in whole:
        return [_brief(whole)]
    return [_brief(kinds[kind["$ref"].rpartition("/")[2]]) for kind in whole["anyOf"]]


def _brief(schema: Mapping[str, Any]) -> dict[str, Any]:
    if len(schema.get("properties", ())) > MEMBERS_SHOWN_MAX:
        return {"type": "object", "title": schema["title"]}
    members = {name: _member(member) for name, member in schema.get("properties", {}).items()}
    required = [name for name in schema.get("required", ()) if name in members]
    return {"type": "object", "properties": members, "required": required}


def _member(schema: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return {"type": "object"}
    if "anyOf" in schema:
        kinds = [_member(kind) for kind in schema["anyOf"]]
        return {"anyOf": [kind for at, kind in enumerate(kinds) if kind not in kinds[:at]]}
    kept = {name: schema[name] for name in ("type", "const", "enum") if name in schema}
    return {**kept, **({"items": _member(schema["items"])} if "items" in schema else {})}
