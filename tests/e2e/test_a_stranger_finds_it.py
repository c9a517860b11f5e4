"""A stranger is led to the revision, the position and the runs that it hurt, by commands alone."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.misconfigured_storm import (
    RULE,
    SPAWNS,
    WRONG_REVISION,
    StormRecord,
    blow,
    server_of_storm,
)
from tests.support.servers.preloaded import ROOT, run_command
from tests.support.servers.reloaded_server import ReloadedServer

pytestmark = pytest.mark.server
PAGE = ROOT / "docs" / "a-wrong-configuration.md"
COMMANDS_MAX = 10


@pytest.fixture(scope="module")
def storm(made_data_dir: Path) -> Iterator[tuple[ReloadedServer, StormRecord]]:
    with new_place() as place, server_of_storm(copied(made_data_dir, place / "data")) as server:
        yield server, blow(server)


def commands() -> list[list[str]]:
    """Those of the page, in its order, as a shell takes them apart."""
    return [
        shlex.split(line)[1:]
        for line in re.findall(r"^\$ (spawnlog .+)$", PAGE.read_text("utf-8"), re.M)
    ]


def test_the_page_leads_to_the_revision_the_position_and_the_runs(
    storm: tuple[ReloadedServer, StormRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, record = storm
    assert len(record.accepted) + len(record.refused) == sum(SPAWNS)
    assert record.refused
    monkeypatch.setenv("SPAWNLOG_URL", server.url)
    monkeypatch.setenv("SPAWNLOG_TOKEN", server.token)
    said: list[str] = []
    run_id = "RUN"
    statuses = []
    for words in commands():
        result = run_command(*[run_id if word == "RUN" else word for word in words])
        statuses.append(result.returncode)
        said.append(result.stdout)
        if found := re.search(r"^run +([0-9a-f-]{36})$", result.stdout, re.M):
            run_id = found.group(1) if run_id == "RUN" else run_id
    assert len(said) < COMMANDS_MAX
    assert statuses == [0, 0, 0, 0, 1, 1, 0, 0, 0]
    listed, first, explained, history, wrong, mended, since, last, hurt = said

    assert listed.count("refused") == 5
    assert run_id in record.refused
    assert f"revision {WRONG_REVISION}" in first
    assert re.search(rf"{RULE}\s+refused", explained)

    revisions = [line.split() for line in history.splitlines()[1:]]
    assert [int(row[0]) for row in revisions] == [3, 2, 1]
    positions = {int(row[0]): int(row[1]) for row in revisions}
    assert re.search(r"/agents/list/0/subagents/allowAgents/1 +\"reviewer\" +-", wrong)
    assert "maxConcurrent" in wrong
    assert "maxConcurrent" in mended
    assert "allowAgents" not in mended

    at = [int(re.findall(r"pos:([0-9]+)", text)[0]) for text in (first, since, last)]
    assert at[1] == positions[WRONG_REVISION]
    assert positions[2] < at[0] <= at[2] < positions[3]

    assert {json.loads(line)["runId"] for line in hurt.splitlines()} == record.refused


def test_how_it_was_in_the_middle_is_shown_too(
    storm: tuple[ReloadedServer, StormRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = storm
    monkeypatch.setenv("SPAWNLOG_URL", server.url)
    monkeypatch.setenv("SPAWNLOG_TOKEN", server.token)
    items = json.loads(run_command("config", "history", "-o", "json").stdout)["items"]
    middle = next(one for one in items if one["revision"] == WRONG_REVISION)
    at = f"pos:{middle['untilPosition'] - 1}"
    then = json.loads(run_command("config", "show", "--at", at).stdout)
    assert then["agents"]["list"][0]["subagents"]["allowAgents"] == ["writer"]
    agent = run_command("config", "show", "--at", at, "--agent", "main").stdout
    assert re.search(r"mayName +writer", agent)
    patch = json.loads(run_command("config", "diff", "2", "3", "-o", "json").stdout)
    assert patch == [
        {"op": "add", "path": "/agents/list/0/subagents/allowAgents/1", "value": "reviewer"}
    ]
    same = run_command("config", "diff", "3", "3")
    assert (same.returncode, same.stdout) == (0, "")
    nothing = run_command("event", "find", "--when", "running > 1000")
    assert (nothing.returncode, nothing.stdout) == (4, "")
    assert "nothing found up to pos:" in nothing.stderr
    wrong = run_command("event", "find", "--when", "runing > 1")
    assert wrong.returncode == 2
    assert 'column 1: there is no number "runing"; did you mean "running"?' in wrong.stderr
    peak = run_command("event", "find", "--when", "running > 0", "--limit", "5", "-o", "jsonl")
    found = [json.loads(line) for line in peak.stdout.splitlines()]
    assert 1 <= len(found) <= 5
    assert all((one["before"], one["after"]) == ({"running": 0}, {"running": 1}) for one in found)
    cap = run_command(
        "event", "find", "--session", "agent:main:book-1", "--field", "maxChildren", "--changes"
    )
    assert "after" in cap.stdout
    assert "maxChildren=20" in cap.stdout
