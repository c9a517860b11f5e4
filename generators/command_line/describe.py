"""Generate the data behind the command line's help; run by `make docs`.

It is plain JSON, so printing help needs no models, no client and no command functions.
"""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.alias_generators import to_snake

from application.operations import OPERATIONS
from application.queries.command import PATHS, USUAL, Column, Command, Option
from application.queries.operation import PATH_NAME, Operation
from domain.values.moments import MOMENT_FORMS
from infrastructure.inbound.command_line.client.command_table import FUNCTIONS
from infrastructure.inbound.command_line.client.deferred import load
from infrastructure.inbound.command_line.client.recorded import HELP as RECORDED_HELP
from infrastructure.inbound.command_line.client.recorded import OPERATIONS as RECORDED_OPERATIONS

CHOICES_OFFERED_MAX = 5
CHOICES_NAMED_MAX = 12
MAXIMUM_SHOWN = 2**31 - 1
REPEATED = "May be repeated."
PLAIN_KINDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "flag"}
Json = dict[str, Any]


def description() -> str:
    """Return the description of the operations, as JSON."""
    described = {
        row.name: _described(row) for row in OPERATIONS if isinstance(row.command, Command)
    }
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def help_of_functions() -> str:
    """Return the first paragraph of the docstring of each command function, as JSON."""
    about = {
        words: str(inspect.getdoc(load(place))).partition("\n\n")[0].replace("\n", " ")
        for words, place in FUNCTIONS.items()
    }
    return json.dumps(about, indent=1, ensure_ascii=False) + "\n"


def _described(row: Operation) -> Json:
    command = row.command
    assert isinstance(command, Command)
    parameters = list(_parameters(row, command))
    known = {parameter["name"] for parameter in parameters}
    unknown = {name for name, option in command.options.items() if option} - known
    assert not unknown, f"{row.name}: the command has options of no parameter: {unknown}"
    flags: Json = {
        parameter["name"]: parameter.get("flag", parameter["name"]) for parameter in parameters
    }
    for parameter in parameters:
        if parameter.pop("isDescription", False):
            parameter["help"] = _in_words_of_commands(parameter["help"], flags)
    _name_moments_once(parameters)
    has_limit = row.query is not None and "limit" in row.query.model_fields
    is_paged = has_limit and "items" in _members(row.answer)
    for parameter in parameters:
        if parameter["name"] == "limit":
            parameter.setdefault("default", command.limit)
    return _without_defaults(
        {
            "method": row.method,
            "path": row.path,
            "takesKey": row.repeat == "key",
            "words": command.words,
            "help": command.help,
            "byHand": command.by_hand,
            "parameters": parameters,
            "paged": is_paged,
            "items": command.items or ("items" if is_paged else None),
            "limit": command.limit if is_paged else None,
            "columns": [_column(column) for column in command.columns],
            "fields": [_column(field) for field in command.fields],
            "done": command.done,
            "notes": dict(command.notes),
            "differs": command.differs,
            "numbered": command.numbered,
        }
    )


def _name_moments_once(parameters: list[Json]) -> None:
    """Keep the forms of a moment in the help of the first option that has them; remove them from
    others."""
    forms = f": {MOMENT_FORMS}"
    for parameter in [parameter for parameter in parameters if forms in parameter["help"]][1:]:
        parameter["help"] = parameter["help"].replace(forms, "")


def _members(answer: Any) -> set[str]:
    models = get_args(answer) or (answer,)
    return {
        name for model in models if hasattr(model, "model_fields") for name in model.model_fields
    }


def _column(column: Column) -> Json:
    changed = {
        field.name: value
        for field in fields(Column)
        if (value := getattr(column, field.name)) != field.default
    }
    return {"header": column.header, **changed}


def _without_defaults(members: Json) -> Json:
    return {
        name: value for name, value in members.items() if value not in (None, False, "", [], {})
    }


def _parameters(row: Operation, command: Command) -> Iterator[Json]:
    """Yield arguments in their order, then options in the order of the models."""
    members = {
        **{(name, "path"): (_of_path(row, name), True) for name in PATH_NAME.findall(row.path)},
        **{(name, "query"): schema for name, schema in _properties(row.query).items()},
        **{(name, "body"): schema for name, schema in _properties(row.body).items()},
    }
    described = []
    for (name, place), (schema, required) in members.items():
        usual = PATHS.get(name) if place == "path" else USUAL.get(name, Option())
        option = command.options.get(name, usual)
        if option is None:
            assert not required or command.by_hand, f"{row.name}: {name} is required"
            continue
        is_argument = place == "path" or name in command.arguments
        described.append(_parameter(name, place, schema, required, is_argument, option))
    order = [*PATH_NAME.findall(row.path), *command.arguments]
    arguments = [parameter for parameter in described if "flag" not in parameter]
    yield from sorted(arguments, key=lambda parameter: order.index(parameter["name"]))
    last = ("at", "limit", "cursor")
    options = [parameter for parameter in described if "flag" in parameter]
    yield from (parameter for parameter in options if parameter["name"] not in last)
    yield from sorted(
        (parameter for parameter in options if parameter["name"] in last),
        key=lambda parameter: last.index(parameter["name"]),
    )


def _of_path(row: Operation, name: str) -> Json:
    annotation = inspect.signature(row.handler).parameters[row.path_arguments[name]].annotation
    return TypeAdapter(annotation).json_schema()


def _properties(model: type[BaseModel] | None) -> Mapping[str, tuple[Json, bool]]:
    """Return the members of a model with schema and required flag; nested ones as `outer.inner`."""
    if model is None:
        return {}
    whole = model.model_json_schema(by_alias=True)
    return dict(_flat(whole, whole.get("$defs", {}), "", True))


def _flat(
    schema: Json, definitions: Mapping[str, Json], prefix: str, needed: bool
) -> Iterator[tuple[str, tuple[Json, bool]]]:
    required = schema.get("required", ()) if needed else ()
    for name, member in schema.get("properties", {}).items():
        plain = _plain(member, definitions)
        if "properties" in plain:
            yield from _flat(plain, definitions, f"{prefix}{name}.", name in required)
        else:
            yield f"{prefix}{name}", (plain, name in required)


def _plain(schema: Json, definitions: Mapping[str, Json]) -> Json:
    """Return a schema without references and without null."""
    if "$ref" in schema:
        found = definitions[schema["$ref"].rpartition("/")[2]]
        return {**found, **{name: member for name, member in schema.items() if name != "$ref"}}
    if "anyOf" in schema:
        kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
        rest = {name: member for name, member in schema.items() if name != "anyOf"}
        chosen = next((kind for kind in kinds if kind.get("type") == "string"), kinds[0])
        return _plain({**chosen, **rest}, definitions)
    return schema


def _parameter(
    name: str, place: str, schema: Json, required: bool, is_argument: bool, option: Option
) -> Json:
    flag = option.flag or "--" + to_snake(name.rpartition(".")[2]).replace("_", "-")
    choices = schema.get("enum") or schema.get("items", {}).get("enum") or []
    kind = _kind(schema)
    has_choice = kind == "text" and 0 < len(choices) <= CHOICES_OFFERED_MAX
    if option.offers:
        assert set(option.offers) <= set(choices), f"{name}: there are {choices}"
        choices, has_choice = list(option.offers), True
    metavar = option.metavar
    if metavar is None and kind in ("text", "texts") and not has_choice:
        metavar = "TEXT"
    elif metavar is None and kind in ("integer", "number"):
        metavar = "N"
    text = option.help or _help(schema, kind, choices)
    members = {
        "name": name,
        "in": place,
        "flag": None if is_argument else flag,
        "kind": kind,
        "help": text,
        "isDescription": option.help is None or None,
        "metavar": metavar,
        "default": option.default,
        "required": (required and option.default is None and place != "path") or None,
        "means": option.means,
        "variable": option.variable,
        "minimum": schema.get("minimum") if option.minimum is None else option.minimum,
        "maximum": _maximum(schema) if option.maximum is None else option.maximum,
        "choices": choices if has_choice else None,
        "sends": not schema.get("default", False) if kind == "flag" else None,
    }
    return {key: value for key, value in members.items() if value is not None}


def _maximum(schema: Json) -> Any:
    """Return the maximum, or None if it is too large to be worth showing."""
    maximum = schema.get("maximum")
    return maximum if maximum is not None and maximum < MAXIMUM_SHOWN else None


def _kind(schema: Json) -> str:
    match schema:
        case {"type": "array", "items": {"type": "string"}}:
            return "texts"
        case {"type": "array", "items": {"anyOf": kinds}} if {"type"} & set(kinds[0]):
            return "texts" if any(item.get("type") == "string" for item in kinds) else "json"
        case {"type": str(kind)} if kind in PLAIN_KINDS:
            return PLAIN_KINDS[kind]
        case _:
            return "json"


def _help(schema: Json, kind: str, choices: list[str]) -> str:
    text = " ".join(str(schema.get("description", "")).split())
    offered = CHOICES_OFFERED_MAX if kind == "text" else 0
    if offered < len(choices) <= CHOICES_NAMED_MAX:
        text = f"{text.removesuffix('.')}: {', '.join(choices[:-1])} or {choices[-1]}."
    if kind == "texts":
        text = f"{text.replace(' (repeatable)', '')} {REPEATED}".strip()
    return text


def _in_words_of_commands(text: str, flags: Mapping[str, Any]) -> str:
    """Replace parameter names by their options, and remove backticks."""
    return re.sub("`([^`]*)`", lambda found: str(flags.get(found[1], found[1])), text)


if __name__ == "__main__":
    RECORDED_OPERATIONS.write_text(description(), "utf-8")
    RECORDED_HELP.write_text(help_of_functions(), "utf-8")
