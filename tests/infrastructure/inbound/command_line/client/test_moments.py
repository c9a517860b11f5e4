"""A length of time is so long ago, with or without its minus."""

import pytest

from infrastructure.inbound.command_line.client.moments import moment_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("7d", "-7d"),
        ("-7d", "-7d"),
        ("-2h", "-2h"),
        ("2w", "-14d"),
        ("pos:7", "pos:7"),
        ("run:reviewer@started", "run:reviewer@started"),
        ("2026-03-01T09:00:00Z", "2026-03-01T09:00:00Z"),
        ("7 days", "7 days"),
    ],
)
def test_what_is_meant(typed: str, meant: str) -> None:
    assert moment_of(typed) == meant


@pytest.mark.parametrize("ago", ["-2h", "-5m", "-7d", "-90s", "2h"])
def test_a_diff_takes_each_as_a_moment_and_not_as_an_option(
    spawnlog: Command, api: RecordedApi, ago: str
) -> None:
    page = {"fromPosition": 1, "toPosition": 1, "added": [], "removed": [], "changed": []}
    api.on("GET", "/v1/diff", Reply({**page, "nextCursor": None}))
    assert spawnlog("diff", "pos:1", ago).exit_code == 0
    assert api.asked[0].query["to"] == f"-{ago.removeprefix('-')}"
    assert spawnlog("diff", "-h").exit_code == 0
    assert spawnlog("diff", "pos:1", "pos:2", "--sesion", "main").exit_code == 2


def test_what_if_lets_the_server_count_back_and_finds_its_run_by_name(
    spawnlog: Command, api: RecordedApi
) -> None:
    run_id = "11111111-0000-4000-8000-000000000001"
    totals = {"decisions": 0, "fromPosition": 1, "toPosition": 1, "byVerdict": {}}
    line = {"totals": {**totals, "byAgent": {}, "byRule": {}}}
    api.on("POST", "/v1/what-if", Reply(line, content_type="application/x-ndjson"))
    api.on("GET", "/v1/runs", Reply({"items": [{"runId": run_id, "label": "late"}]}))
    told = spawnlog("what-if", "--set", "/a=1", "--since", "2w", "--run", "late")
    assert told.exit_code == 0, told.output
    asked = next(one for one in api.asked if one.path == "/v1/what-if")
    assert asked.body["from"] == "-14d"
    assert asked.body["filter"]["runId"] == run_id
