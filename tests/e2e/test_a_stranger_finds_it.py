"""Commands alone lead to the revision, the position and the affected runs."""

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
    """Return the commands of the page, in order, split as by a shell."""
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
    output: list[str] = []
    statuses = []
    # Placeholders of the page, such as RUN, with their values from the output so far.
    found: dict[str, str] = {}
    for words in commands():
        for word, value in found.items():
            words = [re.sub(rf"\b{word}\b", value, item) for item in words]
        result = run_command(*words)
        assert result.stdout, (words, result.stderr)
        statuses.append(result.returncode)
        output.append(result.stdout)
        if run := re.search(r"^run +([0-9a-f-]{36})$", result.stdout, re.M):
            found.setdefault("RUN", run.group(1))
        if words[:2] == ["config", "history"]:
            (row,) = re.findall(rf"^ +{WRONG_REVISION} .*$", result.stdout, re.M)
            _, found["FROM"], *_, found["UNTIL"], _, _ = row.split()
    assert len(output) < COMMANDS_MAX
    assert statuses == [0, 0, 0, 0, 1, 1, 0, 0, 0]
    counts, first, explained, history, wrong, changed, what_if, anew, hurt = output

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
