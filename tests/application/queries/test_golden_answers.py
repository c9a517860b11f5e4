"""Answers about the past never change: every release gives the recorded ones."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.golden_answers import (
    FOLDER,
    LATER,
    LOGS,
    WORDED,
    answered,
    import_golden_log,
)
from tests.support.builders.reads_of_the_past import QUESTIONS, Read
from tests.support.servers.running_log import running_on


def test_each_golden_log_has_its_answers() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {path.stem for path in LOGS.iterdir()}


@pytest.mark.server
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.iterdir()))
async def test_recorded_answers_are_given_again(
    database_url: str, tmp_path: Path, name: str
) -> None:
    lines = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    kept: list[dict[str, Any]] = [json.loads(line) for line in lines]
    later = LATER.get(name, frozenset())
    assert {item["operation"] for item in kept} == set(QUESTIONS) - WORDED - later
    assert len({item["at"] for item in kept}) > 2
    await asyncio.to_thread(import_golden_log, database_url, name)
    reads = [(Read(item["operation"], item["about"]), int(item["at"])) for item in kept]
    async with running_on(database_url) as running:
        found = await answered(running, reads, tmp_path)
    for then, now in zip(kept, found, strict=True):
        assert _without_what_is_new(now, then) == then


def _without_what_is_new(now: Any, then: Any) -> Any:
    """Remove members that the recorded answer lacks: a release may add members, but change none."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {name: _without_what_is_new(now[name], then[name]) for name in then if name in now}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [_without_what_is_new(*both) for both in zip(now, then, strict=True)]
    return now
