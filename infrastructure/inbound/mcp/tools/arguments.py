"""Arguments of tools: a model is both the schema that is shown and the way in which a call is read.

A call is read as leniently as models need it. What has another type counts as left out, save where
something would be done to the wrong run.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from infrastructure.inbound.mcp.tools.call import ToolInputError

POSITION_MAX = 2**62
TEXTS_MAX = 50
TARGET = (
    "Which sub-agent: the number in the list, its label or the beginning of it, its session key,"
    " its run id or the beginning of it, or last."
)
OWN_SESSION = "The session, by its key or id. Without one your own."

Properties = Mapping[str, Mapping[str, Any]]


class ToolArguments(BaseModel):
    """Arguments of a tool: camelCase in a call, snake_case in Python."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


def number(default: float, least: float, most: float, description: str) -> Any:
    """A field for a number: the nearest bound counts for one beyond."""
    return Field(default, ge=least, le=most, description=description)


def one_of(words: tuple[str, ...], default: str, description: str) -> Any:
    """A field for one of these words, which the schema lists; the tool judges any other text."""
    return Field(default, description=description, json_schema_extra={"enum": list(words)})


def properties_of(model: type[BaseModel]) -> Properties:
    """Return the JSON schemas of the fields of a model, as models are shown them."""
    schema = model.model_json_schema(by_alias=True)
    return {name: _shown(one) for name, one in schema.get("properties", {}).items()}


def _shown(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema without title, default and null: an optional argument is left out."""
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    whole = {**schema, **choices[0]} if len(choices) == 1 else schema
    hidden = ("title", "default", "examples", *(("anyOf",) if len(choices) == 1 else ()))
    return {name: value for name, value in whole.items() if name not in hidden}


def read_arguments(
    properties: Properties, required: tuple[str, ...], arguments: Mapping[str, object]
) -> dict[str, Any]:
    """Return the arguments that can be used.

    Raises:
        ToolInputError: A required one is missing, or a list of texts is none or too long.
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
    """Return a text without the blanks around it; None for a blank one, and for what is no text."""
    return value.strip() or None if isinstance(value, str) else None


def _bounded(schema: Mapping[str, Any], value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    bounded: float = max(schema.get("minimum", value), min(value, schema.get("maximum", value)))
    return bounded


def _is_position(value: object) -> bool:
    """Return True for a position of the log: the nearest one to another number means others."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < POSITION_MAX


def _texts(name: str, count_max: int, value: object) -> list[str] | None:
    given = [value] if isinstance(value, str) else value
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ToolInputError(f"{name} must be a text or a list of texts")
    if len(given) > count_max:
        raise ToolInputError(f"{name} has {len(given)} texts and may have {count_max}")
    return list(dict.fromkeys(one.strip() for one in given if one.strip()))
