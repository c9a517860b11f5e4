"""`spawnlog event histogram`: where in the log something went wrong, at a glance."""

from typing import Any

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

PATH = "/v1/events/histogram"


def bucket(first: int | None, events: int, **counts: Any) -> dict[str, Any]:
    return {
        "firstPosition": first,
        "lastPosition": None if first is None else first + events - 1,
        "firstAt": None,
        "lastAt": None,
        "since": "2026-03-01T09:00:00.000000Z",
        "until": "2026-03-01T09:01:00.000000Z",
        "events": events,
        "types": {},
        "outcomes": {},
        "rules": {},
        **counts,
    }


FOUND = {
    "by": "time",
    "after": 0,
    "until": 60,
    "countedTo": None,
    "items": [
        bucket(1, 40, outcomes={"success": 3}),
        bucket(None, 0),
        bucket(41, 20, outcomes={"error": 1, "success": 2}, rules={"active_children": 7}),
    ],
}


def test_each_line_says_how_much_there_was_and_what_went_wrong(
    api: RecordedApi, spawnlog: Command
) -> None:
    api.on("GET", PATH, Reply(FOUND))
    shown = spawnlog("event", "histogram", "--buckets", "3", "--from", "pos:0", "--tree", "main")
    assert shown.exit_code == 0, shown.output
    header, first, second, third = shown.stdout.splitlines()
    assert header.split() == ["FROM", "TO", "SINCE", "EVENTS", "ENDED", "REFUSED", "BY"]
    assert first.split()[:2] == ["1", "40"]
    assert first.count("█") == 2 * third.count("█") == 24
    assert "█" not in second
    assert "2 success, 1 error" in third
    assert third.endswith("7 active_children")
    (asked,) = api.asked
    assert dict(asked.query) == {"buckets": "3", "by": "time", "from": "pos:0", "tree": "main"}


def test_what_was_not_counted_is_said(api: RecordedApi, spawnlog: Command) -> None:
    api.on("GET", PATH, Reply(FOUND | {"countedTo": 44}))
    assert "only counted up to position 44" in spawnlog("event", "histogram").stderr


def test_another_unit_is_an_error_of_usage(spawnlog: Command) -> None:
    assert spawnlog("event", "histogram", "--by", "weight").exit_code == 2
    assert spawnlog("event", "histogram", "--buckets", "501").exit_code == 2
