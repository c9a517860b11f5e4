"""Why something cannot be removed: whoever may read texts can read it."""

import asyncio
from pathlib import Path

import pytest

from application.queries.views.event import (
    EventWithTexts,
    FailureText,
    events_with_texts,
)
from application.queries.views.run import pending_undo_views, summary_texts
from tests.support.builders.step_workshop import Workshop
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.server

LIMIT_SECONDS = 0.5


@pytest.fixture
async def workshop(running: RunningLog, tmp_path: Path) -> Workshop:
    """Its steps take half a second at most."""
    workshop = Workshop(running, tmp_path, limit_seconds=LIMIT_SECONDS)
    await workshop.open()
    return workshop


async def test_the_last_failure_is_told_with_the_run_and_each_with_its_event(
    workshop: Workshop,
) -> None:
    step = workshop.attachments
    step.failures = 2
    step.may_go_on.clear()
    spawning = asyncio.create_task(workshop.spawn())
    run_id = (await step.begun()).run_id
    # Nobody can write them any more.
    await workshop.staged.drop(run_id)
    step.may_go_on.set()
    await spawning
    await workshop.undone(2)
    work = workshop.work
    events = await work.log.read(limit=500, run_id=run_id)
    failed = [one for one in events if one.envelope.type == "EffectAttempted"][:2]
    for number, event in enumerate(failed, start=1):
        run = await work.registry.run(run_id, at=event.envelope.position)
        assert run is not None
        views = pending_undo_views(run, await work.contents.texts(summary_texts(run)))
        assert [one.error for one in views if one.failures] == [f"the {number}. attempt fails"]
    assert pending_undo_views(await work.run(run_id), {}) == []
    shown = await events_with_texts(events, work.contents)
    assert [one.texts for one in shown if isinstance(one, EventWithTexts)] == [
        FailureText(error="the 1. attempt fails"),
        FailureText(error="the 2. attempt fails"),
    ]
