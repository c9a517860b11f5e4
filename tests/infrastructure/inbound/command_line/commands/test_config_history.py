"""`spawnlog config history`, `config diff` and `config show --at`."""

import json
from typing import Any

import pytest

from application.queries.changes.json_patch import apply_patch
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

REVISIONS = "/v1/config/revisions"
CONTENTS: dict[int, Any] = {
    1: {"agents": {"list": [{"id": "main"}, {"id": "writer", "model": "a/b"}]}},
    2: {"agents": {"list": [{"id": "writer", "model": "a/c"}]}, "x": "\x1b[2J"},
    3: None,
}


def revision(number: int) -> dict[str, Any]:
    is_newest = number == max(CONTENTS)
    return {
        "revision": number,
        "position": number * 10,
        "activatedAt": "2026-03-01T09:30:00Z",
        "activatedBy": "system",
        "source": "spawnlog.json5",
        "untilPosition": None if is_newest else number * 10 + 10,
        "untilAt": None if is_newest else "2026-03-01T09:31:00Z",
        "bytes": 412,
        "erased": CONTENTS[number] is None,
    }


@pytest.fixture(autouse=True)
def _served(api: RecordedApi) -> None:
    items = [revision(number) for number in sorted(CONTENTS, reverse=True)]
    api.on("GET", REVISIONS, Reply({"items": items, "nextCursor": None}))
    for number, content in CONTENTS.items():
        api.on("GET", f"{REVISIONS}/{number}", Reply({**revision(number), "content": content}))


def test_the_history_says_what_was_active_when(spawnlog: Command, api: RecordedApi) -> None:
    lines = spawnlog("config", "history", "--at", "pos:40").stdout.splitlines()
    assert api.asked[0].query == {"at": "pos:40", "limit": "50"}
    assert lines[1].split() == [
        *("3", "30", "2026-03-01", "09:30:00.000", "now", "system", "spawnlog.json5", "(erased)"),
    ]
    assert lines[2].split()[:2] == ["2", "20"]


def test_a_difference_is_shown_place_by_place_and_is_exit_status_1(spawnlog: Command) -> None:
    result = spawnlog("config", "diff", "1", "2")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["WHERE", "BEFORE", "AFTER"]
    assert ["/agents/list/0", '{"id":', '"main"}', "-"] in rows
    assert ["/agents/list/0/model", '"a/b"', '"a/c"'] in rows
    assert ["/x", "-", '"\\u001b[2J"'] in rows


def test_as_json_it_is_a_patch_that_leads_from_one_to_the_other(spawnlog: Command) -> None:
    whole = spawnlog("config", "diff", "1", "2", "-o", "json")
    lines = spawnlog("config", "diff", "1", "2", "-o", "jsonl").stdout.splitlines()
    patch = json.loads(whole.stdout)
    assert whole.exit_code == 1
    assert [json.loads(line) for line in lines] == patch
    assert apply_patch(patch, CONTENTS[1]) == CONTENTS[2]


def test_no_difference_is_exit_status_0(spawnlog: Command) -> None:
    result = spawnlog("config", "diff", "2", "2")
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(spawnlog("config", "diff", "2", "2", "-o", "json").stdout) == []


def test_without_another_one_it_is_the_active_one_and_what_was_erased_is_said(
    spawnlog: Command,
) -> None:
    result = spawnlog("config", "diff", "1")
    assert result.exit_code == 4
    assert "the text of revision 3 was erased" in result.stderr


def test_show_at_is_what_was_active_then(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", REVISIONS, Reply({"items": [revision(1)], "nextCursor": None}))
    shown = spawnlog("config", "show", "--at", "pos:12")
    assert json.loads(shown.stdout) == CONTENTS[1]
    assert api.asked[0].query == {"at": "pos:12", "limit": "1"}
    effective = spawnlog("config", "show", "--at", "pos:12", "--effective")
    assert json.loads(effective.stdout)["spawnlog"]["leaseSeconds"] == 15
    agent = spawnlog("config", "show", "--at", "pos:12", "--agent", "writer")
    assert ["model", "a/b", "agents.list[1].model"] in [
        line.split() for line in agent.stdout.splitlines()
    ]
    both = spawnlog("config", "show", "file.json5", "--at", "pos:12")
    assert both.exit_code == 2
    assert "leave FILE out" in both.stderr


def test_before_the_first_revision_there_is_none(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", REVISIONS, Reply({"items": [], "nextCursor": None}))
    assert spawnlog("config", "show", "--at", "pos:0").exit_code == 4
