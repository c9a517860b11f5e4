"""Time limit of a wait, without blocking the event loop."""

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from spawnlog import (
    AsyncClient,
    Client,
    InvalidSettingError,
    Problem,
    RetryLimits,
    ServerAnswer,
    ServerUnreachableError,
    SpawnlogError,
    WaitTimeoutError,
)
from spawnlog.core.lines import LineReader
from spawnlog.core.request import LinesRequest, Request
from spawnlog.core.stages import LATE_SECONDS_MAX
from spawnlog.core.wait import wait_for_run
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply

RUN = "11111111-0000-4000-8000-000000000001"


class ScriptedClient:
    """A client whose answers are a test's, on a clock of the test."""

    def __init__(self, now: list[float], *failures: SpawnlogError) -> None:
        self.requests: list[Request[Any]] = []
        self._now, self._failures = now, list(failures)

    def answer(self, request: Request[Any], _: RetryLimits) -> ServerAnswer[Any]:
        """Fail after 8 s, and after no time from then on; answer in the end."""
        self.requests.append(request)
        if not self._failures:
            return ServerAnswer({"stage": "ended"}, None, False)
        self._now[0] += 8 if len(self.requests) == 1 else 0
        raise self._failures.pop(0)


def test_attempts_of_a_wait_share_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr("spawnlog.core.wait.time.monotonic", lambda: now[0])
    monkeypatch.setattr("spawnlog.core.wait.sleep", sleep)
    lost = ServerUnreachableError("the connection was lost")
    client: Any = ScriptedClient(now, lost, Problem(429, {}, retry_after=60.0))
    wait_for_run(client, RUN, "ended", 10, is_plain=True)
    first, second, third = client.requests
    assert (first.wait_seconds, first.answer_seconds_max) == (10, LATE_SECONDS_MAX)
    assert second.wait_seconds == pytest.approx(2, abs=0.3)
    assert second.wait_seconds + second.answer_seconds_max <= 2 + LATE_SECONDS_MAX
    assert pauses[1] <= 2
    assert third.wait_seconds == 0.001


@pytest.mark.parametrize("kind", ["blocks", "awaits"])
async def test_wait_on_a_silent_server_ends_in_time(
    kind: str, api: RecordedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("async_wait", "wait"):
        monkeypatch.setattr(f"spawnlog.core.{module}.LATE_SECONDS_MAX", 0.05)
    over = threading.Event()

    def silent(_: Asked) -> Reply:
        over.wait(20)
        return Reply({}, break_off=True)

    api.on("GET", f"/v1/runs/{RUN}", silent)
    began = time.monotonic()
    try:
        with pytest.raises(ServerUnreachableError, match="in time"):  # noqa: PT012
            if kind == "blocks":
                with Client(api.url) as client:
                    client.run(RUN).wait(seconds=0.05)
            else:
                async with AsyncClient(api.url) as second_client:
                    await second_client.run(RUN).wait(seconds=0.05)
    finally:
        over.set()
    assert time.monotonic() - began < 10


def test_long_line_is_joined_once() -> None:
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


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_wait_of_negative_seconds_is_refused(api: RecordedApi, seconds: float) -> None:
    with Client(api.url) as client:
        run = client.run(RUN)
        for wait in (run.wait, run.result):
            with pytest.raises(InvalidSettingError, match="seconds must be 0 or more"):
                wait(seconds=seconds)
    assert api.asked == []


def test_wait_timeout_names_seconds_that_were_asked_for(api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{RUN}", Reply({"runId": RUN, "stage": "started"}))
    with Client(api.url) as client, pytest.raises(WaitTimeoutError, match=r" after 0\.01 s;"):
        wait_for_run(client, RUN, "ended", 0.00999998, is_plain=True)


@pytest.mark.parametrize("session", ["", {"channel": "x"}])
def test_family_of_no_session_is_refused(api: RecordedApi, session: Any) -> None:
    with Client(api.url) as client, pytest.raises(InvalidSettingError, match="name the session"):
        client.session(session)


def test_client_without_time_for_answers_is_refused(api: RecordedApi) -> None:
    with pytest.raises(InvalidSettingError, match="answer_seconds must be more than 0"):
        Client(api.url, answer_seconds=0)


def test_unreachable_server_names_arguments_of_client() -> None:
    with (
        Client("http://127.0.0.1:1", retries=RetryLimits(attempts_max=1)) as client,
        pytest.raises(ServerUnreachableError) as lost,
    ):
        client.get_me()
    assert "(url or SPAWNLOG_URL, data_dir or SPAWNLOG_DATA_DIR)" in lost.value.message
    assert "--" not in lost.value.message
