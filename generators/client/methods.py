"""Generate the modules of the Python client that depend on the operations.

These are the methods of the asynchronous client and the typed dictionaries of bodies.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from domain.values.moments import DURATION_FORMS
from generators.client.description import (
    KEY,
    UNNAMED_SHAPES,
    Json,
    Operation,
    Parameter,
    annotation,
    answer_names,
    body_names,
    methods,
    python_name,
)

HEAD = "# Written by `make client` from the description of the HTTP API.\n"
LINE_CHARACTERS = 100

ITERATORS = {
    "listRuns": "runs",
    "listRunEvents": "run_events",
    "getRunTranscript": "transcript",
    "getRunHistory": "run_history",
    "getDiff": "differences",
    "listAnnouncements": "announcements",
    "listLedger": "ledger",
    "listEvents": "events",
    "listTimeline": "timeline",
    "findEvents": "found_events",
    "listRevisions": "revisions",
}
"""Method that yields the items of all pages, for each operation that returns a page."""

_REQUEST_HELPERS = (
    *("LinesRequest", "PageRequest", "Request"),
    *("command_request", "lines_request", "page_request", "path_of", "plain_request"),
    *("read_request", "requester_object"),
)
_SPAWN_ARGUMENTS_OF_THEIR_OWN = frozenset({"task", "requester", "parallel"})


def method_module(document: Json) -> str:
    """Return the source of `async_methods.py`."""
    found = methods(document)
    body = "".join(_method(operation) for operation in found)
    body += "".join(_iterator(operation) for operation in found if operation.lists)
    return (
        f'{HEAD}"""Every operation of the server as a method of the asynchronous client."""\n\n'
        "from __future__ import annotations\n"
        "from collections.abc import AsyncIterator\n"
        "from spawnlog.core.async_sender import AsyncSender\n"
        f"{_imports(body, {'spawnlog.core.request': _REQUEST_HELPERS}, _types(document))}"
        "\n\nclass AsyncMethods(AsyncSender):\n"
        '    """Every operation of the server."""\n'
        f"{body}"
    )


def body_module(document: Json) -> str:
    """Return the source of `bodies.py`: typed dictionaries for the objects inside bodies."""
    schemas = document["components"]["schemas"]
    found = methods(document)
    shapes = dict(_unnamed_shapes(list(schemas.values())))
    shapes |= {name: schemas[name] for name in body_names(document) if name not in shapes}
    (spawn,) = [operation for operation in found if operation.id == "spawn"]
    text = "".join(_typed_dictionary(name, shapes[name]) for name in sorted(shapes))
    text += _spawn_choices(spawn)
    return (
        f'{HEAD}"""Typed dictionaries for the objects in request bodies, with JSON names."""\n\n'
        "from collections.abc import Mapping, Sequence\n"
        "from typing import Any, Literal, NotRequired, TypedDict\n"
        f"{text}"
    )


def _unnamed_shapes(part: object) -> Iterator[tuple[str, Json]]:
    if isinstance(part, dict):
        name = UNNAMED_SHAPES.get(tuple(part.get("properties", ())))
        if name is not None:
            yield name, {"description": "A run to wait for, and how it has to end.", **part}
        for value in part.values():
            yield from _unnamed_shapes(value)
    elif isinstance(part, list):
        for value in part:
            yield from _unnamed_shapes(value)


def _typed_dictionary(name: str, schema: Json) -> str:
    required = set(schema.get("required", ()))
    lines = []
    for member, described in schema["properties"].items():
        kind = annotation(described, takes="list")
        lines.append(f"{member}: {kind if member in required else f'NotRequired[{kind}]'}")
        if "description" in described:
            lines += _docstring([*_wrapped(described["description"], 4)])
    heading = _docstring([*_wrapped(schema["description"], 4)])
    return f"\n\nclass {name}(TypedDict):\n{_indented([*heading, '', *lines])}"


def _spawn_choices(spawn: Operation) -> str:
    lines = []
    for parameter in spawn.parameters:
        if parameter.name not in _SPAWN_ARGUMENTS_OF_THEIR_OWN:
            lines.append(f"{parameter.name}: {parameter.annotation.removesuffix(' | None')}")
            if parameter.description:
                lines += _docstring([*_wrapped(parameter.description, 4)])
    heading = _docstring(
        ["Options of `spawn` other than its task and its requester, by the same names."]
    )
    return f"\n\nclass SpawnChoices(TypedDict, total=False):\n{_indented([*heading, '', *lines])}"


def _request(operation: Operation) -> tuple[str, str]:
    """Return the type of a request, and the expression that builds it."""
    answers = " | ".join(operation.answers)
    names = ", ".join(f'"{answer}"' for answer in operation.answers)
    path, values = _path(operation), _values(operation)
    head = f'"{operation.id}", '
    if operation.is_lines:
        return f"LinesRequest[{answers}]", f"lines_request({head}{path}, {values}, {names})"
    if operation.lists:
        lists = "" if operation.lists == ("items",) else f", lists={operation.lists!r}"
        call = f"page_request({head}{path}, {values}, {names}{lists})"
        return f"PageRequest[{answers}, {operation.item}]", call
    if operation.method == "GET":
        return f"Request[{answers}]", f"read_request({head}{path}, {values}, {names})"
    head += f'"{operation.method}", '
    if operation.has_key:
        call = f"command_request({head}{path}, {values}, {names}, idempotency_key=idempotency_key)"
        return f"Request[{answers}]", call
    options = [f"body={values}"] if operation.placed("body") else []
    if operation.placed("header"):
        headers = ", ".join(
            f'"{header.json_name}": {header.name}' for header in operation.placed("header")
        )
        options.append(f"headers={{{headers}}}")
    if operation.is_repeatable:
        options.append("again=True")
    call = f"plain_request({', '.join([f'{head}{path}', names, *options])})"
    return f"Request[{answers}]", call


def _path(operation: Operation) -> str:
    if not operation.path.startswith("/v1/"):
        return f'"{operation.path}"'
    parts = operation.path.removeprefix("/v1/").split("/")
    return f"path_of({', '.join(_segment(part) for part in parts)})"


def _segment(part: str) -> str:
    return python_name(part[1:-1]) if part.startswith("{") else f'"{part}"'


def _values(operation: Operation) -> str:
    """Return the expression for the query or for the members of the body."""
    placed = operation.placed("query") or operation.placed("body")
    if [parameter.json_name for parameter in placed] == [""]:
        return placed[0].name
    values = [f'"{parameter.json_name}": {_value(parameter)}' for parameter in placed]
    return f"{{{', '.join(values)}}}"


def _value(parameter: Parameter) -> str:
    is_requester = "RequesterBody" in parameter.annotation
    return f"requester_object({parameter.name})" if is_requester else parameter.name


def _method(operation: Operation) -> str:
    kind, call = _request(operation)
    answers = " | ".join(operation.answers)
    head = _signature(operation.parameters)
    text = _indented(_documented(_sentence(operation.summary), operation, 8), 8)
    request = f"        request: {kind} = {call}\n"
    if operation.is_lines:
        return (
            f"\n    def {operation.name}({head}) -> AsyncIterator[{answers}]:\n"
            f"{text}{request}        return self._lines(request)\n"
        )
    return (
        f"\n    async def {operation.name}({head}) -> {answers}:\n"
        f"{text}{request}        return (await self.answer(request)).value\n"
    )


def _iterator(operation: Operation) -> str:
    kind, call = _request(operation)
    summary = f"Yield the items of all pages of `{operation.name}`; request pages as needed."
    return (
        f"\n    def {ITERATORS[operation.id]}({_signature(operation.parameters)})"
        f" -> AsyncIterator[{operation.item}]:\n"
        f"{_indented(_documented(summary, operation, 8), 8)}"
        f"        request: {kind} = {call}\n        return self._items(request)\n"
    )


def _signature(parameters: Iterable[Parameter]) -> str:
    """Return the parameter list: required ones first, optional ones keyword-only."""
    listed = ["self"]
    by_keyword = []
    for parameter in parameters:
        if parameter.default is None:
            listed.append(f"{parameter.name}: {parameter.annotation}")
        else:
            by_keyword.append(f"{parameter.name}: {parameter.annotation} = {parameter.default}")
    return ", ".join([*listed, *(["*", *by_keyword] if by_keyword else [])])


def _documented(summary: str, operation: Operation, indent: int) -> list[str]:
    """Return the lines of a method's docstring."""
    lines = [*_wrapped(summary, indent)]
    if operation.description:
        lines += ["", *_wrapped(operation.description, indent)]
    described = [parameter for parameter in operation.parameters if parameter.description]
    if described:
        lines += ["", "Args:"]
        for parameter in described:
            text = parameter.description
            if parameter.json_name == KEY:
                text = f"{text} Default: a new key for each call."
            elif parameter.annotation.startswith("float"):
                text = text.replace(f" s at most: {DURATION_FORMS}", " seconds at most")
            first, *further = _wrapped(f"{parameter.name}: {text}", indent + 8)
            lines += [f"    {first}", *(f"        {line}" for line in further)]
    return _docstring(lines)


def _docstring(lines: Sequence[str]) -> list[str]:
    text = "\n".join(lines)
    assert '"""' not in text, text
    prefix = "r" if "\\" in text else ""
    if len(lines) == 1:
        return [f'{prefix}"""{lines[0]}"""']
    return [f'{prefix}"""{lines[0]}', *lines[1:], '"""']


def _wrapped(text: str, indent: int) -> list[str]:
    """Wrap a text so that each line has room for `indent` and the quotes."""
    width = LINE_CHARACTERS - indent - 6
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _indented(lines: Iterable[str], indent: int = 4) -> str:
    return "".join(f"{' ' * indent}{line}\n" if line else "\n" for line in lines)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _imports(
    body: str, modules: Mapping[str, Iterable[str]], typed: Mapping[str, Iterable[str]]
) -> str:
    """Return the imports for the names in a module; those in `typed` go under TYPE_CHECKING."""
    words = set(re.findall(r"\w+", body))
    lines = ["from typing import TYPE_CHECKING, Any, Literal", *_import_lines(modules, words)]
    lines += ["if TYPE_CHECKING:", *(f"    {line}" for line in _import_lines(typed, words))]
    return "\n".join(lines) + "\n"


def _import_lines(modules: Mapping[str, Iterable[str]], words: set[str]) -> Iterator[str]:
    for module, names in modules.items():
        if found := sorted(words.intersection(names)):
            yield f"from {module} import {', '.join(found)}"


def _types(document: Json) -> Mapping[str, Iterable[str]]:
    """Return the names that signatures may use, by module."""
    return {
        "collections.abc": ("Mapping", "Sequence"),
        "datetime": ("datetime",),
        "spawnlog.bodies": body_names(document),
        "spawnlog.models": answer_names(document),
    }
