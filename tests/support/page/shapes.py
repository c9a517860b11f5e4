"""Writes the shapes of requests and responses for the page: `shapes.ts`, from the description that
the server gives of itself. `make docs` runs it."""

from pathlib import Path
from typing import Any

from infrastructure.inbound.http.openapi import document

SHAPES = Path("infrastructure/inbound/web/page/src/api/shapes.ts")
_HEAD = "// Written by `make docs` from the description of the HTTP API.\n"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}


def shapes() -> str:
    """Return the text of `shapes.ts`: an interface for each object, a type for everything else, and
    the type of the answer of each operation."""
    described = document()
    schemas = described["components"]["schemas"]
    declared = "".join(_declared(name, schemas[name]) for name in sorted(schemas))
    return _HEAD + declared + _answers(described["paths"])


def _answers(paths: dict[str, Any]) -> str:
    """Return the interface with the type of each operation's JSON answer. What one token is shown
    and another is not makes that a union, which the page has to tell apart."""
    found = {
        operation["operationId"]: dict.fromkeys(
            one
            for status, response in operation["responses"].items()
            if status < "300" and "application/json" in response.get("content", {})
            for one in _type(response["content"]["application/json"]["schema"]).split(" | ")
        )
        for path in paths.values()
        for operation in path.values()
    }
    lines = [f"  {name}: {' | '.join(found[name])}\n" for name in sorted(found) if found[name]]
    head = "\n/** The answer of each operation, by its id. */\nexport interface Answers {\n"
    return f"{head}{''.join(lines)}}}\n"


def _declared(name: str, schema: dict[str, Any]) -> str:
    if name == "JsonValue":
        # It says nothing, so that every JSON would be of it; in TypeScript it has to say so.
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
        case {"allOf": [one]}:
            return _type(one)
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
