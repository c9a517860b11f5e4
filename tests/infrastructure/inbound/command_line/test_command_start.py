"""The command as a process: its start and its imports."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.recorded_api import RecordedApi, Reply

PROJECT = Path(__file__).resolve().parents[4]
COMMAND = [sys.executable, "-m", "infrastructure.inbound.command_line.main"]
RUN = "11111111-0000-4000-8000-000000000001"
COMMANDS = "infrastructure.inbound.command_line.commands"
OF_SERVERS = {"fastapi", "mcp", "msgspec", "psycopg", "sqlalchemy", "starlette", "uvicorn"}
OF_REQUESTS = {"httpx2", "rich", "spawnlog.client"}

pytestmark = pytest.mark.server


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules of a process that ran the command."""
    program = (
        "import contextlib, io, sys\n"
        "from infrastructure.inbound.command_line.main import app\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    app(sys.argv[1:], prog_name='spawnlog')\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("config", "--help")])
def test_list_of_commands_loads_no_command(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert not loaded & (OF_SERVERS | OF_REQUESTS | {"pydantic"})
    assert [text for text in loaded if text.startswith(f"{COMMANDS}.")] == []


def test_command_loads_no_other_command(api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", Reply({"items": []}))
    loaded = loaded_by("run", "list", "--url", api.url)
    assert not loaded & (OF_SERVERS | {"pydantic"})
    assert {text for text in loaded if text.startswith(f"{COMMANDS}.")} == {
        f"{COMMANDS}.derived",
        f"{COMMANDS}.make_command",
    }


def test_module_runs_as_the_command() -> None:
    done = subprocess.run([*COMMAND, "--help"], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: spawnlog ")
    assert "3 refused" in done.stdout


def test_shell_gets_its_completion() -> None:
    done = subprocess.run(
        COMMAND,
        cwd=PROJECT,
        env={**os.environ, "_SPAWNLOG_COMPLETE": "complete_bash", "COMP_WORDS": "spawnlog run l",
             "COMP_CWORD": "2"},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.stdout.split() == ["list", "log"]


def test_reader_that_leaves_causes_no_traceback(api: RecordedApi) -> None:
    runs = [{"runId": RUN, "taskPreview": "x" * 150}] * 500
    api.on("GET", "/v1/runs", Reply({"items": runs}))
    with subprocess.Popen(
        [*COMMAND, "run", "list", "--url", api.url, "--output", "jsonl"],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(20)
    assert "Traceback" not in errors


@pytest.mark.parametrize(("answer", "exit_code"), [("y", 0), ("n", 2)])
def test_stop_without_exact_name_asks(answer: str, exit_code: int, api: RecordedApi) -> None:
    run = {"runId": RUN, "stage": "ended", "status": "stopped", "label": "reviewer"}
    api.on("GET", "/v1/runs", Reply({"items": [run]}))
    api.on("GET", f"/v1/runs/{RUN}", Reply(run))
    api.on("POST", f"/v1/runs/{RUN}/stop", Reply({}))
    keyboard, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [*COMMAND, "run", "stop", "last", "--url", api.url],
            cwd=PROJECT,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            os.write(keyboard, f"{answer}\n".encode())
            _, errors = process.communicate(timeout=20)
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert process.returncode == exit_code
    assert "reviewer" in errors
    assert [request.method for request in api.asked].count("POST") == (1 if answer == "y" else 0)


def test_colour_is_for_terminals_that_want_it(api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", Reply({"items": [{"runId": RUN, "status": "failed"}]}))

    def on_a_terminal(**variables: str) -> bytes:
        screen, terminal = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", **variables}
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
        try:
            subprocess.run(
                [*COMMAND, "run", "list", "--url", api.url],
                cwd=PROJECT,
                env=environment,
                stdout=terminal,
                check=True,
            )
            return os.read(screen, 65_536)
        finally:
            os.close(screen)
            os.close(terminal)

    assert b"\x1b[31mfailed" in on_a_terminal()
    plain = on_a_terminal(NO_COLOR="1")
    assert b"failed" in plain
    assert b"\x1b[31m" not in plain
