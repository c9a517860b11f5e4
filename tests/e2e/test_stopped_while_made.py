"""A spawn that is stopped, or whose requester ends, while a step of it is being made; and what
cannot be undone at first."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from domain.run.events import EffectAttempted
from domain.run.state import Run
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.step_workshop import WaitingStep, Workshop
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.server

LIMIT_SECONDS = 0.5


@pytest.fixture
async def workshop(running: RunningLog, tmp_path: Path) -> Workshop:
    """Its steps take half a second at most."""
    workshop = Workshop(running, tmp_path, limit_seconds=LIMIT_SECONDS)
    await workshop.open()
    return workshop


async def nothing_is_left(workshop: Workshop, there: Sequence[str] = ()) -> None:
    """No folder but those that were there, no file, and none that was set aside."""
    assert workshop.left() == [*there]
    assert await workshop.running.ask("SELECT count(*) FROM staged_files") == [(0,)]


def step_of(workshop: Workshop, name: str) -> WaitingStep:
    return workshop.workspace if name == "workspace" else workshop.attachments


async def released(workshop: Workshop, run: Run) -> int:
    """How often the slot of a run was given back."""
    events = await workshop.running.events()
    return sum(
        one.envelope.type == "ChildReleased" and getattr(one.event, "run_id", None) == run.run_id
        for one in events
    )


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize(
    ("name", "there", "steps"),
    [
        ("workspace", [], ["workspace"]),
        ("attachments", [], ["attachments", "workspace"]),
        ("attachments", ["porter"], ["attachments"]),
    ],
)
async def test_a_spawn_that_is_stopped_while_a_step_is_made_leaves_nothing(
    workshop: Workshop, name: str, there: list[str], steps: list[str], is_late: bool
) -> None:
    """`is_late`: the step is made only after it was undone, as by a server that slept."""
    for folder in there:
        (workshop.homes / folder).mkdir()
    step = step_of(workshop, name)
    step.may_go_on.clear()
    spawning = asyncio.create_task(workshop.spawn())
    run = await step.begun()
    await workshop.stop(run)
    assert await released(workshop, run) == 1
    if is_late:
        await workshop.undone(len(steps))
    step.may_go_on.set()
    spawned = await spawning
    assert (spawned.answer.kind, spawned.answer.body["rule"]) == ("error", "stopped")
    if not is_late:
        await workshop.undone(len(steps))
    await nothing_is_left(workshop, there)
    assert await released(workshop, run) == 1
    (refused,) = await workshop.recorded(run, "SpawnRefused")
    assert refused.rule == "stopped"
    assert [one.name for one in await workshop.recorded(run, "EffectAttempted")] == steps


@pytest.mark.parametrize("ends_by", ["itself", "a stop"])
async def test_a_spawn_is_stopped_with_the_run_that_asked_for_it(
    workshop: Workshop, family: LoggedFamily, ends_by: str
) -> None:
    await family.begin("top")
    step = workshop.attachments
    step.may_go_on.clear()
    spawning = asyncio.create_task(workshop.spawn(family.key("top")))
    run = await step.begun()
    top = family.id("top")
    if ends_by == "itself":
        await family.end("top")
        # It is not told of before its child is done with.
        assert (await workshop.work.run(top)).pending_descendants == 1
    await workshop.stop(await workshop.work.run(top))
    assert (await workshop.work.run(run.run_id)).stage == "refused"
    step.may_go_on.set()
    spawned = await spawning
    assert spawned.answer.body["rule"] == "stopped"
    await workshop.undone(2)
    await nothing_is_left(workshop)
    assert await released(workshop, run) == 1
    if ends_by == "itself":
        assert (await workshop.running.types()).count("DescendantsSettled") == 1
        assert await released(workshop, await workshop.work.run(top)) == 1
        session = await workshop.work.registry.session(ROOT)
        assert session is not None
        assert session.active_children == 0


async def test_an_undoing_that_fails_is_tried_again_later_by_one_server_at_a_time(
    workshop: Workshop,
) -> None:
    step = workshop.attachments
    step.failures = 2
    step.may_go_on.clear()
    spawning = asyncio.create_task(workshop.spawn())
    run = await step.begun()
    # Nobody can write them any more.
    await workshop.staged.drop(run.run_id)
    step.may_go_on.set()
    refused = await spawning
    assert (refused.answer.kind, refused.answer.body["rule"]) == ("error", "attachments")
    await workshop.undone(2)
    assert (step.undone, workshop.workspace.undone) == (3, 1)
    await nothing_is_left(workshop)
    told = [
        (one.event, one.envelope.recorded_at)
        for one in await workshop.running.events()
        if isinstance(one.event, EffectAttempted)
    ]
    failed = [event for event, _ in told if event.has_failed]
    assert [(one.attempt, one.retry_after_seconds) for one in failed] == [(1, 1), (2, 2)]
    texts = [await workshop.work.contents.text(one.error) for one in failed if one.error]
    assert texts == ["the 1. attempt fails", "the 2. attempt fails"]
    done = [event for event, _ in told[2:]]
    assert [(one.name, one.attempt) for one in done] == [("attachments", 3), ("workspace", 1)]
    first, second, third, _ = (at for _, at in told)
    assert (second - first).total_seconds() >= 1
    assert (third - second).total_seconds() >= 2
