"""The examples of docs/client.md run unchanged, on a server that they locate themselves."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import spawnlog
from generators.client.description import operations
from infrastructure.inbound.http.openapi import document
from spawnlog.core import errors
from tests.support.servers.server import Server

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "client.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)

pytestmark = pytest.mark.server


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs_as_it_stands(number: int, server: Server) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXAMPLES[number]],
        cwd=ROOT,
        env={"SPAWNLOG_DATA_DIR": str(server.data_dir), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout


def test_page_names_commands_that_are_sent_once() -> None:
    (names,) = re.findall(r"The client sends ([^.]+) once", TEXT)
    once = {operation.name for operation in operations(document()) if not operation.is_repeatable}
    assert set(re.findall(r"`(\w+)`", names)) == once


def test_every_error_and_every_list_is_told() -> None:
    result = set(re.findall(r"`(\w+)`", TEXT))
    kinds = {
        name
        for name in spawnlog.__all__
        if isinstance(getattr(errors, name, None), type)
        and issubclass(getattr(errors, name), errors.SpawnlogError)
    }
    assert kinds <= result
