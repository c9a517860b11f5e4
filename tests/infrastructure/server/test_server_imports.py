"""Libraries that a server loads only when a request needs them."""

import asyncio
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from starlette.requests import Request

from infrastructure.contract.errors import UserError
from infrastructure.inbound.http.openapi import document
from infrastructure.inbound.http.responses.document import ServedDocument
from infrastructure.server.migration import migrate_in_process

PROJECT = Path(__file__).parents[3]
FOR_MODELS = {"fastmcp", "jsonschema", "mcp", "mcp_types", "openai", "pydantic_ai"}
FOR_THE_DOCUMENT = {"fastapi", "email_validator"}
FOR_OTHERS = {"alembic", "mako", "opentelemetry", "prometheus_client", "rich", "sqlalchemy"}


def loaded_by(modules: str) -> set[str]:
    """Return the modules of a process that imports these."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {modules}; print(*sys.modules)"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.process
def test_local_command_loads_no_server() -> None:
    loaded = loaded_by("infrastructure.server.operations")
    assert loaded & {"starlette", "uvicorn", "infrastructure.server.compose"} == set()


@pytest.mark.process
def test_start_loads_no_library_of_later_requests() -> None:
    loaded = loaded_by("infrastructure.server.compose, infrastructure.server.lifecycle")
    assert loaded & (FOR_MODELS | FOR_THE_DOCUMENT | FOR_OTHERS) == set()


@pytest.mark.process
def test_start_builds_no_view_and_no_body() -> None:
    program = (
        "import infrastructure.server.compose\n"
        "from application.log.view import View\n"
        "from domain.values.body import Body\n"
        "models = [*View.__subclasses__(), *Body.__subclasses__()]\n"
        "print(len(models) > 50, [one for one in models if one.__pydantic_complete__])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True)
    assert done.stdout == b"True []\n"


@pytest.mark.process
def test_migration_leaves_no_library_in_memory(empty_database_url: str) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from infrastructure.server.database import migrate_database\n"
        "print(migrate_database(sys.argv[1], Path()))\n"
        "sys.exit(sorted({'alembic', 'sqlalchemy', 'mako'} & sys.modules.keys()) or None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, empty_database_url],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("the database was migrated from empty to revision ")


@pytest.mark.process
def test_migration_that_ends_early_is_told() -> None:
    with pytest.raises(UserError, match=r"^it failed: the migration ended early \(status 1\)"):
        migrate_in_process("mysql://nowhere", "it failed")


async def test_two_first_requests_share_one_document() -> None:
    served = ServedDocument()
    request = Request({"type": "http", "method": "GET", "path": "/openapi.json", "headers": []})
    first, second = await asyncio.gather(served.answer(request), served.answer(request))
    assert first.body is second.body
    described = orjson.loads(first.body)
    assert described["paths"] == document()["paths"]
