"""Scripted runtime beyond the common contract, and runtimes by type."""

import asyncio
from typing import Any

import pytest

from application.ports.runtimes import LaunchError, RuntimeEnd, TranscriptEntry
from domain.configuration.runtimes import ScriptedRuntime, WorkerRuntime
from infrastructure.outbound.runtimes.by_type import RuntimesByType
from infrastructure.outbound.runtimes.scripted import (
    READY_STEPS_MAX,
    ScriptedRuntimes,
    ScriptedSession,
)
from tests.support.builders.launches import all_of, launch


async def opened(**script: object) -> ScriptedSession:
    runtime = ScriptedRuntime.model_validate({"type": "scripted", **script})
    return await ScriptedRuntimes().open(launch(runtime))


async def played(**script: object) -> tuple[list[TranscriptEntry], RuntimeEnd]:
    session = await opened(**script)
    session.go()
    return await all_of(session)


async def test_steps_take_their_time() -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    await played(steps=[{"afterMs": 20, "message": "a"}, {"afterMs": 20}, {"message": "b"}])
    assert 0.03 < loop.time() - before < 5


async def test_a_pause_is_no_entry() -> None:
    entries, _ = await played(steps=[{"afterMs": 1}, {"message": "a"}, {}])
    assert len(entries) == 1


async def test_a_timeout_is_played_as_one() -> None:
    _, end = await played(outcome="timeout", error="took too long", result="half")
    assert (end.outcome, end.reason) == ("timeout", "played")
    assert (end.error, end.result) == ("took too long", "half")


async def test_values_that_no_store_takes_are_replaced() -> None:
    steps = [{"message": "a\0"}, {"tool": {"name": "t", "input": ["\0"], "output": "\ud800"}}]
    entries, end = await played(steps=steps, result="r\0")
    assert [entry.body.get("text") for entry in entries] == ["a\ufffd", None, "r\ufffd"]
    assert entries[1].body == {"name": "t", "input": '["\\u0000"]', "output": "\ufffd"}
    assert end.result == "r\ufffd"


async def test_script_without_pauses_is_ready_once_it_may_play() -> None:
    session = await opened(steps=[{"message": "hello"}, {"message": "bye"}])
    assert session.ready_entries() is None
    session.go()
    ready = session.ready_entries()
    assert ready is not None
    assert [item.body["text"] for item in ready] == ["hello", "bye"]
    rest, end = await all_of(session)
    assert (rest, end.outcome, end.result) == ([], "success", "bye")
    assert session.ready_entries() is None


@pytest.mark.parametrize(
    "steps",
    [[{"message": "hello", "afterMs": 1}], [{"message": "hello"}] * (READY_STEPS_MAX + 1)],
    ids=["pause", "length"],
)
async def test_script_that_takes_its_time_is_not_ready(steps: list[dict[str, Any]]) -> None:
    session = await opened(steps=steps)
    session.go()
    assert session.ready_entries() is None
    entries, _ = await all_of(session)
    assert len(entries) == len(steps)


SERVED = RuntimesByType({"scripted": ScriptedRuntimes()})


async def test_a_launch_goes_to_what_runs_its_type() -> None:
    session = await SERVED.open(launch(ScriptedRuntime(type="scripted")))
    assert isinstance(session, ScriptedSession)


async def test_type_that_is_not_served_is_refused() -> None:
    with pytest.raises(LaunchError, match=r'"worker", which this server does not run.*scripted'):
        await SERVED.open(launch(WorkerRuntime(type="worker", queue="gpu")))
