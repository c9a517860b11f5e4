"""A step is on record as begun only when it can be made at once: its time counts from then."""

import asyncio
from pathlib import Path

import pytest

from application.steps.step import STEPS_AT_ONCE_MAX
from domain.run.events import StepBegun
from tests.support.builders.step_workshop import Workshop
from tests.support.faults.held_commits import until
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.server


@pytest.fixture
async def workshop(running: RunningLog, tmp_path: Path) -> Workshop:
    """As many spawns as may be made at once are being made, and wait; the workspace is there."""
    workshop = Workshop(running, tmp_path)
    await workshop.open()
    (workshop.homes / "porter").mkdir()
    workshop.attachments.may_go_on.clear()
    return workshop


async def placed(workshop: Workshop, spawns: int) -> None:
    """So many have come to the step."""

    async def are_there() -> bool:
        return workshop.attachments.placed == spawns

    await until(are_there, f"{spawns} spawns to come to their step")


async def begun(workshop: Workshop) -> int:
    return sum(isinstance(one.event, StepBegun) for one in await workshop.running.events())


async def test_a_spawn_begins_its_step_when_another_has_made_its_own(workshop: Workshop) -> None:
    spawning = [asyncio.create_task(workshop.spawn()) for _ in range(STEPS_AT_ONCE_MAX + 1)]
    for _ in range(STEPS_AT_ONCE_MAX):
        await workshop.attachments.begun()
    await placed(workshop, len(spawning))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(workshop.attachments.begun(), 0.5)
    assert await begun(workshop) == STEPS_AT_ONCE_MAX
    workshop.attachments.may_go_on.set()
    spawned = await asyncio.gather(*spawning)
    assert {one.answer.kind for one in spawned} == {"accepted"}
    assert await begun(workshop) == STEPS_AT_ONCE_MAX + 1


async def test_a_spawn_that_is_stopped_while_it_waits_has_begun_nothing(
    workshop: Workshop,
) -> None:
    made = [asyncio.create_task(workshop.spawn()) for _ in range(STEPS_AT_ONCE_MAX)]
    held = {(await workshop.attachments.begun()).run_id for _ in made}
    waiting = asyncio.create_task(workshop.spawn())

    await placed(workshop, STEPS_AT_ONCE_MAX + 1)
    events = await workshop.running.events()
    (run_id,) = {one.envelope.provenance.run_id for one in events} - held - {None}
    assert run_id is not None
    run = await workshop.work.run(run_id)
    await workshop.stop(run)
    workshop.attachments.may_go_on.set()
    stopped = await waiting
    assert (stopped.answer.kind, stopped.answer.body["rule"]) == ("error", "stopped")
    assert {one.answer.kind for one in await asyncio.gather(*made)} == {"accepted"}
    assert await workshop.recorded(run, "StepBegun") == []
    assert not (workshop.homes / f"porter/.openclaw/attachments/{run_id}").exists()
