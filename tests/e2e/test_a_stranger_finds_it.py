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
from tests.support.servers.server import Server

pytestmark = [pytest.mark.server, pytest.mark.nightly]
PAGE = ROOT / "docs" / "a-wrong-configuration.md"
COMMANDS_MAX = 10


@pytest.fixture(scope="module")
def storm(made_data_dir: Path) -> Iterator[tuple[Server, StormRecord]]:
    with new_place() as place, server_of_storm(copied(made_data_dir, place / "data")) as server:
        yield server, blow(server)


def commands() -> list[list[str]]:
    """Those of the page, in its order, as a shell takes them apart."""
    return [
        shlex.split(line)[1:]
        for line in re.findall(r"^\$ (spawnlog .+)$", PAGE.read_text("utf-8"), re.M)
    ]


def test_the_page_leads_to_the_revision_the_position_and_the_runs(
    storm: tuple[Server, StormRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, record = storm
    assert len(record.accepted) + len(record.refused) == sum(SPAWNS)
    assert record.refused
    monkeypatch.setenv("SPAWNLOG_URL", server.url)
    monkeypatch.setenv("SPAWNLOG_TOKEN", server.token)
    said: list[str] = []
    statuses = []
    # What the page calls by a word, and what of the output so far it is.
    found: dict[str, str] = {}
    for words in commands():
        for word, value in found.items():
            words = [re.sub(rf"\b{word}\b", value, one) for one in words]
        result = run_command(*words)
        assert result.stdout, (words, result.stderr)
        statuses.append(result.returncode)
        said.append(result.stdout)
        if run := re.search(r"^run +([0-9a-f-]{36})$", result.stdout, re.M):
            found.setdefault("RUN", run.group(1))
        if words[:2] == ["config", "history"]:
            (row,) = re.findall(rf"^ +{WRONG_REVISION} .*$", result.stdout, re.M)
            _, found["FROM"], *_, found["UNTIL"], _, _ = row.split()
    assert len(said) < COMMANDS_MAX
    assert statuses == [0, 0, 0, 0, 1, 1, 0, 0, 0]
    counts, first, explained, history, wrong, changed, what_if, anew, hurt = said

    assert RULE in counts
    assert found["RUN"] in record.refused
    assert f"revision {WRONG_REVISION}" in first
    assert re.search(rf"{RULE}\s+refused", explained)

    revisions = [line.split() for line in history.splitlines()[1:]]
    assert [int(row[0]) for row in revisions] == [3, 2, 1]
    positions = {int(row[0]): int(row[1]) for row in revisions}
    assert (int(found["FROM"]), int(found["UNTIL"])) == (positions[2], positions[3])
    assert re.search(r"/agents/list/0/subagents/allowAgents/1 +\"reviewer\" +-", wrong)
    assert "maxConcurrent" in wrong
    at = int(re.findall(r"pos:([0-9]+)", first)[0])
    assert positions[2] < at < positions[3]

    listed = {json.loads(line)["runId"] for line in hurt.splitlines()}
    assert listed == record.refused
    refused = rf"^added +run +\S+ +([0-9a-f-]{{36}}) +status=refused, rule={RULE},"
    assert set(re.findall(refused, changed, re.M)) == record.refused

    assert re.search(rf"newly-allowed +{len(record.refused)}$", what_if, re.M)
    assert "newly-refused" not in what_if.split("AGENT")[0]
    assert anew.strip() == "done"
    made = run_command("run", "list", "--respawned-from", found["RUN"], "-o", "jsonl")
    assert json.loads(made.stdout)["status"] == "done"


def test_how_it_was_in_the_middle_is_shown_too(
    storm: tuple[Server, StormRecord], monkeypatch: pytest.MonkeyPatch
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
    mended = run_command("config", "diff", "1", "3").stdout
    assert "maxConcurrent" in mended
    assert "allowAgents" not in mended
    since = run_command("event", "find", "--when", f"config >= {WRONG_REVISION}").stdout
    last = run_command("event", "find", "--rule", RULE, "--last").stdout
    at_positions = [int(re.findall(r"pos:([0-9]+)", text)[0]) for text in (since, last)]
    assert at_positions[0] == middle["position"] < at_positions[1] < middle["untilPosition"]
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
    its_cap = ("--session", "agent:main:book-1", "--field", "maxChildren")
    cap = run_command("event", "find", *its_cap, "--changes", "-o", "json")
    (begun,) = json.loads(cap.stdout)["items"]
    assert (begun["before"], begun["after"]) == ({"maxChildren": None}, {"maxChildren": 20})
    assert begun["event"]["type"] == "SessionObserved"
    assert begun["event"]["stream"] == "session:agent:main:book-1"
    behind = ("--from", f"pos:{middle['untilPosition']}", "-o", "json")
    searched = run_command("event", "find", *its_cap, "--becomes", "20", *behind)
    (held,) = json.loads(searched.stdout)["items"]
    assert (held["alreadyHeld"], held["position"]) == (True, middle["untilPosition"])
