"""What everything that runs context scripts keeps to."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any, Protocol

import pytest

from application.ports.scripts import ScriptFinished, ScriptRunner
from infrastructure.outbound.processes.gatehouse import Gatehouse
from infrastructure.outbound.scripts.local_file import LocalFileScripts
from tests.support.launches import SERVER, program
from tests.support.process_table import carrying, until
from tests.support.script_runs import script_run


class Desk(Protocol):
    """Makes scripts of one kind; each method gives the uri of one."""

    runner: ScriptRunner

    def answering(self, output: bytes) -> str: ...

    def failing(self, complaint: str) -> str: ...

    def telling_its_variables(self) -> str:
        """One that answers with the JSON object it was given."""
        ...

    def hanging(self, token: str) -> str:
        """One that never answers; the token is in the command line of its process."""
        ...

    def missing(self) -> str: ...


class LocalFileDesk:
    def __init__(self, gatehouse: Gatehouse, folder: Path) -> None:
        self.runner: ScriptRunner = LocalFileScripts(gatehouse, server=SERVER, folder=str(folder))
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

    def _script(self, line: str) -> str:
        program(self._folder / "script", f"#!/bin/sh\n{line}\n")
        return "script"


@pytest.fixture(params=[LocalFileDesk])
def desk(request: pytest.FixtureRequest, gatehouse: Gatehouse, tmp_path: Path) -> Desk:
    made: Desk = request.param(gatehouse, tmp_path)
    return made


async def ran(desk: Desk, uri: str, **request: Any) -> ScriptFinished:
    run = script_run(uri, **request)
    assert desk.runner.serves(run.script)
    return await desk.runner.run(run)


async def test_an_answer_is_trimmed_and_counted_as_it_came(desk: Desk) -> None:
    finished = await ran(desk, desk.answering(b"\n  ## Identity\n\nx \n"))
    assert (finished.output, finished.error) == ("## Identity\n\nx", None)
    assert finished.output_bytes == 19
    assert finished.duration_ms >= 0


async def test_no_answer_is_no_failure(desk: Desk) -> None:
    finished = await ran(desk, desk.answering(b""))
    assert (finished.output, finished.output_bytes, finished.error) == ("", 0, None)


async def test_an_answer_that_is_no_text_is_made_text(desk: Desk) -> None:
    finished = await ran(desk, desk.answering(b"a\xff\0\xe2\x82"))
    assert (finished.output, finished.output_bytes) == ("a\ufffd\ufffd\ufffd", 5)


async def test_mapped_variables_arrive_as_json_and_undefined_ones_do_not(desk: Desk) -> None:
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


async def test_a_failure_is_told_in_words(desk: Desk) -> None:
    finished = await ran(desk, desk.failing("no such topology"))
    assert finished.error is not None
    assert "no such topology" in finished.error


async def test_what_is_not_there_is_told_in_words(desk: Desk) -> None:
    finished = await ran(desk, desk.missing())
    assert (finished.output, finished.exit_code) == ("", None)
    assert finished.error


async def test_too_long_an_answer_is_an_error_that_names_the_limit(desk: Desk) -> None:
    fits = await ran(desk, desk.answering(b"x" * 2000), output_bytes_max=2000)
    assert (fits.error, fits.output_bytes) == (None, 2000)
    over = await ran(desk, desk.answering(b"x" * 2001), output_bytes_max=2000)
    assert over.error is not None
    assert "more than 2000 bytes" in over.error
    assert over.output_bytes == 2000


async def test_a_script_that_hangs_is_ended_in_time(desk: Desk) -> None:
    token = "token-of-a-script-that-hangs"
    finished = await ran(desk, desk.hanging(token), timeout_seconds=0.2)
    assert finished.error == "Script execution timed out after 0.2 seconds"
    assert 200 <= finished.duration_ms < 10_000
    assert carrying(token) == []


async def test_a_run_that_is_cancelled_leaves_nothing(desk: Desk) -> None:
    token = "token-of-a-script-that-is-cancelled"
    running = asyncio.create_task(ran(desk, desk.hanging(token)))
    await until(lambda: len(carrying(token)) > 0)
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert carrying(token) == []


async def test_scripts_run_beside_each_other(desk: Desk) -> None:
    uri = desk.telling_its_variables()
    answers = await asyncio.gather(
        *(
            ran(desk, uri, format="json", argMap={"t": "task"}, variables={"task": str(number)})
            for number in range(5)
        )
    )
    assert [json.loads(answer.output)["t"] for answer in answers] == list("01234")
