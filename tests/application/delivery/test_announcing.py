"""An orchestrator's requester gets the results of its children, each by name."""

from pathlib import Path
from typing import Any

import pytest

from application.delivery.announce import Announcer
from tests.support.builders.stored_family import KeptFamily
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import ScriptedHooks, work_with_hooks

pytestmark = pytest.mark.server


async def ended(family: KeptFamily, name: str, **request: Any) -> None:
    """End a child of `top`, and announce it."""
    await family.begin(name, "top", **request)
    await family.end(name)
    await family.announce(name)


async def test_finding_is_named_by_label_or_task(running: RunningLog, tmp_path: Path) -> None:
    family = KeptFamily(running.log, running.pool, tmp_path, max_spawn_depth=5)
    await family.begin("top")
    await ended(family, "labelled", label="scout", task="not shown")
    await ended(family, "plain", task="look\naround")
    await ended(family, "talkative", task=f"{'x' * 60} {'y' * 8_000}")
    await family.end("top")
    work = await work_with_hooks(running, tmp_path)
    announcer = Announcer(work, ScriptedHooks(), running.transcripts(tmp_path))
    await announcer.announce(family.id("top"))
    run = await work.run(family.id("top"))
    assert run.inbox is not None
    assert run.inbox.text is not None
    text = await work.contents.text(run.inbox.text)
    assert text is not None
    findings = text.partition("Findings of its sub-agents:\n")[2].splitlines()
    named = [line for line in findings if line[:3] in ("1. ", "2. ", "3. ")]
    assert named == ["1. scout", "2. look around", f"3. {'x' * 60} {'y' * 38}…"]
    assert "not shown" not in text
