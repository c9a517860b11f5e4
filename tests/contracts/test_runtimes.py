"""Contract of every runtime."""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from application.ports.runtimes import AgentRuntimes, Launch, LaunchError, RuntimeSession
from domain.configuration.runtimes import Runtime, ScriptedRuntime, WorkerRuntime
from domain.delivery.transcript import UsageEntry
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.runtimes.by_type import RuntimesByType
from infrastructure.outbound.runtimes.command import CommandRuntimes
from infrastructure.outbound.runtimes.model import ModelRuntimes
from infrastructure.outbound.runtimes.scripted import ScriptedRuntimes
from tests.support.builders.launches import (
    SERVER,
    all_of,
    command,
    launch,
    model_launch,
    pairs,
    program,
    text_of,
)
from tests.support.servers import model_endpoint
from tests.support.servers.model_endpoint import HANG, ModelEndpoint

pytestmark = pytest.mark.process

HELLO = {"message": "hello"}
TOOL = {"tool": {"name": "read", "input": {"path": "a"}, "output": "text"}}
USAGE = {"usage": {"inputTokens": 5, "outputTokens": 2, "model": "m"}}
FOR_EVER = {"afterMs": 86_400_000}


class PlainTheatre:
    def launch(self, runtime: Runtime) -> Launch:
        return launch(runtime)


class ScriptedTheatre(PlainTheatre):
    """Stages a play on one kind of runtime: steps as a scripted runtime has them, and its end with
    `result`, `outcome` (not timeout) and `error`."""

    def __init__(self) -> None:
        self.runtimes: AgentRuntimes = ScriptedRuntimes()

    def play(self, *steps: dict[str, Any], **end: Any) -> Runtime:
        return ScriptedRuntime.model_validate({"type": "scripted", "steps": list(steps), **end})


class CommandTheatre(PlainTheatre):
    """Every play is a shell script that prints JSON lines."""

    def __init__(self, launcher: ProcessLauncher, folder: Path) -> None:
        self.runtimes: AgentRuntimes = CommandRuntimes(launcher, server=SERVER, folder=str(folder))
        self._folder = folder
        self._plays = 0

    def play(self, *steps: dict[str, Any], **end: Any) -> Runtime:
        self._plays += 1
        lines = ["#!/bin/sh", *(self._line(step) for step in steps)]
        if "result" in end:
            lines.append(self._print({"type": "result", "text": end["result"]}))
        if end.get("outcome") == "error":
            lines.append(f"echo {shlex.quote(end['error'])} >&2; exit 1")
        path = program(self._folder / f"play-{self._plays}", "\n".join(lines) + "\n")
        return command(str(path), output="jsonl")

    def _line(self, step: dict[str, Any]) -> str:
        if "message" in step:
            return self._print({"type": "message", "role": "assistant", "text": step["message"]})
        if "tool" in step:
            return self._print({"type": "tool", **step["tool"]})
        if "usage" in step:
            return self._print({"type": "usage", **step["usage"]})
        return f"sleep {step['afterMs'] / 1000}"

    def _print(self, value: dict[str, Any]) -> str:
        return f"printf '%s\\n' {shlex.quote(json.dumps(value))}"


class ModelTheatre:
    """Plays as answers of an endpoint.

    In each answer except the last, a model says one thing and calls a missing tool, so that it is
    called again.
    """

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.runtimes: AgentRuntimes = ModelRuntimes()
        self._endpoint = endpoint
        self._plays = 0

    def play(self, *steps: dict[str, Any], **end: Any) -> Runtime:
        self._plays += 1
        says = [*steps, *([{"message": end["result"]}] if "result" in end else [])]
        answers: list[tuple[model_endpoint.Step, ...]] = []
        pause = 0.0
        for number, step in enumerate(says):
            if "afterMs" in step:
                pause = step["afterMs"] / 1000
                continue
            words = model_endpoint.text(step["message"])
            rest = says[number + 1 :]
            if rest and rest[0] == FOR_EVER:
                answers.append((pause, words, model_endpoint.call("nothing"), HANG))
            elif end.get("outcome") == "error" and not rest:
                failure = model_endpoint.event({"error": {"message": end["error"]}})
                answers.append((pause, words, failure))
            elif rest:
                call = model_endpoint.call("nothing")
                answers.append(model_endpoint.said(pause, words, call, calls=True))
            else:
                answers.append(model_endpoint.said(pause, words))
            pause = 0.0
        name = f"play-{self._plays}"
        self._endpoint.answers(name, *(answers or [model_endpoint.said(model_endpoint.text(""))]))
        return model_launch(self._endpoint.url, model=name).runtime

    def launch(self, runtime: Runtime) -> Launch:
        return replace(model_launch(self._endpoint.url), runtime=runtime, model=None)


Theatre = ScriptedTheatre | CommandTheatre | ModelTheatre


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelEndpoint]:
    async with ModelEndpoint() as endpoint:
        yield endpoint


STEP_BY_STEP = ["command", "scripted", "served command", "served scripted"]


@pytest.fixture(params=[*STEP_BY_STEP, "model", "served model"])
def theatre(
    request: pytest.FixtureRequest,
    launcher: ProcessLauncher,
    endpoint: ModelEndpoint,
    tmp_path: Path,
) -> Theatre:
    name = request.param.split()[-1]
    stages: dict[str, Callable[[], Theatre]] = {
        "scripted": ScriptedTheatre,
        "command": lambda: CommandTheatre(launcher, tmp_path),
        "model": lambda: ModelTheatre(endpoint),
    }
    stage = stages[name]()
    if request.param.startswith("served"):
        stage.runtimes = RuntimesByType({name: stage.runtimes})
    return stage


async def opened(theatre: Theatre, *steps: dict[str, Any], **end: Any) -> RuntimeSession:
    return await theatre.runtimes.open(theatre.launch(theatre.play(*steps, **end)))


# A model's entries have their own order: tokens are counted before its tools are done.
@pytest.mark.parametrize("theatre", STEP_BY_STEP, indirect=True)
async def test_entries_come_in_order_and_end_in_success(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO, TOOL, USAGE, USAGE, result="done")
    session.go()
    entries, end = await all_of(session)
    usage = ("usage", {"inputTokens": 5, "outputTokens": 2, "model": "m"})
    assert pairs(entries) == [
        ("message", {"role": "assistant", "text": "hello"}),
        ("tool", {"name": "read", "input": '{"path":"a"}', "output": "text"}),
        usage,
        usage,
        ("result", {"text": "done"}),
    ]
    assert (end.outcome, end.result, end.error) == ("success", "done", None)
    assert end.usages == (UsageEntry(5, 2, "m"),) * 2


async def test_last_message_is_the_result(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO, {"message": "bye"})
    session.go()
    _, end = await all_of(session)
    assert (end.outcome, end.result, end.usages) == ("success", "bye", ()), end.error


async def test_silent_child_has_no_result(theatre: Theatre) -> None:
    session = await opened(theatre)
    session.go()
    entries, end = await all_of(session)
    assert (entries, end.outcome, end.result) == ([], "success", None)


async def test_failure_keeps_what_was_said(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO, outcome="error", error="no such model")
    session.go()
    entries, end = await all_of(session)
    assert text_of(entries) == "hello"
    assert (end.outcome, end.result) == ("error", "hello")
    assert end.error is not None
    assert "no such model" in end.error


async def test_nothing_is_said_before_go(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO)
    first = asyncio.ensure_future(anext(session.entries()))
    done, _ = await asyncio.wait({first}, timeout=0.05)
    assert not done
    session.go()
    assert (await first).body["text"] == "hello"
    await session.end()


async def test_entry_is_there_before_the_end(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO, FOR_EVER)
    session.go()
    assert (await anext(session.entries())).kind == "message"
    await session.kill()


async def test_killed_child_says_no_more(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO, FOR_EVER, HELLO, result="never")
    session.go()
    entries = session.entries()
    await anext(entries)
    rest = asyncio.ensure_future(all_of(session))
    await asyncio.sleep(0)
    await session.kill()
    output, end = await rest
    assert (output, end.outcome, end.reason) == ([], "stopped", "stopped")
    assert end.result == "hello"


async def test_second_kill_changes_nothing(theatre: Theatre) -> None:
    session = await opened(theatre, result="done")
    session.go()
    _, end = await all_of(session)
    await session.kill()
    await session.kill()
    assert await session.end() == end
    assert end.outcome == "success"


async def test_child_killed_at_once_ends(theatre: Theatre) -> None:
    session = await opened(theatre, FOR_EVER, HELLO)
    session.go()
    await session.kill()
    async with asyncio.timeout(30):
        _, end = await all_of(session)
    assert (end.outcome, end.result) == ("stopped", None)


async def test_go_after_kill_runs_nothing(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO)
    await session.kill()
    await session.kill()
    session.go()
    entries, end = await all_of(session)
    assert (entries, end.outcome) == ([], "stopped")


async def test_nothing_works_on_behind_a_kill(theatre: Theatre) -> None:
    before = asyncio.all_tasks()
    session = await opened(theatre, HELLO, FOR_EVER)
    session.go()
    await session.kill()
    assert asyncio.all_tasks() <= before


async def test_end_comes_if_nobody_reads(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO, result="done")
    session.go()
    assert (await session.end()).result == "done"


async def test_end_comes_after_reading_stopped(theatre: Theatre) -> None:
    session = await opened(theatre, HELLO, HELLO, result="done")
    session.go()
    async for _ in session.entries():
        break
    assert (await session.end()).result == "done"


async def test_cancelled_reader_loses_nothing(theatre: Theatre) -> None:
    session = await opened(theatre, {"message": "first"}, {"afterMs": 50}, {"message": "second"})
    session.go()
    entries = session.entries()
    assert (await anext(entries)).body["text"] == "first"
    waiting = asyncio.ensure_future(anext(entries))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    rest = [entry async for entry in entries if entry.kind == "message"]
    assert [entry.body["text"] for entry in rest] == ["second"]
    assert (await session.end()).outcome == "success"


async def test_children_do_not_disturb_each_other(theatre: Theatre) -> None:
    stays = await opened(theatre, HELLO, FOR_EVER)
    goes = await opened(theatre, result="done")
    stays.go()
    goes.go()
    assert (await goes.end()).result == "done"
    assert (await anext(stays.entries())).kind == "message"
    await stays.kill()
    assert (await stays.end()).outcome == "stopped"


async def test_other_runtime_type_is_refused(theatre: Theatre) -> None:
    worker = WorkerRuntime(type="worker", queue="gpu")
    with pytest.raises(LaunchError, match="worker") as refused:
        await theatre.runtimes.open(launch(worker))
    assert refused.value.reason == "not_executable"
