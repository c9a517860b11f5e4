"""Arguments of tools: one model gives the schema that is shown, and reads a call.

Values are read leniently, as models expect: one of another type counts as missing, unless that
could act on the wrong run. An unknown name is refused (`OfferedTool.require_known`).
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from infrastructure.inbound.mcp.tools.call import ToolInputError

POSITION_MAX = 2**62
TEXTS_MAX = 50
TARGET = (
    "Sub-agent: its number in the list, its label or a prefix of it, its session key, its run id"
    " or a prefix of it, or last."
)
OWN_SESSION = "Session key or id. Default: your own session."

Properties = Mapping[str, Mapping[str, Any]]


class ToolArguments(BaseModel):
    """Arguments of a tool: camelCase in a call, snake_case in Python."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


def number(default: float, least: float, most: float, description: str) -> Any:
    """Return a field for a number. A value out of bounds becomes the nearest bound."""
    return Field(default, ge=least, le=most, description=description)


def one_of(words: tuple[str, ...], default: str, description: str) -> Any:
    """Return a field for a word that the schema lists. The tool itself checks other texts."""
    return Field(default, description=description, json_schema_extra={"enum": list(words)})


def properties_of(model: type[BaseModel]) -> Properties:
    """Return the JSON schemas of a model's fields, as a model of a language is shown them."""
    schema = model.model_json_schema(by_alias=True)
    return {name: _shown(member) for name, member in schema.get("properties", {}).items()}


def _shown(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Remove title, default and null from a schema: an optional argument is simply left out."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    whole = {**schema, **choices[0]} if len(choices) == 1 else schema
    hidden = ("title", "default", "examples", *(("anyOf",) if len(choices) == 1 else ()))
    return {name: value for name, value in whole.items() if name not in hidden}


def read_arguments(
    properties: Properties, required: tuple[str, ...], arguments: Mapping[str, object]
) -> dict[str, Any]:
    """Return the usable arguments.

    Raises:
        ToolInputError: A required argument is missing, or a list of texts is malformed or too long.
    """
    given = {}
    for name, schema in properties.items():
        value = _usable(name, schema, arguments.get(name))
        if value is not None:
            given[name] = value
        elif name in required:
            raise ToolInputError(f"{name} required")
    return given


def _usable(name: str, schema: Mapping[str, Any], value: object) -> object:
    match schema.get("type"):
        case "string":
            return text_of(value)
        case "boolean":
            return True if value is True else None
        case "number":
            return _bounded(schema, value)
        case "integer" if "maximum" in schema:
            number = _bounded(schema, value)
            return int(number) if number is not None else None
        case "integer":
            return value if _is_position(value) else None
        case "array":
            return _texts(name, schema.get("maxItems", TEXTS_MAX), value)
    return value


def text_of(value: object) -> str | None:
    """Return a text without surrounding blanks. None if it is blank or not a text."""
    return value.strip() or None if isinstance(value, str) else None


def _bounded(schema: Mapping[str, Any], value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    bounded: float = max(schema.get("minimum", value), min(value, schema.get("maximum", value)))
    return bounded


def _is_position(value: object) -> bool:
    """Return True for a position of the log.

    Positions are not moved to the nearest bound, since that would mean other events.
    """
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < POSITION_MAX


def _texts(name: str, count_max: int, value: object) -> list[str] | None:
    given = [value] if isinstance(value, str) else value
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise ToolInputError(f"{name} must be a string or a list of strings")
    if len(given) > count_max:
        raise ToolInputError(f"{name} has {len(given)} items, but at most {count_max} are allowed")
    return list(dict.fromkeys(text.strip() for text in given if text.strip()))
