"""An outside generator reads the description that the server gives without a warning, and makes of
it the models that the client has."""

import importlib.util
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from infrastructure.inbound.http.openapi import BODIES
from spawnlog.core.answer import model
from spawnlog.core.models import MODULES
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

MODELS: dict[str, type[BaseModel]] = {name: model(name) for name in MODULES} | {
    one.__name__: one for one in BODIES
}


@pytest.fixture(scope="module")
def generated(house: House, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The models that the generator makes of the served description."""
    folder = tmp_path_factory.mktemp("generated")
    document, written = folder / "openapi.json", folder / "models.py"
    document.write_bytes(house.http.get("/openapi.json").content)
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "datamodel_code_generator"),
            *("--input", str(document), "--input-file-type", "openapi"),
            *("--output", str(written), "--output-model-type", "pydantic_v2.BaseModel"),
            *("--target-python-version", "3.11", "--use-annotated", "--formatters", "builtin"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    spec = importlib.util.spec_from_file_location("generated_models", written)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_generated_model_has_the_members_of_the_clients(generated: ModuleType) -> None:
    different: dict[str, Any] = {}
    for name, ours in all_models().items():
        made = shape(getattr(generated, name))
        if made != shape(ours):
            different[name] = {"generated": made, "ours": shape(ours)}
    assert different == {}


def test_no_generated_model_is_one_that_the_client_has_not(generated: ModuleType) -> None:
    document = {
        name
        for name, one in vars(generated).items()
        if isinstance(one, type)
        and issubclass(one, BaseModel)
        and one.__module__ == generated.__name__
        and name.endswith(("View", "Answer", "Summary", "Body"))
    }
    assert document - {*all_models()} == set()


def all_models() -> dict[str, type[BaseModel]]:
    """The models of answers and bodies, and those that stand in them."""
    found = dict(MODELS)
    waiting = list(MODELS.values())
    while waiting:
        for field in waiting.pop().model_fields.values():
            for one in models_in(field.annotation):
                if one.__name__ not in found:
                    found[one.__name__] = one
                    waiting.append(one)
    return found


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models of an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    arguments = getattr(annotation, "__args__", ())
    return [one for argument in arguments for one in models_in(argument)]


def shape(one: type[BaseModel]) -> dict[str, tuple[bool, frozenset[str]]]:
    """The members of a model by their names in JSON: whether one must be there, and of which JSON
    types it may be. What may be left out may be null for the generator, which is not compared."""
    schema = {"properties": {}} | TypeAdapter(one).json_schema(by_alias=True)
    required = set(schema.get("required", ()))
    left_out: dict[str, set[str]] = {
        name: set() if name in required else {"null"} for name in schema["properties"]
    }
    return {
        name: (name in required, frozenset(types(part, schema) - left_out[name]))
        for name, part in schema["properties"].items()
    }


def types(part: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """The JSON types of a schema; all of them are `any`."""
    if "$ref" in part:
        return types(schema["$defs"][part["$ref"].rpartition("/")[2]], schema)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in part:
            return {name for one in part[choice] for name in types(one, schema)}
    if "const" in part or "enum" in part:
        values = part.get("enum", [part.get("const")])
        return {json_type(value) for value in values}
    return {str(part["type"])} if "type" in part else {"any"}


def json_type(value: object) -> str:
    """The JSON type of a value."""
    return {"str": "string", "int": "integer", "NoneType": "null", "bool": "boolean"}[
        type(value).__name__
    ]


def test_the_comparison_sees_what_differs() -> None:
    ours = shape(MODELS["HealthAnswer"])
    assert json.dumps(sorted(ours)) == '["status", "version"]'
    assert ours != shape(MODELS["ReadinessAnswer"])
