"""What-if in its middle: used slots, readers that leave, a stopping server, Ctrl-C.

The answers are larger than the buffers between a server and a stopped reader, so that each stays in
its middle as long as a test wants.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import pytest

from application.queries.what_if.ask import AT_ONCE_MAX
from benchmarks.generate import generate
from tests.support.http.problems import problem_of
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import MAIN, Server
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

EVENTS = 2_000
DECISIONS_MIN = 100
LINE_CHARACTERS = 300_000
"""Minimum size of a differing decision: a hundred of them fit in no buffer."""
TOOLS = {"subagents": {"tools": {"deny": ["x" * LINE_CHARACTERS]}}}
LARGE = {"patch": [{"op": "add", "path": "/tools", "value": TOOLS}], "only": ["different-plan"]}
SMALL = {"patch": [], "only": ["newly-refused"]}
SECONDS_MAX = 30
STOPPING, KILLED = 2, 5
"""What the command ends with when its server does."""


@pytest.fixture(scope="module")
def one_server(databases: Databases) -> Iterator[Server]:
    """Yield a server on a generated history with another configuration."""
    url = databases.create()
    generate(url, events=EVENTS, seed=5)
    with new_place() as place:
        config = configuration(agent("main", default=True))
        server = Server(place / "data", config, database_url=url)
        (place / "large.json").write_text(json.dumps(LARGE["patch"]), "utf-8")
        try:
            yield server
        finally:
            server.stop()
        assert " ERROR " not in server.log(), server.log()
    databases.drop(url)


@pytest.fixture
def server(one_server: Server) -> Server:
    one_server.ensure_running()
    return one_server


@contextmanager
def held(server: Server) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield the lines after the first one, once that is here."""
    with ExitStack() as stack:
        answer = wait_for("a place", lambda: _placed(server, stack))
        lines = map(json.loads, answer.iter_lines())
        assert next(lines)["verdict"] == "different-plan"
        yield lines


def _placed(server: Server, stack: ExitStack) -> httpx2.Response | None:
    """Return the answer. The previous holder of the slot has left, but the server may not know
    it.
    """
    with ExitStack() as asking:
        answer = asking.enter_context(server.http.stream("POST", "/v1/what-if", json=LARGE))
        if answer.status_code == 429:
            return None
        assert answer.status_code == 200
        stack.push(asking.pop_all())
        return answer


def all_places_are_free(server: Server) -> bool:
    with ExitStack() as stack:
        streams = [
            server.http.stream("POST", "/v1/what-if", json=SMALL) for _ in range(AT_ONCE_MAX)
        ]
        return all(stack.enter_context(request).status_code == 200 for request in streams)


def is_stopping(server: Server) -> bool:
    """Return True if it is not ready any more, or does not answer at all."""
    try:
        return server.http.get("/readyz").status_code != 200
    except httpx2.TransportError:
        return True


def command(server: Server, *words: str) -> "subprocess.Popen[str]":
    """Start `spawnlog what-if`."""
    return subprocess.Popen(
        [sys.executable, "-m", MAIN, "what-if", "--url", server.url, *words],
        cwd=ROOT,
        env={**os.environ, "SPAWNLOG_TOKEN": server.token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # If the tests run in the background, child processes may inherit the signal as ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@contextmanager
def held_command(server: Server, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Yield the command in its middle, because its output is not read."""
    patch = str(server.data_dir.with_name("large.json"))
    with command(server, "--patch", patch, "--output", "jsonl", *words) as process:
        try:
            assert process.stdout is not None
            assert os.read(process.stdout.fileno(), 1) == b"{"
            yield process
        finally:
            process.kill()


def test_question_too_many_is_told_when_to_ask_again(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(AT_ONCE_MAX):
            stack.enter_context(held(server))
        answer = server.http.post("/v1/what-if", json=SMALL)
        problem = problem_of(answer, 429, "what_if_busy")
        assert answer.headers["retry-after"] == "1"
        assert (problem["retryable"], problem["retryAfterMs"]) == (True, 1000)
        # A wrong request is still refused, and takes no place.
        problem_of(server.http.post("/v1/what-if", json={}), 422, "invalid_request")
        with command(server, "--set", "/tools={}") as refused:
            shown, errors = refused.communicate(timeout=SECONDS_MAX)
        assert (refused.returncode, shown) == (2, "")
        assert "retry when one of them is done" in errors
        assert server.http.get("/v1/runs").status_code == 200
    wait_for("both places", lambda: all_places_are_free(server))


@pytest.mark.nightly
def test_slow_reader_is_given_the_whole_answer(server: Server) -> None:
    with held(server) as lines:
        assert not is_stopping(server)
        *behind, last = lines
    verdicts = [item for item in behind if "verdict" in item]
    assert len(verdicts) + 1 == last["totals"]["byVerdict"]["different-plan"] > DECISIONS_MIN


@pytest.mark.nightly
def test_stopping_server_says_so_in_its_answer(server: Server) -> None:
    with held(server) as lines:
        server.terminate()
        wait_for("it to stop", lambda: is_stopping(server))
        *verdicts, last = lines
    assert last == {"failure": {"detail": "the server is stopping; retry in a moment"}}
    assert not any("totals" in verdict for verdict in verdicts)
    assert server.wait_exit() == 0


@pytest.mark.nightly
@pytest.mark.kill
@pytest.mark.parametrize("status", nightly_but([STOPPING, KILLED], [KILLED]))
def test_command_whose_server_goes_says_so(server: Server, status: int) -> None:
    with held_command(server, "--fail-on", "different-plan") as process:
        if status == STOPPING:
            server.terminate()
            wait_for("it to stop", lambda: is_stopping(server))
        else:
            server.kill()
        shown, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == status, errors
    (error,) = errors.splitlines()
    output = "the server is stopping" if status == STOPPING else "was lost"
    assert error.startswith("error: ")
    assert output in error
    # The verdicts printed so far are complete lines, without totals.
    assert all("verdict" in json.loads(line) for line in ("{" + shown).splitlines())
    if status == STOPPING:
        assert server.wait_exit() == 0


@pytest.mark.nightly
@pytest.mark.kill
def test_ctrl_c_ends_the_command_and_frees_the_place(server: Server) -> None:
    for _ in range(AT_ONCE_MAX + 1):
        with held_command(server) as process:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 130
        assert errors.strip() in ("", "Aborted!")
    wait_for("all places", lambda: all_places_are_free(server))
