"""The OpenAPI document as the generators of the Python client read it: operations, with names and
types of Python."""

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

Json = Mapping[str, Any]

OPEN_SETS = frozenset({"rule", "types"})
"""Parameters that are texts in Python although the document lists their values: a newer server has
more rules and more types of events."""

MOMENTS = frozenset({"at", "from", "to", "since", "until"})
"""Parameters that may be a `datetime`, unless the document lists their values."""

ORDER_OF_REQUIRED = {"spawn": ("task", "requester")}
DEFAULTS = {"If-Match": '"*"'}
UNNAMED_SHAPES = {("run", "require"): "DependencyBody"}
"""Objects in bodies that the document does not name, by their members."""

SENT_ONCE = frozenset({"tradePageCode"})
"""A POST without an idempotency key that must not be repeated: the first one uses up the code."""

KEY = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
ANY = "JsonValue"
"""The schema that permits any JSON."""


@dataclass(frozen=True)
class Parameter:
    """One argument of an operation. `default` is None if the argument is required."""

    name: str
    json_name: str
    place: str
    annotation: str
    default: str | None
    description: str


@dataclass(frozen=True)
class Operation:
    """One operation. `item` is the type of an item and `lists` are the members that hold them, if
    the operation answers with a page; `body_model` is the schema of its body."""

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
        """Return True if the operation takes an idempotency key."""
        return any(one.json_name == KEY for one in self.parameters)

    def placed(self, place: str) -> list[Parameter]:
        """Return the parameters in the path, query, headers or body."""
        return [one for one in self.parameters if one.place == place]


def operations(document: Json) -> list[Operation]:
    """Return all operations by their names."""
    found = [
        _operation(method, path, described, document["components"]["schemas"])
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]
    return sorted(found, key=lambda one: one.name)


def python_name(name: str) -> str:
    """Return the name in Python's spelling: `listRuns` is `list_runs`, `from` is `from_`."""
    made = re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name)
    made = made.replace("-_", "_").removeprefix("_")
    return f"{made}_" if keyword.iskeyword(made) else made


def python_names(document: Json) -> Mapping[str, str]:
    """Return the words of Python for those of HTTP that differ: names of operations with their
    routes, of parameters and of members of answers."""
    schemas = document["components"]["schemas"]
    found = {name for one in answer_names(document) for name in schemas[one].get("properties", {})}
    routes = {}
    for operation in operations(document):
        found |= {operation.id, *(one.json_name for one in operation.parameters)}
        routes[f"{operation.method} {operation.path}"] = operation.name
    names = {name: python_name(name) for name in found if name.isalpha()}
    return {**names, **routes, "true": "True", "false": "False", f"{REPLAYED}: true": "is_replayed"}


def python_words(text: str, names: Mapping[str, str]) -> str:
    """Return a description with the names and values of Python in place of those of HTTP. What is
    said about URLs, which the client writes, goes."""

    def word(found: re.Match[str]) -> str:
        name, _, query = found[1].partition("?")
        made = "=".join(names.get(part, part) for part in name.split("="))
        used = [f"`{names.get(one, one)}`" for one in re.findall(r"(\w+)=", query)]
        return f"`{made}`{' with ' if used else ''}{' and '.join(used)}"

    text = re.sub(r" ?[^.]*`%2F`[^.]*\.", "", text)
    return re.sub("`([^`]+)`", word, re.sub(r"\bnull\b", "None", text))


def methods(document: Json) -> list[Operation]:
    """Return all operations by their names, described in the words of Python."""
    names = python_names(document)
    return [
        _in_python(one, names, document["components"]["schemas"]) for one in operations(document)
    ]


def _in_python(operation: Operation, names: Mapping[str, str], schemas: Json) -> Operation:
    # Objects in bodies are dictionaries with the names of JSON.
    whole = {operation.body_model} if operation.body_model is not None else set()
    bodies = reachable(whole, schemas) - whole
    kept = {name for one in bodies for name in schemas[one].get("properties", {})}
    kept -= {one.json_name for one in operation.parameters}
    words = {name: word for name, word in names.items() if name not in kept}
    # A dictionary that is an argument may be in the shape of a body.
    words_of_arguments = {name: word for name, word in words.items() if "/" not in name}
    return replace(
        operation,
        description=python_words(operation.description, words),
        parameters=tuple(
            replace(one, description=python_words(one.description, words_of_arguments))
            for one in operation.parameters
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
    """Return the schemas with these names and all that they refer to."""
    found: set[str] = set()
    left = set(names)
    while left:
        name = left.pop()
        found.add(name)
        left |= set(referenced(schemas[name])) - found
    return found


def answer_names(document: Json) -> set[str]:
    """Return the names of all models of answers."""
    named = {
        name
        for methods in document["paths"].values()
        for described in methods.values()
        for _, schema in successes(described)
        for name in referenced(schema)
    }
    return reachable(named, document["components"]["schemas"]) - {ANY}


def body_names(document: Json) -> set[str]:
    """Return the names of the objects in bodies that are no body themselves."""
    schemas = document["components"]["schemas"]
    bodies = {one.body_model for one in operations(document) if one.body_model is not None}
    inner = {name for one in bodies for name in referenced(schemas[one])}
    return (reachable(inner, schemas) | set(UNNAMED_SHAPES.values())) - {ANY}


def successes(operation: Json) -> Iterator[tuple[str, Json]]:
    """Yield media type and schema of each successful answer."""
    for status, response in sorted(operation["responses"].items()):
        if status < "300":
            for media_type, content in response.get("content", {}).items():
                yield media_type, content["schema"]


def annotation(schema: Json, *, takes: str = "Sequence") -> str:
    """Return the type in Python of a value that is sent. Null means "not given" and is left out.

    Args:
        schema: The schema of the value.
        takes: Type of a list: `Sequence` in arguments, `list` in typed dictionaries.
    """
    if "$ref" in schema:
        name = _last(schema["$ref"])
        return "Any" if name == ANY else name
    if "enum" in schema:
        return f"Literal[{', '.join(repr(one) for one in schema['enum'])}]"
    if "anyOf" in schema:
        kinds = [annotation(one, takes=takes) for one in schema["anyOf"] if one != {"type": "null"}]
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
    parameters = [_parameter(one) for one in described.get("parameters", ()) if one["name"] != KEY]
    body_model = None
    if body is not None:
        body_model = _last(body["content"]["application/json"]["schema"]["$ref"])
        parameters += _members(schemas[body_model])
    parameters += [_parameter(one) for one in described.get("parameters", ()) if one["name"] == KEY]
    wanted = ORDER_OF_REQUIRED.get(described["operationId"], ())
    required = {one.name for one in parameters if one.default is None and one.place != "path"}
    parameters.sort(
        key=lambda one: (
            one.place != "path",
            one.name not in required,
            wanted.index(one.name) if one.name in wanted else 0,
            one.name if one.place == "query" and one.name not in required else "",
        )
    )
    answers, is_lines = _answers(described)
    item, lists = _items(schemas[answers[0]]) if answers[0] in schemas else ("", ())
    has_key = any(one.json_name == KEY for one in parameters)
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
    """Return the members of a body as parameters; the body of a merge patch is one of them."""
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
    """Return the names of the models of an answer, and whether each line is one."""
    found: list[str] = []
    for media_type, schema in successes(described):
        if media_type == "application/x-ndjson":
            return tuple(referenced(schema)), True
        if media_type == "application/json":
            found += referenced(schema)
    return tuple(dict.fromkeys(found)) or ("str",), False


def _items(schema: Json) -> tuple[str, tuple[str, ...]]:
    """Return the type of the items of a page, and the members that hold them. A page says where the
    next one begins."""
    members = schema.get("properties", {})
    if not {"nextCursor", "nextAfter"} & set(members):
        return "", ()
    lists = {name: one["items"] for name, one in members.items() if _is_list_of_objects(one)}
    if "items" in lists:
        lists = {"items": lists["items"]}
    (kind,) = {annotation(one) for one in lists.values()}
    return kind, tuple(lists)


def _is_list_of_objects(schema: Json) -> bool:
    if schema.get("type") != "array":
        return False
    return "$ref" in schema["items"] or any(
        "$ref" in one for one in schema["items"].get("anyOf", ())
    )


def _last(reference: str) -> str:
    return reference.rpartition("/")[2]


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
