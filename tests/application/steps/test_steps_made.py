"""Steps of a preparation: made when there is room, stopped, undone, and retried."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from application.queries.views.event import (
    EventWithTexts,
    FailureText,
    events_with_texts,
)
from application.queries.views.run import pending_undo_views, summary_texts
from application.steps.step import STEPS_AT_ONCE_MAX, StepRefusedError
from application.steps.workspace import WorkspaceStep
from domain.run.events import EffectAttempted, StepBegun
from domain.run.state import Run
from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.run_histories import a_prepared_run, step_begun
from tests.support.builders.step_workshop import WaitingStep, Workshop
from tests.support.builders.storytelling import ROOT, plan, run_of
from tests.support.servers.running_log import RunningLog
from tests.support.waiting import until


@pytest.fixture
async def full_workshop(running: RunningLog, tmp_path: Path) -> Workshop:
    """Yield a workshop whose steps are all in use and wait; the workspace exists."""
    full_workshop = Workshop(running, tmp_path)
    await full_workshop.open()
    (full_workshop.homes / "porter").mkdir()
    full_workshop.attachments.may_go_on.clear()
    return full_workshop


async def placed(full_workshop: Workshop, spawns: int) -> None:
    """Wait until this number of spawns has reached the step."""

    async def are_there() -> bool:
        return full_workshop.attachments.placed == spawns

    await until(are_there, f"{spawns} spawns to come to their step")


async def count_begun(full_workshop: Workshop) -> int:
    return sum(isinstance(event.event, StepBegun) for event in await full_workshop.running.events())


async def test_a_spawn_begins_its_step_when_another_has_made_its_own(
    full_workshop: Workshop,
) -> None:
    spawning = [asyncio.create_task(full_workshop.spawn()) for _ in range(STEPS_AT_ONCE_MAX + 1)]
    for _ in range(STEPS_AT_ONCE_MAX):
        await full_workshop.attachments.begun()
    await placed(full_workshop, len(spawning))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(full_workshop.attachments.begun(), 0.5)
    assert await count_begun(full_workshop) == STEPS_AT_ONCE_MAX
    full_workshop.attachments.may_go_on.set()
    spawned = await asyncio.gather(*spawning)
    assert {run.answer.kind for run in spawned} == {"accepted"}
    assert await count_begun(full_workshop) == STEPS_AT_ONCE_MAX + 1


async def test_a_spawn_that_is_stopped_while_it_waits_has_begun_nothing(
    full_workshop: Workshop,
) -> None:
    made = [asyncio.create_task(full_workshop.spawn()) for _ in range(STEPS_AT_ONCE_MAX)]
    held = {(await full_workshop.attachments.begun()).run_id for _ in made}
    waiting = asyncio.create_task(full_workshop.spawn())

    await placed(full_workshop, STEPS_AT_ONCE_MAX + 1)
    events = await full_workshop.running.events()
    (run_id,) = {event.envelope.provenance.run_id for event in events} - held - {None}
    assert run_id is not None
    run = await full_workshop.work.run(run_id)
    await full_workshop.stop(run)
    full_workshop.attachments.may_go_on.set()
    stopped = await waiting
    assert (stopped.answer.kind, stopped.answer.body["rule"]) == ("error", "stopped")
    assert {item.answer.kind for item in await asyncio.gather(*made)} == {"accepted"}
    assert await full_workshop.recorded(run, "StepBegun") == []
    assert not (full_workshop.homes / f"porter/.openclaw/attachments/{run_id}").exists()


LIMIT_SECONDS = 0.5


@pytest.fixture
async def workshop(running: RunningLog, tmp_path: Path) -> Workshop:
    """Return a workshop whose steps take at most half a second."""
    workshop = Workshop(running, tmp_path, limit_seconds=LIMIT_SECONDS)
    await workshop.open()
    return workshop


async def nothing_is_left(workshop: Workshop, there: Sequence[str] = ()) -> None:
    """Assert that no folder is left except the initial ones, no file, and no staged file."""
    assert workshop.left() == [*there]
    assert await workshop.running.ask("SELECT count(*) FROM staged_files") == [(0,)]


def step_of(workshop: Workshop, name: str) -> WaitingStep:
    return workshop.workspace if name == "workspace" else workshop.attachments


async def released(workshop: Workshop, run: Run) -> int:
    """Return how often the slot of a run was released."""
    events = await workshop.running.events()
    return sum(
        event.envelope.type == "ChildReleased"
        and getattr(event.event, "run_id", None) == run.run_id
        for event in events
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
    """With `is_late`, the step is made only after it was undone, as by a server that slept."""
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
    assert [event.name for event in await workshop.recorded(run, "EffectAttempted")] == steps


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
        # It is not announced before its child is settled.
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
    # They can no longer be written.
    await workshop.staged.drop(run.run_id)
    step.may_go_on.set()
    refused = await spawning
    assert (refused.answer.kind, refused.answer.body["rule"]) == ("error", "attachments")
    await workshop.undone(2)
    assert (step.undone, workshop.workspace.undone) == (3, 1)
    await nothing_is_left(workshop)
    events = [
        (event.event, event.envelope.recorded_at)
        for event in await workshop.running.events()
        if isinstance(event.event, EffectAttempted)
    ]
    failed = [event for event, _ in events if event.has_failed]
    assert [(item.attempt, item.retry_after_seconds) for item in failed] == [(1, 1), (2, 2)]
    texts = [await workshop.work.contents.text(item.error) for item in failed if item.error]
    assert texts == ["the 1. attempt fails", "the 2. attempt fails"]
    done = [event for event, _ in events[2:]]
    assert [(item.name, item.attempt) for item in done] == [("attachments", 3), ("workspace", 1)]
    first, second, third, _ = (at for _, at in events)
    assert (second - first).total_seconds() >= 1
    assert (third - second).total_seconds() >= 2


async def test_the_last_failure_is_told_with_the_run_and_each_with_its_event(
    workshop: Workshop,
) -> None:
    step = workshop.attachments
    step.failures = 2
    step.may_go_on.clear()
    spawning = asyncio.create_task(workshop.spawn())
    run_id = (await step.begun()).run_id
    # They can no longer be written.
    await workshop.staged.drop(run_id)
    step.may_go_on.set()
    await spawning
    await workshop.undone(2)
    work = workshop.work
    events = await work.log.read(limit=500, run_id=run_id)
    failed = [event for event in events if event.envelope.type == "EffectAttempted"][:2]
    for number, event in enumerate(failed, start=1):
        run = await work.registry.run(run_id, at=event.envelope.position)
        assert run is not None
        views = pending_undo_views(run, await work.contents.texts(summary_texts(run)))
        assert [view.error for view in views if view.failures] == [f"the {number}. attempt fails"]
    assert pending_undo_views(await work.run(run_id), {}) == []
    shown = await events_with_texts(events, work.contents)
    assert [item.texts for item in shown if isinstance(item, EventWithTexts)] == [
        FailureText(error="the 1. attempt fails"),
        FailureText(error="the 2. attempt fails"),
    ]


async def test_a_failure_without_a_text_is_recorded_and_tried_again(
    running: RunningLog, tmp_path: Path
) -> None:
    workshop = Workshop(running, tmp_path)
    await workshop.open()
    step = workshop.attachments
    step.failures = 1
    step.may_go_on.clear()
    spawning = asyncio.create_task(workshop.spawn())
    run = await step.begun()
    await workshop.staged.drop(run.run_id)
    step.may_go_on.set()
    refused = await spawning
    assert refused.answer.body["rule"] == "attachments"
    await running.ask(
        "WITH gone AS (DELETE FROM content_keys WHERE session_id = %s RETURNING 1)"
        " SELECT count(*) FROM gone",
        run.session_id,
    )
    await workshop.undone(2)
    failed, *_ = await workshop.recorded(run, "EffectAttempted")
    assert (failed.attempt, failed.error, failed.retry_after_seconds) == (1, None, 1)
    assert workshop.left() == []


async def test_workspace_that_vanished_after_step_is_refused(tmp_path: Path) -> None:
    """A new, empty folder would hide that the result of the step is lost."""
    step, home = WorkspaceStep(LocalWorkspaceFolders()), plan(workspace_dir=str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    begun = run_of(*a_prepared_run(), step_begun("attachments"))
    assert await step.place(begun, home) is None
    (tmp_path / "home").rmdir()
    assert await step.place(run_of(*a_prepared_run()), home) is not None
    with pytest.raises(StepRefusedError, match="it no longer exists"):
        await step.place(begun, home)
