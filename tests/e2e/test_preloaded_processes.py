"""The processes that servers of tests are: each is its own, whoever else starts one at once."""

import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.servers.preloaded import (
    PreloadedProcess,
    Preloader,
    preloader,
    run_command,
)

AT_ONCE = 8
SECONDS_MAX = 30

pytestmark = [pytest.mark.server, pytest.mark.timeout(SECONDS_MAX)]


def test_threads_that_start_at_once_each_hold_their_own_process() -> None:
    together = threading.Barrier(AT_ONCE)
    with socket.create_server(("127.0.0.1", 0), backlog=AT_ONCE) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environment = {**os.environ, "SPAWNLOG_URL": url, "SPAWNLOG_TOKEN": "t" * 40}

        def started(ours: Preloader) -> PreloadedProcess:
            together.wait()
            argv = ["run", "list"]
            return ours.start(argv, environment=environment, stderr=2)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            running = list(threads.map(started, [preloader()] * AT_ONCE))
        for number, process in enumerate(running):
            process.kill()
            assert process.wait(SECONDS_MAX) == -signal.SIGKILL
            assert not any(other.poll() for other in running[number + 1 :])
            assert process.stdout is not None
            process.stdout.close()


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("--nothing-like-it", 2)])
def test_process_ends_with_all_said_and_its_status(argument: str, code: int) -> None:
    ended = run_command(argument, seconds_max=SECONDS_MAX)
    assert ended.returncode == code
    assert (ended.stdout or ended.stderr).endswith("\n")
    assert bool(ended.stderr) == (code != 0)
