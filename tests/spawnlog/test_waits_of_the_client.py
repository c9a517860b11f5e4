"""How long a wait takes at most, and what the event loop waits for meanwhile: nothing."""

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from spawnlog import AsyncClient, Client, ServerUnreachable
from spawnlog.core import wait
from spawnlog.core.errors import Problem
from spawnlog.core.lines import LineReader
from spawnlog.core.request import LinesRequest, Request
from spawnlog.core.retries import Pause
from spawnlog.core.wait import LATE_SECONDS_MAX, wait_for_run
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply

RUN = "11111111-0000-4000-8000-000000000001"


def test_each_attempt_of_a_wait_waits_for_no_longer_than_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr("spawnlog.core.wait.time.monotonic", lambda: now[0])
    errand = wait_for_run(RUN, "ended", 10, is_plain=True)
    step: Any = next(errand)
    assert (step.wait_seconds, step.answer_seconds_max) == (10, LATE_SECONDS_MAX)
    now[0] += 8
    step = errand.throw(ServerUnreachable("the connection was lost"))
    assert isinstance(step, Pause)
    now[0] += step.seconds
    step = next(errand)
    assert isinstance(step, Request)
    assert step.wait_seconds == pytest.approx(2, abs=0.3)
    assert step.wait_seconds + step.answer_seconds_max <= 2 + LATE_SECONDS_MAX
    step = errand.throw(Problem(429, {}, retry_after=60.0))
    assert isinstance(step, Pause)
    assert step.seconds <= 2


@pytest.mark.parametrize("kind", ["blocks", "awaits"])
async def test_a_wait_is_over_in_time_though_the_server_says_nothing(
    kind: str, api: RecordedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait, "LATE_SECONDS_MAX", 0.05)
    over = threading.Event()

    def silent(_: Asked) -> Reply:
        over.wait(20)
        return Reply({}, break_off=True)

    api.on("GET", f"/v1/runs/{RUN}", silent)
    began = time.monotonic()
    try:
        with pytest.raises(ServerUnreachable, match="in time"):  # noqa: PT012
            if kind == "blocks":
                with Client(api.url) as client:
                    client.run(RUN).wait(seconds=0.05)
            else:
                async with AsyncClient(api.url) as other:
                    await other.run(RUN).wait(seconds=0.05)
    finally:
        over.set()
    assert time.monotonic() - began < 10


def test_a_long_line_that_comes_in_many_pieces_is_put_together_once() -> None:
    request: LinesRequest[dict[str, Any]] = LinesRequest(operation="", method="POST", path="/")
    reader = LineReader(request)
    began = time.process_time()
    for piece in (b'{"text": "', *([b"x" * 1024] * 15_000), b'", "totals"'):
        assert list(reader.feed(piece)) == []
    (line,) = reader.feed(b": 1}\n")
    assert len(line["text"]) == 15_000 * 1024
    assert time.process_time() - began < 2
    assert reader.end() == []


LOOKING = """
import asyncio, sys, threading
from spawnlog import AsyncClient
from spawnlog.core import answer

async def main():
    loop_thread = threading.get_ident()
    builders = []
    build = answer.model
    def noted(name):
        builders.append(threading.get_ident())
        return build(name)
    answer.model = noted
    async with AsyncClient(sys.argv[1], token="t") as client:
        assert (await client.get_readiness()).head == 7
    assert builders and loop_thread not in builders, builders

asyncio.run(main())
"""


def test_models_are_built_beside_the_event_loop(api: RecordedApi) -> None:
    api.on("GET", "/readyz", Reply({"status": "ready", "head": 7, "tail": 7}))
    subprocess.run([sys.executable, "-c", LOOKING, api.url], check=True, timeout=60)
