"""What a program pays for the client before it uses it."""

import subprocess
import sys
from pathlib import Path

import pytest

import spawnlog

PROJECT = Path(__file__).parents[2]

pytestmark = pytest.mark.process


def loaded(program: str) -> set[str]:
    """The modules that are there after a program."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_the_package_alone_loads_nothing_heavy() -> None:
    heavy = {"httpx2", "pydantic", "fastapi", "psycopg", "uvicorn", "application", "domain"}
    assert not heavy & loaded("import spawnlog")


def test_a_client_that_was_answered_has_loaded_no_part_of_a_server() -> None:
    program = (
        "from spawnlog import AsyncClient, Client\n"
        "from spawnlog.core.answer import model\n"
        "from spawnlog.core.models import MODULES\n"
        "[model(name) for name in MODULES]"
    )
    server = {"fastapi", "starlette", "psycopg", "uvicorn", "sqlalchemy", "eventsourcing", "typer"}
    assert not server & loaded(program)


def test_every_public_name_is_there() -> None:
    assert [name for name in spawnlog.__all__ if not hasattr(spawnlog, name)] == []
    assert dir(spawnlog) == spawnlog.__all__
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = spawnlog.nothing_of_the_kind
