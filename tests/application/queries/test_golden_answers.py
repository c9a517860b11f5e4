"""Past answers never change: those that were kept are given by every later release."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.golden_answers import FOLDER, LATER, WORDED, answered, bring_up
from tests.support.builders.golden_databases import FOLDER as DATABASES
from tests.support.builders.reads_of_the_past import QUESTIONS, Read
from tests.support.servers.running_log import running_on


def test_there_are_some_of_the_databases_since_they_are_kept() -> None:
    kept = {path.stem for path in FOLDER.iterdir()}
    assert {"0007", "0010"} <= kept
    assert kept <= {path.stem for path in DATABASES.iterdir()}


@pytest.mark.server
@pytest.mark.parametrize("revision", sorted(path.stem for path in FOLDER.iterdir()))
async def test_what_was_answered_once_is_answered_still(
    empty_database_url: str, tmp_path: Path, revision: str
) -> None:
    lines = (FOLDER / f"{revision}.jsonl").read_text("utf-8").splitlines()
    kept: list[dict[str, Any]] = [json.loads(line) for line in lines]
    later = LATER.get(revision, frozenset())
    assert {one["operation"] for one in kept} == set(QUESTIONS) - WORDED - later
    assert len({one["at"] for one in kept}) > 2
    await bring_up(empty_database_url, revision)
    reads = [(Read(one["operation"], one["about"]), int(one["at"])) for one in kept]
    async with running_on(empty_database_url) as running:
        found = await answered(running, reads, tmp_path)
    for then, now in zip(kept, found, strict=True):
        assert _without_what_is_new(now, then) == then


def _without_what_is_new(now: Any, then: Any) -> Any:
    """Members of objects that were not there then are left out: more may be said, never else."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {name: _without_what_is_new(now[name], then[name]) for name in then if name in now}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [_without_what_is_new(*both) for both in zip(now, then, strict=True)]
    return now
