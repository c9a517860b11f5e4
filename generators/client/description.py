"""Read the OpenAPI document for the generators of the Python client.

The result is operations with Python names and types.
"""

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

Json = Mapping[str, Any]

OPEN_SETS = frozenset({"rule", "types"})
"""Parameters that stay `str` although the document lists their values: a newer server has more
rules and more event types."""

MOMENTS = frozenset({"at", "from", "to", "since", "until"})
"""Parameters that may also be a `datetime`, unless the document lists their values."""

ORDER_OF_REQUIRED = {"spawn": ("task", "requester")}
DEFAULTS = {"If-Match": '"*"'}
UNNAMED_SHAPES = {("run", "require"): "DependencyBody"}
"""Name of the typed dictionary for each unnamed object in bodies, by its members."""

SENT_ONCE = frozenset({"tradePageCode"})
"""POST operations without an idempotency key that must not be retried. This one uses up the code.
"""

KEY = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
ANY = "JsonValue"
"""Name of the schema that permits any JSON value."""


@dataclass(frozen=True)
class Parameter:
    """One argument of an operation. If `default` is None, the argument is required."""

    name: str
    json_name: str
    place: str
    annotation: str
    default: str | None
    description: str


@dataclass(frozen=True)
class Operation:
    """One operation of the API.

    Attributes:
        is_lines: True if the answer is lines of JSON.
        is_repeatable: True if a retry is safe.
        body_model: Name of the body schema, or None.
        item: Type of the items, if the answer is a page.
        lists: Members of the page that hold the items.
    """

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    answers: tuple[str, ...]
    is_lines: bool
    is_repeatable: bool
    body_model: str | None
    item: str = ""
    lists: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the method."""
        return python_name(self.id)

    @property
    def has_key(self) -> bool:
        """True if the operation takes an idempotency key."""
        return any(parameter.json_name == KEY for parameter in self.parameters)

    def placed(self, place: str) -> list[Parameter]:
        """Return the parameters in one place: `path`, `query`, `header` or `body`."""
        return [parameter for parameter in self.parameters if parameter.place == place]


def operations(document: Json) -> list[Operation]:
    """Return all operations, sorted by name."""
    found = [
        _operation(method, path, described, document["components"]["schemas"])
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]
    return sorted(found, key=lambda operation: operation.name)


def python_name(name: str) -> str:
    """Return the name in Python spelling: `list_runs` for `listRuns`, `from_` for `from`."""
    made = re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name)
    made = made.replace("-_", "_").removeprefix("_")
    return f"{made}_" if keyword.iskeyword(made) else made


def python_names(document: Json) -> Mapping[str, str]:
    """Return the Python names for all HTTP names that differ.

    These are operations and their routes, parameters, members of answers, and some literals.
    """
    schemas = document["components"]["schemas"]
    found = {
        member for name in answer_names(document) for member in schemas[name].get("properties", {})
    }
    routes = {}
    for operation in operations(document):
        found |= {operation.id, *(parameter.json_name for parameter in operation.parameters)}
        routes[f"{operation.method} {operation.path}"] = operation.name
    names = {name: python_name(name) for name in found if name.isalpha()}
    return {**names, **routes, "true": "True", "false": "False", f"{REPLAYED}: true": "is_replayed"}


def python_words(text: str, names: Mapping[str, str]) -> str:
    """Return a description with Python names and values in place of HTTP ones.

    Sentences about URL quoting are dropped, because the client does that.
    """

    def word(found: re.Match[str]) -> str:
        name, _, query = found[1].partition("?")
        made = "=".join(names.get(part, part) for part in name.split("="))
        used = [f"`{names.get(key, key)}`" for key in re.findall(r"(\w+)=", query)]
        return f"`{made}`{' with ' if used else ''}{' and '.join(used)}"

    text = re.sub(r" ?[^.]*`%2F`[^.]*\.", "", text)
    return re.sub("`([^`]+)`", word, re.sub(r"\bnull\b", "None", text))


def methods(document: Json) -> list[Operation]:
    """Return all operations sorted by name, with descriptions in Python names."""
    names = python_names(document)
    return [
        _in_python(operation, names, document["components"]["schemas"])
        for operation in operations(document)
    ]


def _in_python(operation: Operation, names: Mapping[str, str], schemas: Json) -> Operation:
    # Objects inside bodies are dictionaries and keep the JSON names.
    whole = {operation.body_model} if operation.body_model is not None else set()
    bodies = reachable(whole, schemas) - whole
    kept = {member for name in bodies for member in schemas[name].get("properties", {})}
    kept -= {parameter.json_name for parameter in operation.parameters}
    words = {name: word for name, word in names.items() if name not in kept}
    # An argument that is a dictionary may have the shape of a body, so keep JSON paths.
    words_of_arguments = {name: word for name, word in words.items() if "/" not in name}
    return replace(
        operation,
        description=python_words(operation.description, words),
        parameters=tuple(
            replace(parameter, description=python_words(parameter.description, words_of_arguments))
            for parameter in operation.parameters
        ),
    )


def referenced(part: Any) -> Iterator[str]:
    """Yield the names of the schemas that a part of the document refers to."""
    if isinstance(part, Mapping):
        if "$ref" in part:
            yield _last(part["$ref"])
        for value in part.values():
            yield from referenced(value)
    elif isinstance(part, list):
        for value in part:
            yield from referenced(value)


def reachable(names: set[str], schemas: Json) -> set[str]:
    """Return these schema names and all that they refer to, directly or not."""
    found: set[str] = set()
    left = set(names)
    while left:
        name = left.pop()
        found.add(name)
        left |= set(referenced(schemas[name])) - found
    return found


def answer_names(document: Json) -> set[str]:
    """Return the schema names of all answers and their parts."""
    named = {
        name
        for methods in document["paths"].values()
        for described in methods.values()
        for _, schema in successes(described)
        for name in referenced(schema)
    }
    return reachable(named, document["components"]["schemas"]) - {ANY}


def body_names(document: Json) -> set[str]:
    """Return the names of the objects inside bodies, without the bodies themselves."""
    schemas = document["components"]["schemas"]
    bodies = {
        operation.body_model
        for operation in operations(document)
        if operation.body_model is not None
    }
    inner = {name for body in bodies for name in referenced(schemas[body])}
    return (reachable(inner, schemas) | set(UNNAMED_SHAPES.values())) - {ANY}


def successes(operation: Json) -> Iterator[tuple[str, Json]]:
    """Yield the media type and schema of each successful answer."""
    for status, response in sorted(operation["responses"].items()):
        if status < "300":
            for media_type, content in response.get("content", {}).items():
                yield media_type, content["schema"]


def annotation(schema: Json, *, takes: str = "Sequence") -> str:
    """Return the Python type of a value to send. Null means "not given", so it is left out.

    Args:
        schema: Schema of the value.
        takes: Type of a list: `Sequence` in arguments, `list` in typed dictionaries.
    """
    if "$ref" in schema:
        name = _last(schema["$ref"])
        return "Any" if name == ANY else name
    if "enum" in schema:
        return f"Literal[{', '.join(repr(option) for option in schema['enum'])}]"
    if "anyOf" in schema:
        kinds = [
            annotation(option, takes=takes)
            for option in schema["anyOf"]
            if option != {"type": "null"}
        ]
        return " | ".join(dict.fromkeys(kinds))
    match schema.get("type"):
        case "array":
            return f"{takes}[{annotation(schema['items'], takes=takes)}]"
        case "object" if "properties" in schema:
            return UNNAMED_SHAPES[tuple(schema["properties"])]
        case "object":
            return "Mapping[str, Any]"
        case "string":
            return "str"
        case None:
            return "Any"
        case other:
            return {"integer": "int", "number": "float", "boolean": "bool"}[other]


def _operation(method: str, path: str, described: Json, schemas: Json) -> Operation:
    body = described.get("requestBody")
    parameters = [
        _parameter(parameter)
        for parameter in described.get("parameters", ())
        if parameter["name"] != KEY
    ]
    body_model = None
    if body is not None:
        body_model = _last(body["content"]["application/json"]["schema"]["$ref"])
        parameters += _members(schemas[body_model])
    parameters += [
        _parameter(parameter)
        for parameter in described.get("parameters", ())
        if parameter["name"] == KEY
    ]
    wanted = ORDER_OF_REQUIRED.get(described["operationId"], ())
    required = {
        parameter.name
        for parameter in parameters
        if parameter.default is None and parameter.place != "path"
    }
    parameters.sort(
        key=lambda parameter: (
            parameter.place != "path",
            parameter.name not in required,
            wanted.index(parameter.name) if parameter.name in wanted else 0,
            parameter.name if parameter.place == "query" and parameter.name not in required else "",
        )
    )
    answers, is_lines = _answers(described)
    item, lists = _items(schemas[answers[0]]) if answers[0] in schemas else ("", ())
    has_key = any(parameter.json_name == KEY for parameter in parameters)
    id_ = described["operationId"]
    return Operation(
        id=id_,
        method=method.upper(),
        path=path,
        summary=described["summary"],
        description=described.get("description", ""),
        parameters=tuple(parameters),
        answers=answers,
        is_lines=is_lines,
        is_repeatable=method == "get" or has_key or (method == "post" and id_ not in SENT_ONCE),
        body_model=body_model,
        item=item,
        lists=lists,
    )


def _parameter(described: Json) -> Parameter:
    name, schema = described["name"], described["schema"]
    kind = annotation(schema)
    if name in OPEN_SETS:
        kind = "Sequence[str]" if schema["type"] == "array" else "str"
    elif name == "wait":
        kind = "float"
    elif name in MOMENTS and "enum" not in schema:
        kind = "str | datetime"
    default = DEFAULTS.get(name)
    if default is None and not described.get("required", False):
        is_list = schema["type"] == "array"
        default = "()" if is_list else "None"
        kind = kind if is_list else f"{kind} | None"
    return Parameter(
        python_name(name), name, described["in"], kind, default, described.get("description", "")
    )


def _members(schema: Json) -> list[Parameter]:
    """Return the members of a body as parameters. The body of a merge patch is one parameter."""
    if schema.get("additionalProperties") is True:
        text = schema["description"].partition(": ")[2]
        return [Parameter("changes", "", "body", "Mapping[str, Any]", None, _capitalized(text))]
    found = []
    required = set(schema.get("required", ()))
    for name, member in schema["properties"].items():
        kind = annotation(member)
        if kind == "RequesterBody":
            kind = "str | RequesterBody"
        elif name in MOMENTS:
            kind = "str | datetime"
        is_required = name in required
        found.append(
            Parameter(
                python_name(name),
                name,
                "body",
                kind if is_required else f"{kind} | None",
                None if is_required else "None",
                member.get("description", ""),
            )
        )
    return found


def _answers(described: Json) -> tuple[tuple[str, ...], bool]:
    """Return the model names of an answer, and whether the answer is lines."""
    found: list[str] = []
    for media_type, schema in successes(described):
        if media_type == "application/x-ndjson":
            return tuple(referenced(schema)), True
        if media_type == "application/json":
            found += referenced(schema)
    return tuple(dict.fromkeys(found)) or ("str",), False


def _items(schema: Json) -> tuple[str, tuple[str, ...]]:
    """Return the item type of a page and the members that hold items; empty if it is not a page.

    A page has `nextCursor` or `nextAfter`.
    """
    members = schema.get("properties", {})
    if not {"nextCursor", "nextAfter"} & set(members):
        return "", ()
    lists = {
        name: member["items"] for name, member in members.items() if _is_list_of_objects(member)
    }
    if "items" in lists:
        lists = {"items": lists["items"]}
    (kind,) = {annotation(items) for items in lists.values()}
    return kind, tuple(lists)


def _is_list_of_objects(schema: Json) -> bool:
    if schema.get("type") != "array":
        return False
    return "$ref" in schema["items"] or any(
        "$ref" in option for option in schema["items"].get("anyOf", ())
    )


def _last(reference: str) -> str:
    return reference.rpartition("/")[2]


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
