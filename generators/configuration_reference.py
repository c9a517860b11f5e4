"""Generate the reference in docs/configuration.md; run by `make docs`.

Types, limits and defaults come from the models in `domain/configuration`, meanings and examples
from the docstrings under their fields.
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from domain.configuration.agents import (
    Agent,
    AgentDefaults,
    AgentEntry,
    Agents,
    AgentSubagents,
    SubagentDefaults,
)
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.configuration.hooks import Hook, HooksSection
from domain.configuration.model_runtime import McpServer, ModelRuntime
from domain.configuration.models import ModelChoice, Models, ProviderModel, TieredPrice
from domain.configuration.runtimes import (
    CommandRuntime,
    ExternalRuntime,
    OpenClawRuntime,
    ScriptedRuntime,
    ScriptedStep,
    WorkerRuntime,
)
from domain.configuration.session import SessionSection
from domain.configuration.settings import Settings, Token
from domain.configuration.telemetry import TelemetrySection
from domain.configuration.tools import Tools
from domain.configuration.webhooks import AnnounceSection, Webhook

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
START, END = "<!-- reference -->\n", "<!-- /reference -->\n"
HEAD = "| key | type | default | meaning | example |\n|---|---|---|---|---|\n"
EXAMPLE = re.compile(r"\s*Example: (`.*`)$", re.S)

TABLES: Mapping[str, type[BaseModel]] = {
    "`agents`": Agents,
    "`agents.list[]`": Agent,
    "`agents.defaults`": AgentDefaults,
    "`agents.defaults.subagents`": SubagentDefaults,
    "`agents.list[].subagents`": AgentSubagents,
    "`model` of an agent or its sub-agents": ModelChoice,
    "`contextScripts.run[]`": ContextScript,
    "`runtime` of type `command`": CommandRuntime,
    "`runtime` of type `model`": ModelRuntime,
    "`mcpServers.<name>` of a `model` runtime": McpServer,
    "`runtime` of type `external`": ExternalRuntime,
    "`runtime` of type `scripted`": ScriptedRuntime,
    "`steps[]` of a `scripted` runtime": ScriptedStep,
    "`runtime` of type `worker`": WorkerRuntime,
    "`runtime` of type `embedded` or `acp`": OpenClawRuntime,
    "`tools`": Tools,
    "`models`": Models,
    "`models.providers.<name>.models[]`": ProviderModel,
    "`tieredPricing[]` of a cost": TieredPrice,
    "`session`": SessionSection,
    "`spawnlog`": Settings,
    "`spawnlog.tokens[]`": Token,
    "`spawnlog.announce`": AnnounceSection,
    "`spawnlog.announce.webhooks[]`": Webhook,
    "`spawnlog.hooks`": HooksSection,
    "A hook": Hook,
    "`spawnlog.telemetry`": TelemetrySection,
}
"""The tables of the page. The keys of other models are in the table of the model that contains
them.
"""

INSTEAD = {AgentEntry.__name__: Agent.__name__}
"""Models whose keys are in the table of another one."""
SECRET = "SecretReference"
WRITTEN = {"TokenSource": "text or object", "ModelChoice": "text or object"}
"""Types of models that a file may write in another form than as an object."""
Json = dict[str, Any]


def reference(page: str) -> str:
    """Return the page with an up-to-date reference."""
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    assert end, "docs/configuration.md has lost the markers of its reference"
    return f"{before}{start}\n{tables()}\n{end}{after}"


def tables() -> str:
    """Return all tables of the reference."""
    written = {model.__name__ for model in TABLES.values()}
    parts = []
    for heading, model in TABLES.items():
        rows = list(_rows(model, "", written))
        parts.append(f"### {heading}\n\n{HEAD}" + "".join(rows))
    return "\n".join(parts)


@cache
def schemas() -> Mapping[str, Json]:
    """Return the JSON schemas of all models of a configuration, by name."""
    whole = Configuration.model_json_schema(by_alias=True)
    return {**whole.pop("$defs"), Configuration.__name__: whole}


@cache
def models() -> Mapping[str, type[BaseModel]]:
    """Return all models of a configuration, by name."""
    found: dict[str, type[BaseModel]] = {}
    waiting: list[type[BaseModel]] = [BaseModel]
    while waiting:
        for model in waiting.pop().__subclasses__():
            waiting.append(model)
            if model.__module__.startswith("domain.configuration."):
                found[model.__name__] = model
    return {name: found[name] for name in schemas() if name in found and name != SECRET}


def _rows(model: type[BaseModel], prefix: str, written: set[str]) -> Iterator[str]:
    schema = schemas()[model.__name__]
    described = field_texts(model)
    for name, field in model.model_fields.items():
        key = field.alias or name
        member = schema["properties"][key]
        inner = _inlined(member, written)
        if inner is not None:
            yield from _rows(models()[inner], f"{prefix}{key}.", written)
            continue
        meaning, example = described[name]
        required = key in schema.get("required", ())
        cells = (
            f"`{prefix}{key}`",
            _type(member),
            "required" if required else _default(member),
            meaning,
            example,
        )
        yield (
            "".join(f"| {cell.replace('|', chr(92) + '|')} " if cell else "| " for cell in cells)
            + "|\n"
        )


def _inlined(member: Json, written: set[str]) -> str | None:
    """Return the model whose keys are in this table, or None."""
    name = _reference(member)
    if name is None or name in written or name in INSTEAD or name in WRITTEN or name == SECRET:
        return None
    return name


def _reference(member: Json) -> str | None:
    if "$ref" in member:
        return str(member["$ref"]).rpartition("/")[2]
    kinds = [kind for kind in member.get("anyOf", ()) if kind != {"type": "null"}]
    return _reference(kinds[0]) if len(kinds) == 1 else None


@cache
def field_texts(model: type[BaseModel]) -> Mapping[str, tuple[str, str]]:
    """Return meaning and example of each field, from the docstring under it.

    Raises:
        AssertionError: A field has no docstring.
    """
    texts: dict[str, tuple[str, str]] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base.__module__.startswith("domain.configuration."):
            texts |= _own_texts(base)
    missing = model.model_fields.keys() - texts.keys()
    assert not missing, f"{model.__name__}: no docstring under {sorted(missing)}"
    return texts


def _own_texts(model: type[BaseModel]) -> dict[str, tuple[str, str]]:
    (tree,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                joined = " ".join(text.split())
                found = EXAMPLE.search(joined)
                meaning = EXAMPLE.sub("", joined).removesuffix(".")
                texts[name] = (meaning, found[1] if found else "")
    return texts


def _type(member: Json) -> str:
    """Return the type as people write it, with its limits."""
    kinds = [kind for kind in member.get("anyOf", ()) if kind != {"type": "null"}]
    limits = {**member, **(kinds[0] if len(kinds) == 1 else {})}
    name = _reference(member)
    match limits:
        case {"oneOf": [*choices]} if {"type": "string"} in choices:
            return "text, secret"
        case {"oneOf": _}:
            return "object"
        case {"enum": [*choices]}:
            return " or ".join(f"`{json.dumps(choice)}`" for choice in choices)
        case {"const": choice}:
            return f"`{json.dumps(choice)}`"
        case {"type": "array", "items": item}:
            return f"list of {_plural(_type(item))}"
        case {"type": "object", "additionalProperties": dict(item)}:
            return f"object of {_plural(_type(item))}"
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "string"}:
            return "text"
        case {"type": "integer"}:
            return _limited("whole number", limits)
        case {"anyOf": [{"type": "integer"}, {"type": "number"}]}:
            return _limited("number", limits)
    if name is not None:
        return WRITTEN.get(name, "object")
    return "object" if limits.get("type") == "object" else "anything"


def _limited(kind: str, limits: Json) -> str:
    least = limits.get("minimum", limits.get("ge"))
    most = limits.get("maximum", limits.get("le"))
    if least is None and "gt" in limits:
        return f"{kind}, more than {limits['gt']:,}, at most {most:,}"
    if least is None:
        return kind
    return f"{kind}, at least {least:,}" if most is None else f"{kind}, {least:,} to {most:,}"


def _plural(kind: str) -> str:
    plain = {
        "text": "texts",
        "text, secret": "secret texts",
        "object": "objects",
        "number": "numbers",
    }
    return plain.get(kind.partition(", at")[0] if kind.startswith("number") else kind, kind)


def _default(member: Json) -> str:
    default = member.get("default")
    if default is None or default == []:
        return ""
    if isinstance(default, bool | str):
        return f"`{json.dumps(default)}`"
    return str(default)


if __name__ == "__main__":
    PAGE.write_text(reference(PAGE.read_text("utf-8")), "utf-8")
