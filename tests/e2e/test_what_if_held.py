"""What-if in its middle: places that are taken, readers that leave, a server that stops, Ctrl-C.

The answers are larger than what fits between a server and a reader that does not read on, so that
each stays in its middle for as long as a test wants.
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
"""A decision that differs takes more than this: a hundred of them fit between no two processes."""
TOOLS = {"subagents": {"tools": {"deny": ["x" * LINE_CHARACTERS]}}}
LARGE = {"patch": [{"op": "add", "path": "/tools", "value": TOOLS}], "only": ["different-plan"]}
SMALL = {"patch": [], "only": ["newly-refused"]}
SECONDS_MAX = 30
STOPPING, KILLED = 2, 5
"""What the command ends with when its server does."""


@pytest.fixture(scope="module")
def one_server(databases: Databases) -> Iterator[Server]:
    """On a generated history, which is of another configuration than its own."""
    url = databases.create()
    generate(url, events=EVENTS, seed=5)
    config = configuration(agent("main", default=True))
    with new_place() as place:
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
    """Running, whatever the test before has made of it."""
    if one_server.process is None or one_server.process.poll() is not None:
        one_server.start()
    return one_server


@contextmanager
def held(server: Server) -> Iterator[Iterator[dict[str, Any]]]:
    """The lines behind the first one, once that is here."""
    with ExitStack() as stack:
        answer = wait_for("a place", lambda: _placed(server, stack))
        lines = map(json.loads, answer.iter_lines())
        assert next(lines)["verdict"] == "different-plan"
        yield lines


def _placed(server: Server, stack: ExitStack) -> httpx2.Response | None:
    """Whoever had the place before has left, but the server may not know it yet."""
    with ExitStack() as asking:
        answer = asking.enter_context(server.http.stream("POST", "/v1/what-if", json=LARGE))
        if answer.status_code == 429:
            return None
        assert answer.status_code == 200
        stack.push(asking.pop_all())
        return answer


def all_places_are_free(server: Server) -> bool:
    """As many as there are answer at once."""
    with ExitStack() as stack:
        answers = [
            stack.enter_context(server.http.stream("POST", "/v1/what-if", json=SMALL))
            for _ in range(AT_ONCE_MAX)
        ]
        return all(one.status_code == 200 for one in answers)


def is_stopping(server: Server) -> bool:
    """It is ready no more, or is not even spoken to."""
    try:
        return server.http.get("/readyz").status_code != 200
    except httpx2.TransportError:
        return True


@contextmanager
def started_command(server: Server, *more: str) -> Iterator["subprocess.Popen[str]"]:
    """`spawnlog what-if` in its middle: nobody reads what it prints."""
    wanted = server.data_dir.with_name("large.json")
    argv = ["what-if", "--patch", str(wanted), "--output", "jsonl", "--url", server.url, *more]
    with subprocess.Popen(
        [sys.executable, "-m", MAIN, *argv],
        cwd=ROOT,
        env={**os.environ, "SPAWNLOG_TOKEN": server.token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background may have the signal ignored for all below.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout is not None
            assert os.read(process.stdout.fileno(), 1) == b"{"
            yield process
        finally:
            process.kill()


def test_a_question_too_many_is_told_when_to_ask_again(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(AT_ONCE_MAX):
            stack.enter_context(held(server))
        answer = server.http.post("/v1/what-if", json=SMALL)
        problem = problem_of(answer, 429, "what_if_busy")
        assert answer.headers["retry-after"] == "1"
        assert (problem["retryable"], problem["retryAfterMs"]) == (True, 1000)
        # What is wrong with a question is said all the same, and takes no place.
        problem_of(server.http.post("/v1/what-if", json={}), 422, "invalid_request")
        refused = subprocess.run(
            [sys.executable, "-m", MAIN, "what-if", "--set", "/tools={}", "--url", server.url],
            cwd=ROOT,
            env={**os.environ, "SPAWNLOG_TOKEN": server.token},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "ask again when one of them is done" in refused.stderr
        # Everything else is answered meanwhile.
        assert server.http.get("/v1/runs").status_code == 200
    wait_for("both places", lambda: all_places_are_free(server))


def test_who_leaves_in_the_middle_frees_the_place(server: Server) -> None:
    for _ in range(3 * AT_ONCE_MAX):
        with held(server):
            pass
    wait_for("all places", lambda: all_places_are_free(server))


@pytest.mark.nightly
def test_who_is_slow_is_given_the_whole_answer(server: Server) -> None:
    with held(server) as lines:
        assert not is_stopping(server)
        *behind, last = lines
    verdicts = [one for one in behind if "verdict" in one]
    assert len(verdicts) + 1 == last["totals"]["byVerdict"]["different-plan"] > DECISIONS_MIN


@pytest.mark.nightly
def test_a_server_that_stops_says_so_to_who_reads_on(server: Server) -> None:
    with held(server) as lines:
        server.terminate()
        wait_for("it to stop", lambda: is_stopping(server))
        *verdicts, last = lines
    assert last == {"failure": {"detail": "the service is stopping; ask again in a moment"}}
    assert not any("totals" in one for one in verdicts)
    assert server.wait_exit() == 0


@pytest.mark.nightly
@pytest.mark.kill
@pytest.mark.parametrize("status", nightly_but([STOPPING, KILLED], [KILLED]))
def test_a_command_whose_server_goes_says_so(server: Server, status: int) -> None:
    with started_command(server, "--fail-on", "different-plan") as process:
        if status == STOPPING:
            server.terminate()
            wait_for("it to stop", lambda: is_stopping(server))
        else:
            server.kill()
        shown, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == status, errors
    (error,) = errors.splitlines()
    said = "the service is stopping" if status == STOPPING else "was lost"
    assert error.startswith("error: ")
    assert said in error
    # What there was of verdicts is whole lines, and no totals.
    assert all("verdict" in json.loads(line) for line in ("{" + shown).splitlines())
    if status == STOPPING:
        assert server.wait_exit() == 0


@pytest.mark.nightly
@pytest.mark.kill
def test_ctrl_c_ends_the_command_quietly_and_frees_the_place(server: Server) -> None:
    for _ in range(AT_ONCE_MAX + 1):
        with started_command(server) as process:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 130
        assert errors.strip() in ("", "Aborted!")
    wait_for("all places", lambda: all_places_are_free(server))
