"""Requests with one fault each, made from the operations and their models, and the expected
answers.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from application.queries.operation import Operation
from infrastructure.contract.json_values import DEPTH_MAX, VALUES_MAX
from infrastructure.inbound.http.middleware.body_limits import BODY_BYTES_MAX
from infrastructure.inbound.http.requests.endpoint import query_fields
from infrastructure.inbound.http.requests.path_parameters import (
    REVISION_MAX,
    SESSION_KEY_CHARS_MAX,
)
from tests.support.http.operations import path_of

Schema = Mapping[str, Any]
OF_EACH_TYPE: Mapping[str, Any] = {
    "null": None,
    "boolean": True,
    "integer": 7,
    "number": 0.5,
    "string": "x",
    "array": [],
    "object": {},
}
UNKNOWN = "noSuchName"
NEEDED: Mapping[str, Mapping[str, Any]] = {"/task/0": {"parallel": True}}
"""Members that a place in a body requires beside it."""
TOLD_WHOLE = ("/dependsOn/0", "/chainAfter")
"""Objects that are reported as a whole if they lack a member or have an unknown one."""
LISTS_IN_TEXT = ("types",)
"""Repeatable parameters whose values are lists, too, so that a value has no place of its own."""
ONE_OF: Mapping[str, tuple[str, str]] = {"findEvents": ("when", "running > 0")}
"""Parameters of which a request requires one."""
MOMENTS = frozenset({"at", "from", "to", "since", "until"})
EXCLUDING = {("types", "when")}
"""Parameters of which a request may have only one."""
LIMITS = {
    "string": frozenset({"maxLength", "enum", "pattern", "format"}),
    "array": frozenset({"maxItems"}),
    "integer": frozenset({"maximum"}),
    "number": frozenset({"maximum"}),
}
"""Members of a schema of which a value requires one."""
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class FaultyRequest:
    """A request and the problem that answers it. `pointers` is None if the problem has none."""

    fault: str
    status: int
    code: str
    pointers: tuple[str, ...] = ()
    path: str = ""
    params: Sequence[tuple[str, str]] = ()
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def faulty_requests(operation: Operation, names: Mapping[str, str]) -> Iterator[FaultyRequest]:
    """Yield every faulty request of an operation; `names` are values for its path that exist."""
    path = path_of(operation, names)
    shape = _Shape.of(operation.query)
    required = [
        (name, "pos:1" if name in MOMENTS else _as_text(shape.minimal(schema)))
        for name, schema in shape.required()
    ]
    content = b""
    if operation.body is not None:
        body = _Shape.of(operation.body)
        content = json.dumps(body.minimal(body.root)).encode()
        for fault in _faulty_bodies(operation, body):
            yield _on(path, required, fault)
    if operation.name in ONE_OF:
        required.append(ONE_OF[operation.name])
    for fault in _faulty_parameters(operation, shape, required):
        yield _on(path, None, fault, content)
    for fault in _faulty_paths(operation, names):
        yield _on(None, required, fault, content)
    for fault in _faulty_headers(operation):
        yield _on(path, required, fault, content)


def _on(
    path: str | None,
    params: Sequence[tuple[str, str]] | None,
    fault: FaultyRequest,
    content: bytes = b"",
) -> FaultyRequest:
    return FaultyRequest(
        fault.fault,
        fault.status,
        fault.code,
        fault.pointers,
        path if path is not None else fault.path,
        params if params is not None else fault.params,
        content or fault.content,
        {**(JSON if content or fault.content else {}), **fault.headers},
    )


def _invalid(fault: str, pointer: str, **more: Any) -> FaultyRequest:
    return FaultyRequest(fault, 422, "invalid_request", (pointer,) if pointer else (), **more)


# Paths.


def _faulty_paths(operation: Operation, names: Mapping[str, str]) -> Iterator[FaultyRequest]:
    def with_value(name: str, value: str) -> str:
        return path_of(operation, {**names, name: value})

    for name in operation.path_arguments:
        if name == "key":
            long = with_value(name, "x" * (SESSION_KEY_CHARS_MAX + 1))
            yield _invalid("key too long", "/path/key", path=long)
        elif name == "revision":
            for value in ("x", "0", "1.5", str(REVISION_MAX + 1)):
                yield _invalid(f"revision {value}", "/path/revision", path=with_value(name, value))
        elif name == "runId":
            for value in ("x", "-" * 3000, "12345678-1234-5678-1234-567812345678"):
                yield FaultyRequest(
                    f"unknown run {value[:4]}", 404, "not_found", path=with_value(name, value)
                )


# Headers.


def _faulty_headers(operation: Operation) -> Iterator[FaultyRequest]:
    if operation.repeat == "key":
        for key in ("", "x" * 256):
            headers = {"Idempotency-Key": key, **({"If-Match": "*"} if operation.if_match else {})}
            yield _invalid(f"key of {len(key)} characters", "", headers=headers)
    if operation.if_match:
        yield _invalid("no version", "/headers/If-Match")
        yield _invalid("version 1", "/headers/If-Match", headers={"If-Match": "1"})


# Query parameters.


def _faulty_parameters(
    operation: Operation, shape: "_Shape", required: Sequence[tuple[str, str]]
) -> Iterator[FaultyRequest]:
    if not operation.token:
        return
    yield _invalid("unknown parameter", f"/query/{UNKNOWN}", params=[*required, (UNKNOWN, "1")])
    repeatable = query_fields(operation.query)
    for name, schema in shape.properties(shape.root):
        others = [item for item in required if item[0] != name and (name, item[0]) not in EXCLUDING]
        pointer = f"/query/{name}"
        if name in shape.root.get("required", ()):
            yield _invalid(f"{name} missing", pointer, params=others)
        if not repeatable[name]:
            twice = [(name, "1"), (name, "1")]
            yield _invalid(f"{name} repeated", pointer, params=[*others, *twice])
        member = schema["items"] if repeatable[name] else schema
        for fault, value in shape.faulty_texts(name, member):
            is_told_whole = name in LISTS_IN_TEXT and value == UNKNOWN
            place = f"{pointer}/0" if repeatable[name] and not is_told_whole else pointer
            yield _invalid(f"{name} {fault}", place, params=[*others, (name, value)])
        if "maxItems" in schema:
            many = [(name, shape.minimal(member))] * (schema["maxItems"] + 1)
            yield _invalid(f"{name} too often", pointer, params=[*others, *many])


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# Bodies.


def _faulty_bodies(operation: Operation, shape: "_Shape") -> Iterator[FaultyRequest]:
    valid = json.dumps(shape.minimal(shape.root)).encode()
    values_max = operation.values_max or VALUES_MAX
    yield from _not_json(valid, values_max)
    yield FaultyRequest(
        "too large", 413, "too_large", headers={"Content-Length": str(BODY_BYTES_MAX + 1)}
    )
    for media_type in ("text/plain", "application/jsonp", "text/json", ""):
        yield FaultyRequest(
            f"declared as {media_type!r}",
            415,
            "not_json",
            content=valid,
            headers={"Content-Type": media_type},
        )
    missing = tuple(f"/{name}" for name, _ in shape.required())
    if missing:
        yield FaultyRequest("no body", 422, "invalid_request", missing)
    others: list[Any] = [[], None, "x", 7, [{}]]
    for value in others:
        content = json.dumps(value).encode()
        yield _invalid(f"body {content.decode()}", "", content=content)
    for place in shape.places():
        for fault, pointer, body in place.faults(shape):
            yield _invalid(fault, pointer, content=json.dumps(body).encode())


def _not_json(valid: bytes, values_max: int) -> Iterator[FaultyRequest]:
    """Yield texts that no shape is held against."""
    begin = b"{" if valid == b"{}" else valid[:-1] + b", "
    malformed = {
        "cut off": valid[:-1],
        "two texts": valid + b" {}",
        "a byte order mark": b"\xef\xbb\xbf" + valid,
        "no UTF-8": begin + b'"x": "\xff\xfe"}',
        "a surrogate in UTF-8": begin + b'"x": "\xed\xa0\x80"}',
        "half a character": begin + b'"x": "\\ud800"}',
        "half a character in a key": begin + b'"\\udc00": 1}',
        "NaN": begin + b'"x": NaN}',
        "an endless number": begin + b'"x": 1e999}',
        "a NUL in a key": begin + b'"a\\u0000": 1}',
        "too deep": begin + b'"x": ' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"}",
        "too many values": begin + b'"x": [' + b"0," * (values_max + 1) + b"0]}",
    }
    for fault, content in malformed.items():
        pointers = ("",) if fault == "a NUL in a key" else ()
        yield FaultyRequest(fault, 400, "malformed_json", pointers, content=content)
    yield FaultyRequest(
        "a NUL", 400, "malformed_json", ("/x/0",), content=begin + b'"x": ["a\\u0000"]}'
    )
    yield _invalid("a key twice", "/x/y", content=begin + b'"x": {"y": 1, "y": 1}}')


@dataclass(frozen=True)
class _Place:
    """A place in a body: `whole` returns the body that has a value there, or lacks it (`...`)."""

    pointer: str
    schema: Schema
    is_required: bool
    whole: Callable[[Any], Any]

    def faults(self, shape: "_Shape") -> Iterator[tuple[str, str, Any]]:
        """Yield each fault with its pointer and the body."""
        above = self.pointer.rpartition("/")[0]
        if self.is_required:
            result = above if above in TOLD_WHOLE else self.pointer
            yield f"{self.pointer} missing", result, self.whole(...)
        for fault, value in shape.faulty_values(self.schema):
            yield f"{self.pointer} {fault}", self.pointer, self.whole(value)
        for variant in shape.variants(self.schema):
            if variant.get("additionalProperties") is False:
                value = {**shape.minimal(variant), UNKNOWN: 1}
                result = self.pointer if self.pointer in TOLD_WHOLE else f"{self.pointer}/{UNKNOWN}"
                yield f"{self.pointer}/{UNKNOWN} unknown", result, self.whole(value)


@dataclass(frozen=True)
class _Shape:
    """The JSON schema of a model."""

    root: Schema
    definitions: Schema

    @classmethod
    def of(cls, model: Any) -> "_Shape":
        """Return the shape of a model; for None, that of an object without members."""
        schema = {"properties": {}} if model is None else model.model_json_schema()
        return cls(schema, schema.get("$defs", {}))

    def variants(self, schema: Schema) -> list[Schema]:
        """Return the alternatives of a schema, references resolved."""
        if "$ref" in schema:
            return self.variants(self.definitions[schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            return [variant for inner in schema["anyOf"] for variant in self.variants(inner)]
        # A list of names need not say that they are texts.
        return [{"type": "string", **schema} if "enum" in schema else schema]

    def properties(self, schema: Schema) -> list[tuple[str, Schema]]:
        """Return the members of an object."""
        return list(schema.get("properties", {}).items())

    def required(self) -> list[tuple[str, Schema]]:
        """Return the members that must be there."""
        needed = self.root.get("required", ())
        return [(name, schema) for name, schema in self.properties(self.root) if name in needed]

    def minimal(self, schema: Schema) -> Any:
        """Return the least value that fits."""
        (variant, *_) = self.variants(schema)
        if "enum" in variant:
            return variant["enum"][0]
        if "properties" in variant:
            needed = variant.get("required", ())
            return {
                name: self.minimal(inner)
                for name, inner in self.properties(variant)
                if name in needed
            }
        match variant.get("type"):
            case "string":
                return "x" * max(1, variant.get("minLength", 0))
            case "integer" | "number":
                return variant.get("minimum", 1)
            case "array":
                return [self.minimal(variant["items"])] * variant.get("minItems", 0)
            case "boolean":
                return False
        return {}

    def places(self) -> Iterator[_Place]:
        """Yield every place of a body, the body itself first."""
        yield _Place("", self.root, False, lambda value: value)
        yield from self._places_in(self.root, "", lambda value: value)

    def _places_in(
        self, schema: Schema, pointer: str, whole: Callable[[Any], Any]
    ) -> Iterator[_Place]:
        base = self.minimal(schema) if "properties" in schema else {}
        for name, member in self.properties(schema):

            def with_member(value: Any, name: str = name) -> Any:
                changed = copy.copy(base)
                if value is ...:
                    del changed[name]
                else:
                    changed[name] = value
                return whole(changed)

            place = f"{pointer}/{name}"
            yield _Place(place, member, name in schema.get("required", ()), with_member)
            yield from self._places_below(member, place, with_member)

    def _places_below(
        self, schema: Schema, pointer: str, whole: Callable[[Any], Any]
    ) -> Iterator[_Place]:
        for variant in self.variants(schema):
            if variant.get("type") == "array":

                def in_list(value: Any) -> Any:
                    return {**whole([value]), **NEEDED.get(f"{pointer}/0", {})}

                yield _Place(f"{pointer}/0", variant["items"], False, in_list)
                yield from self._places_below(variant["items"], f"{pointer}/0", in_list)
            else:
                yield from self._places_in(variant, pointer, whole)

    def faulty_values(self, schema: Schema) -> Iterator[tuple[str, Any]]:
        """Yield values that a schema does not permit."""
        variants = self.variants(schema)
        types = {variant["type"] for variant in variants if "type" in variant}
        if any("type" not in variant for variant in variants):
            return
        if "number" in types:
            types.add("integer")
        for kind, value in OF_EACH_TYPE.items():
            if kind not in types and not (kind == "number" and "integer" in types):
                yield f"as {kind}", value
        if types & {"integer"} and "number" not in types:
            yield "as a fraction", 0.5
        for variant in variants:
            yield from self._beyond_limits(variant)

    def _beyond_limits(self, variant: Schema) -> Iterator[tuple[str, Any]]:
        if "enum" in variant:
            yield "not among the values", UNKNOWN
        if "pattern" in variant:
            yield "not of the pattern", "\u00e9\n"
        if "maxLength" in variant:
            yield "too long", "x" * (variant["maxLength"] + 1)
        if variant.get("minLength", 0) > 0:
            yield "too short", "x" * (variant["minLength"] - 1)
        if "minimum" in variant:
            yield "too small", variant["minimum"] - 1
        if "maximum" in variant:
            yield "too great", variant["maximum"] + 1
        if "maxItems" in variant:
            yield "too many", [self.minimal(variant["items"])] * (variant["maxItems"] + 1)

    def faulty_texts(self, name: str, schema: Schema) -> Iterator[tuple[str, str]]:
        """Yield texts of a URL that a schema does not permit."""
        variants = [variant for variant in self.variants(schema) if variant.get("type") != "null"]
        types = {variant.get("type") for variant in variants}
        if types <= {"integer", "boolean"}:
            yield from (("empty", ""), ("a word", "x"), ("no digit", "²"), ("a fraction", "1.5"))
        for variant in variants:
            for fault, value in self._beyond_limits(variant):
                yield fault, _as_text(value)
        if name in MOMENTS and not any("enum" in variant for variant in variants):
            yield "of no moment", "yesterday"
        if name == "wait":
            yield "of no duration", "1y"
        if "enum" in schema and "anyOf" in schema:
            yield "not among the values", UNKNOWN


def unlimited_values(model: Any) -> list[str]:
    """Return the pointers of texts, lists and numbers of a model that have no limit."""
    shape = _Shape.of(model)
    return [
        place.pointer
        for place in shape.places()
        for variant in shape.variants(place.schema)
        if LIMITS.get(variant.get("type", ""), frozenset()).isdisjoint(variant)
        and variant.get("type") in LIMITS
    ]
