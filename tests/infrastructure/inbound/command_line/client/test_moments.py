"""The server reads a moment; the command line hands it over as it was typed."""

import pytest

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply


@pytest.mark.parametrize("ago", ["-2h", "-5m", "-7d", "-90s", "2h", "2w"])
def test_diff_takes_times_ago_as_arguments(spawnlog: Command, api: RecordedApi, ago: str) -> None:
    page = {"fromPosition": 1, "toPosition": 1, "added": [], "removed": [], "changed": []}
    api.on("GET", "/v1/diff", Reply({**page, "nextCursor": None}))
    assert spawnlog("diff", "pos:1", ago).exit_code == 0
    assert api.asked[0].query["to"] == ago.removeprefix("-")
    assert spawnlog("diff", "-h").exit_code == 0
    assert spawnlog("diff", "pos:1", "pos:2", "--sesion", "main").exit_code == 2


@pytest.mark.parametrize("ago", ["-12h", "12h", "1d", "pos:7"])
def test_every_option_takes_the_same_moments(spawnlog: Command, api: RecordedApi, ago: str) -> None:
    api.on("GET", "/v1/runs", Reply({"items": [], "nextCursor": None}))
    assert spawnlog("run", "list", "--since", ago, "--until", ago, "--at", ago).exit_code == 0
    query = api.asked[0].query
    assert (query["since"], query["until"], query["at"]) == (ago, ago, ago)


@pytest.mark.parametrize(
    ("typed", "seconds"), [("10m", 600), ("90s", 90), ("600", 600), ("1d", 86_400), ("0", 0)]
)
def test_timeout_is_a_duration(
    spawnlog: Command, api: RecordedApi, typed: str, seconds: int
) -> None:
    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": "r"}, 202))
    assert spawnlog("spawn", "wait", "--timeout", typed).exit_code == 0
    assert api.asked[0].body["runTimeoutSeconds"] == seconds


@pytest.mark.parametrize("typed", ["-10m", "10 minutes", "0.5s", "ten"])
def test_timeout_that_is_no_duration_is_refused(
    spawnlog: Command, api: RecordedApi, typed: str
) -> None:
    told = spawnlog("spawn", "wait", "--timeout", typed)
    assert told.exit_code == 2
    assert api.asked == []


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
    assert asked.body["from"] == "2w"
    assert asked.body["filter"]["runId"] == run_id
