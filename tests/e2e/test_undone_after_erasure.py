"""What cannot be undone is on record, also when the session's texts were erased meanwhile."""

import asyncio
from pathlib import Path

import pytest

from tests.support.builders.step_workshop import Workshop
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.server


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
