"""Generate `shapes.ts` for the page from the OpenAPI document; run by `make docs`.

It has the operations that the page calls, and the types that they need.
"""

import re
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any

from infrastructure.inbound.http.openapi import document

SOURCE = Path("infrastructure/inbound/web/page/src")
SHAPES = SOURCE / "api" / "shapes.ts"
_HEAD = "// Written by `make docs` from the description of the HTTP API: what the page asks for.\n"
# The first argument of each of these functions is an operation id.
_ASKED = re.compile(r"\b(?:read|act|actAsNobody|send|lines|requestOf|Asked|Listing)\(\s*'(\w+)'")
_SCHEMAS = "#/components/schemas/"
_READ = ("application/json", "application/x-ndjson")
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}
_NOTHING = "Record<string, never>"


def shapes(source: Path = SOURCE) -> str:
    """Return the source of `shapes.ts`.

    It has the route, parameters, body and answer of each operation that the page calls, and each
    type that these refer to.

    Args:
        source: Folder with the source of the page, searched for calls.
    """
    described, names = document(), _names_asked(source)
    called = {
        operation["operationId"]: (f"{method.upper()} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if operation["operationId"] in names
    }
    operations = {name: called[name][1] for name in sorted(called)}
    return "".join(
        (
            _HEAD,
            _shapes_of(operations, described["components"]["schemas"]),
            "\n/** The method and the path of each operation, by its id. */\n",
            "export const ROUTES = {\n",
            *(f"  {name}: '{called[name][0]}',\n" for name in operations),
            "} as const\n",
            _interface(
                "Parameters",
                "The parameters of each operation, in its path and behind it. Null is not sent.",
                {name: _parameters(operation) for name, operation in operations.items()},
            ),
            _interface(
                "Bodies",
                "The body of each operation that does something; one that takes none gets {}.",
                {
                    name: _body(operation)
                    for name, operation in operations.items()
                    if not called[name][0].startswith("GET ")
                },
            ),
            _interface(
                "Answers",
                "The answer of each operation; where it comes line by line, each line.",
                {name: _answer(operation) for name, operation in operations.items()},
            ),
        )
    )


def _names_asked(source: Path) -> set[str]:
    return {
        name
        for path in source.rglob("*")
        if path.suffix in (".ts", ".svelte") and not path.name.endswith(".test.ts")
        for name in _ASKED.findall(path.read_text("utf-8"))
    }


def _interface(name: str, says: str, members: dict[str, str]) -> str:
    lines = "".join(f"  {member}: {of}\n" for member, of in members.items())
    return f"\n/** {says} */\nexport interface {name} {{\n{lines}}}\n"


def _parameters(operation: dict[str, Any]) -> str:
    """Return the type of all parameters except headers.

    No name is in both the path and the query. A repeatable parameter takes one value or a list.
    """
    fields = []
    for parameter in sorted(operation.get("parameters", ()), key=itemgetter("name")):
        name, schema, of = parameter["name"], parameter["schema"], _type(parameter["schema"])
        if parameter["in"] == "header":
            continue
        if schema.get("type") == "array":
            of = f"{_type(schema['items'])} | {of}"
        field = f"{name}: {of}" if parameter.get("required") else f"{name}?: {of} | null"
        fields.append(f"    {field}\n")
    return f"{{\n{''.join(fields)}  }}" if fields else _NOTHING


def _body(operation: dict[str, Any]) -> str:
    if "requestBody" not in operation:
        return _NOTHING
    return _type(operation["requestBody"]["content"]["application/json"]["schema"])


def _answer(operation: dict[str, Any]) -> str:
    """Return the type of the answer: a union if different tokens get different answers."""
    options = (
        option
        for status, response in operation["responses"].items()
        for kind, content in response.get("content", {}).items()
        if status < "300" and kind in _READ
        for option in _type(content["schema"]).split(" | ")
    )
    return " | ".join(dict.fromkeys(options))


def _shapes_of(operations: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Return the declarations of all types that the operations need."""
    needed: set[str] = set()
    left = list(_references(operations))
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left.extend(_references(schemas[name]))
    return "".join(_declared(name, schemas[name]) for name in sorted(needed))


def _references(node: Any) -> Iterable[str]:
    match node:
        case {"$ref": str(reference)} if reference.startswith(_SCHEMAS):
            yield reference.removeprefix(_SCHEMAS)
        case dict():
            for value in node.values():
                yield from _references(value)
        case list():
            for value in node:
                yield from _references(value)


def _declared(name: str, schema: dict[str, Any]) -> str:
    if name == "JsonValue":
        # An empty schema permits any JSON; TypeScript needs `unknown` for that.
        return "\nexport type JsonValue = unknown\n"
    if schema.get("type") == "object" and "properties" in schema:
        required = set(schema.get("required", ()))
        fields = "".join(
            f"  {field}{'' if field in required else '?'}: {_type(of)}\n"
            for field, of in schema["properties"].items()
        )
        return f"\nexport interface {name} {{\n{fields}}}\n"
    return f"\nexport type {name} = {_type(schema)}\n"


def _type(schema: Any) -> str:
    match schema:
        case {"$ref": str(reference)}:
            return reference.rsplit("/", 1)[1]
        case {"const": str(word)}:
            return _quoted(word)
        case {"enum": list(words)}:
            return " | ".join(_quoted(word) for word in words)
        case {"anyOf": list(options)} | {"oneOf": list(options)}:
            return " | ".join(dict.fromkeys(_type(option) for option in options))
        case {"allOf": [only]}:
            return _type(only)
        case {"type": list(names)}:
            return " | ".join(_type({**schema, "type": name}) for name in names)
        case {"type": "array", "items": items}:
            of = _type(items)
            return f"({of})[]" if "|" in of else f"{of}[]"
        case {"type": "object"}:
            return _record(schema)
        case {"type": "null"}:
            return "null"
        case {"type": str(name)} if name in _PLAIN:
            return _PLAIN[name]
        case _:
            return "unknown"


def _record(schema: dict[str, Any]) -> str:
    if "properties" in schema:
        required = set(schema.get("required", ()))
        fields = "; ".join(
            f"{field}{'' if field in required else '?'}: {_type(of)}"
            for field, of in schema["properties"].items()
        )
        return f"{{ {fields} }}"
    values = schema.get("additionalProperties")
    return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"


def _quoted(word: Any) -> str:
    return "null" if word is None else f"'{word}'"


if __name__ == "__main__":
    SHAPES.parent.mkdir(parents=True, exist_ok=True)
    SHAPES.write_text(shapes(), "utf-8")
