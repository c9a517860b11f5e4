"""Texts erased during a preparation: the spawn is refused, and its whole batch with it."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from application.spawn.service import SpawnResult
from application.steps.preparation import no_caller
from domain.run.commands import ResumePreparation
from domain.run.state import Run
from tests.support.builders.step_workshop import Workshop
from tests.support.servers.running_log import RunningLog
from tests.support.waiting import until

BATCH = ("count the ships", "count the masts", "count the crew")
ERASED = "its texts were erased while it was prepared; spawn it again"


@pytest.fixture
async def workshop(running: RunningLog, tmp_path: Path) -> Workshop:
    made = Workshop(running, tmp_path, limit_seconds=0.05)
    await made.open()
    made.workspace.may_go_on.clear()
    # Both the former and the new holder of a batch undo late steps.
    made.workspace.is_alone = False
    return made


async def at_work(workshop: Workshop) -> tuple["asyncio.Task[SpawnResult]", list[Run]]:
    spawning = asyncio.create_task(workshop.spawn(batch=BATCH))
    begun = [await workshop.workspace.begun() for _ in BATCH]
    assert begun[0].batch is not None
    by_id = {run.run_id: run for run in begun}
    return spawning, [by_id[run_id] for run_id in begun[0].batch.run_ids]


async def require_refusal(workshop: Workshop, runs: list[Run]) -> list[Any]:
    """Assert that all are refused in one append: the second on its own account, the others because
    of it.
    """
    events = [
        event for event in await workshop.running.events() if event.envelope.type == "SpawnRefused"
    ]
    assert len({event.envelope.append_last for event in events}) == 1
    refused = [(await workshop.recorded(run, "SpawnRefused"))[0] for run in runs]
    assert [item.rule for item in refused] == ["batch", "erased", "batch"]
    assert refused[1].text is None
    texts = [await workshop.work.contents.text(refused[n].text) for n in (0, 2)]
    (text,) = set(texts)
    assert text is not None
    assert text.startswith("Task 2 of 3 (")
    assert f"run {runs[1].run_id}) could not be prepared: {ERASED}." in text
    kept = "SELECT count(*) FROM contents WHERE session_id = %s"
    assert await workshop.running.ask(kept, runs[1].session_id) == [(0,)]
    return refused


async def is_refused(workshop: Workshop, run: Run) -> bool:
    return (await workshop.work.run(run.run_id)).stage == "refused"


async def test_erased_texts_refuse_the_batch(workshop: Workshop) -> None:
    spawning, runs = await at_work(workshop)
    await workshop.erase(runs[1])
    workshop.workspace.may_go_on.set()
    answer = (await spawning).answer
    assert (answer.body["rule"], answer.body["runId"]) == ("erased", str(runs[1].run_id))
    assert (answer.body["text"], answer.body["task"]) == (ERASED, 1)
    refused = await require_refusal(workshop, runs)
    assert [item.announcement for item in refused] == [None] * 3
    await workshop.undone(3)
    assert workshop.left() == []


async def test_erased_batch_taken_over_is_announced_once(
    workshop: Workshop,
) -> None:
    spawning, runs = await at_work(workshop)
    await workshop.erase(runs[1])
    first = await workshop.work.run(runs[0].run_id)
    resuming = asyncio.create_task(workshop.preparing.resume(first, "another", "holder is gone"))
    # Making folders is not cancelled, even if the batch is refused meanwhile.
    await until(partial(is_refused, workshop, runs[1]), "the batch to be refused")
    workshop.workspace.may_go_on.set()
    await resuming
    refused = await require_refusal(workshop, runs)
    announcements = [item.announcement for item in refused]
    assert [answer is not None for answer in announcements] == [True, False, False]
    text = await workshop.work.contents.text(announcements[0])
    assert text is not None
    assert ERASED in text
    assert (await spawning).answer.body["rule"] == "erased"
    await workshop.undone(3)
    assert workshop.left() == []


async def test_erased_spawn_taken_over_is_refused(workshop: Workshop) -> None:
    spawning = asyncio.create_task(workshop.spawn())
    run = await workshop.workspace.begun()
    await workshop.erase(run)
    now = await workshop.work.run(run.run_id)
    resume = ResumePreparation(holder="another", lost_epoch=now.epoch, reason="gone")
    appended = await workshop.work.record(now, (resume,))
    prepared = await workshop.preparing.prepare([appended.runs[run.run_id]], no_caller)
    (refused,) = prepared.runs
    assert refused.stage == "refused"
    assert refused.refusal is not None
    assert (refused.refusal.rule, refused.refusal.text) == ("erased", None)
    workshop.workspace.may_go_on.set()
    assert (await spawning).answer.body["rule"] == "erased"


@pytest.mark.parametrize("index", [0, 1])
async def test_erased_batch_can_be_stopped(workshop: Workshop, index: int) -> None:
    spawning, runs = await at_work(workshop)
    await workshop.erase(runs[1])
    await workshop.stop(await workshop.work.run(runs[index].run_id))
    workshop.workspace.may_go_on.set()
    await spawning
    refused = [(await workshop.recorded(run, "SpawnRefused"))[0] for run in runs]
    assert refused[index].rule == "stopped"
    assert [item.text is None for item in refused] == [False, True, False]
    await workshop.undone(3)
