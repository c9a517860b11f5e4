"""Contract of everything that runs context scripts."""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from application.ports.scripts import ScriptFinished, ScriptRunner
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.scripts.http import HttpScripts
from infrastructure.outbound.scripts.local import LocalFileScripts
from tests.support.builders.launches import SERVER, program
from tests.support.builders.scripts import script_run, source_in
from tests.support.servers.process_table import carrying
from tests.support.servers.script_server import Asked, ScriptServer, answer
from tests.support.waiting import until

pytestmark = pytest.mark.process


class LocalFileDesk:
    """Maker of scripts in files; each method returns the URI of one.

    A token distinguishes it from others; `under_way` counts its processes.
    """

    def __init__(self, launcher: ProcessLauncher, folder: Path) -> None:
        self.runner: ScriptRunner = LocalFileScripts(launcher, source_in(folder), server=SERVER)
        self._folder = folder

    def answering(self, output: bytes) -> str:
        (self._folder / "answer").write_bytes(output)
        return self._script("cat answer")

    def failing(self, complaint: str) -> str:
        return self._script(f"echo half; echo {shlex.quote(complaint)} >&2; exit 7")

    def telling_its_variables(self) -> str:
        return self._script("exec cat")

    def hanging(self, token: str) -> str:
        return self._script(f"sh -c 'sleep 1000; : {token}'")

    def missing(self) -> str:
        return "no-such-script"

    def under_way(self, token: str) -> int:
        return len(carrying(token))

    async def nothing_is_left(self, token: str) -> None:
        assert carrying(token) == []

    def _script(self, line: str) -> str:
        program(self._folder / "script", f"#!/bin/sh\n{line}\n")
        return "script"


class HttpDesk:
    """The same for scripts that are addresses; `under_way` is how many connections there are."""

    def __init__(self, server: ScriptServer, runner: HttpScripts) -> None:
        self.runner: ScriptRunner = runner
        self._server = server

    def answering(self, output: bytes) -> str:
        return self._server.at("/answer", answer(output))

    def failing(self, complaint: str) -> str:
        return self._server.at("/fails", answer(b"half", f"503 {complaint}"))

    def telling_its_variables(self) -> str:
        async def tell(request: Asked, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(request.body))
            await writer.drain()

        return self._server.at("/tell", tell)

    def hanging(self, token: str) -> str:
        async def hang(request: Asked, writer: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        return self._server.at(f"/{token}", hang)

    def missing(self) -> str:
        return "http://127.0.0.1:1/nobody-is-there"

    def under_way(self, token: str) -> int:
        return self._server.open

    async def nothing_is_left(self, token: str) -> None:
        # The other side hears of it a moment later.
        await until(lambda: self._server.open == 0)


Desk = LocalFileDesk | HttpDesk


@pytest.fixture(params=["file", "url"])
async def desk(
    request: pytest.FixtureRequest, launcher: ProcessLauncher, tmp_path: Path
) -> AsyncIterator[Desk]:
    if request.param == "file":
        yield LocalFileDesk(launcher, tmp_path)
        return
    runner = HttpScripts(source_in(tmp_path))
    async with ScriptServer() as server:
        yield HttpDesk(server, runner)


async def ran(desk: Desk, uri: str, **request: Any) -> ScriptFinished:
    return await desk.runner.run(script_run(uri, **request))


async def test_answer_is_trimmed(desk: Desk) -> None:
    finished = await ran(desk, desk.answering(b"\n  ## Identity\n\nx \n"))
    assert (finished.output, finished.error) == ("## Identity\n\nx", None)
    assert finished.raw == b"\n  ## Identity\n\nx \n"
    assert finished.duration_ms >= 0


async def test_no_answer_is_no_failure(desk: Desk) -> None:
    finished = await ran(desk, desk.answering(b""))
    assert (finished.output, finished.raw, finished.error) == ("", b"", None)


async def test_binary_answer_becomes_text(desk: Desk) -> None:
    finished = await ran(desk, desk.answering(b"a\xff\0\xe2\x82"))
    assert (finished.output, finished.raw) == ("a\ufffd\ufffd\ufffd", b"a\xff\0\xe2\x82")


async def test_defined_variables_arrive_as_json(desk: Desk) -> None:
    finished = await ran(
        desk,
        desk.telling_its_variables(),
        format="json",
        method="POST",
        argMap={"who": "targetAgentId", "tag": "label", "all": "cfg", "what": "task"},
        variables={"cfg": {"agents": {"list": []}}, "task": "$(id) \"q\" 'x' \n é"},
    )
    assert json.loads(finished.output) == {
        "who": "steward",
        "all": {"agents": {"list": []}},
        "what": "$(id) \"q\" 'x' \n é",
    }


async def test_failure_is_told_in_words(desk: Desk) -> None:
    finished = await ran(desk, desk.failing("no such topology"))
    assert finished.error is not None
    assert "no such topology" in finished.error


async def test_missing_script_is_an_error(desk: Desk) -> None:
    finished = await ran(desk, desk.missing())
    assert (finished.output, finished.exit_code) == ("", None)
    assert finished.error


async def test_too_long_answer_names_the_limit(desk: Desk) -> None:
    fits = await ran(desk, desk.answering(b"x" * 2000), output_bytes_max=2000)
    assert (fits.error, len(fits.raw)) == (None, 2000)
    over = await ran(desk, desk.answering(b"x" * 2001), output_bytes_max=2000)
    assert over.error is not None
    assert "more than 2000 bytes" in over.error
    assert over.raw == b"x" * 2000


async def test_hanging_script_is_ended_in_time(desk: Desk) -> None:
    token = "token-of-a-script-that-hangs"
    finished = await ran(desk, desk.hanging(token), timeout_seconds=0.2)
    assert finished.error == "Script execution timed out after 0.2 seconds"
    assert 199 <= finished.duration_ms < 10_000
    await desk.nothing_is_left(token)


async def test_cancelled_run_leaves_nothing(desk: Desk) -> None:
    token = "token-of-a-script-that-is-cancelled"
    running = asyncio.create_task(ran(desk, desk.hanging(token)))
    await until(lambda: desk.under_way(token) > 0)
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    await desk.nothing_is_left(token)


async def test_scripts_run_beside_each_other(desk: Desk) -> None:
    uri = desk.telling_its_variables()
    answers = await asyncio.gather(
        *(
            ran(
                desk,
                uri,
                format="json",
                method="POST",
                argMap={"t": "task"},
                variables={"task": str(number)},
            )
            for number in range(5)
        )
    )
    assert [json.loads(answer.output)["t"] for answer in answers] == list("01234")
