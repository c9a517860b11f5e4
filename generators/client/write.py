"""Generate the generated half of the Python client; run by `make client`.

Models of answers come from datamodel-code-generator. Methods come from the OpenAPI document, and
the blocking client comes from the asynchronous one.
"""

import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generators.client.description import (
    ANY,
    Json,
    answer_names,
    python_names,
    python_words,
)
from generators.client.methods import HEAD, body_module, method_module
from generators.client.sync import blocking_modules
from infrastructure.inbound.http.openapi import document as api_document

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "client" / "spawnlog"


def generated(package: Path = PACKAGE) -> dict[str, str]:
    """Return the source of every generated module by its path in the package."""
    document = api_document()
    made = {
        "models.py": _formatted(_models(document)),
        "bodies.py": _formatted(body_module(document)),
        "async_methods.py": _formatted(method_module(document)),
    }
    sync = blocking_modules(package, made)
    return made | {name: _formatted(text) for name, text in sync.items()}


def _models(document: Json) -> str:
    """Return the source of the answer models."""
    schemas = document["components"]["schemas"]
    names = python_names(document)
    answers = {name: _model_schema(schemas[name], names) for name in sorted(answer_names(document))}
    described = {
        "openapi": document["openapi"],
        "info": {"title": "spawnlog", "version": "0"},
        "paths": {},
        "components": {"schemas": answers},
    }
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "models.py")
        source.write_text(json.dumps(described), "utf-8")
        subprocess.run(
            [
                *(sys.executable, "-W", "error", "-m", "datamodel_code_generator"),
                *("--input", str(source), "--input-file-type", "openapi"),
                *("--output", str(target), "--output-model-type", "pydantic_v2.BaseModel"),
                *("--target-python-version", "3.11", "--formatters", "builtin"),
                *("--base-class", "spawnlog.core.model.AnswerModel"),
                *("--snake-case-field", "--no-alias", "--use-annotated"),
                *(
                    "--use-schema-description",
                    "--use-single-line-docstring",
                    "--enum-field-as-literal",
                    "all",
                ),
                *("--output-datetime-class", "datetime", "--disable-timestamp"),
                *("--custom-file-header", f'{HEAD}"""Models of answers."""'),
            ],
            cwd=folder,
            check=True,
        )
        return target.read_text("utf-8")


def _model_schema(part: Any, names: Mapping[str, str]) -> Any:
    """Return a schema adapted to Python models.

    Titles are dropped because they repeat names. Ids are text. Descriptions use Python names. A
    reference to the schema of any JSON becomes that schema.
    """
    if isinstance(part, list):
        return [_model_schema(inner, names) for inner in part]
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return part
    if part.get("$ref", "").endswith(f"/{ANY}"):
        return {}
    return {
        name: {member: _model_schema(inner, names) for member, inner in value.items()}
        if name == "properties"
        else _described(value, names)
        if name == "description"
        else _model_schema(value, names)
        for name, value in part.items()
        if name != "title" and (name, value) != ("format", "uuid")
    }


def _described(text: str, names: Mapping[str, str]) -> str:
    described = python_words(text, names)
    return textwrap.fill(described, 90) if described != text else text


def _formatted(text: str) -> str:
    ruff = (sys.executable, "-m", "ruff")
    for command in (("check", "--fix-only", "--quiet"), ("format",)):
        done = subprocess.run(
            [*ruff, *command, "--stdin-filename", str(PACKAGE / "generated.py"), "-"],
            input=text,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        if done.returncode != 0:
            raise RuntimeError(f"ruff {command[0]}: {done.stderr}\n{text}")
        text = done.stdout
    return text


if __name__ == "__main__":
    for name, text in generated().items():
        (PACKAGE / name).write_text(text, "utf-8")
