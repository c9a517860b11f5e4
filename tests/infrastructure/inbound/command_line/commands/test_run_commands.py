"""`spawnlog run …` against a server."""

import json

import pytest

from tests.support.builders.api_runs import FIRST, KEY, SECOND, listed, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply


def test_the_list_shows_a_place_and_a_short_name_for_each_run(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST), run_of(SECOND, status="failed")))
    result = spawnlog("run", "list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1].split()[:4] == ["#1", "11111111", "done", "counter"]
    assert lines[2].split()[:3] == ["#2", "22222222", "failed"]
    assert "Count the words" in lines[1]


def test_a_request_carries_the_token_and_asks_for_json(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed())
    spawnlog("run", "list")
    assert api.asked[0].headers["authorization"] == "Bearer a-token"
    assert api.asked[0].headers["accept"] == "application/json"


def test_filters_go_to_the_server_and_places_are_left_out(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST)))
    result = spawnlog("run", "list", "--agent", "counter", "--status", "done", "--limit", "7")
    assert api.asked[0].query == {"agentId": "counter", "status": "done", "limit": "7"}
    assert "#1" not in result.stdout


def test_a_long_list_is_read_page_by_page(spawnlog: Command, api: RecordedApi) -> None:
    def page(asked: Asked) -> Reply:
        start = int(asked.query.get("cursor", 0))
        size = int(asked.query["limit"])
        runs = [run_of(FIRST, label=f"run-{start + offset}") for offset in range(size)]
        return Reply({"items": runs, "nextCursor": str(start + size)})

    api.on("GET", "/v1/runs", page)
    result = spawnlog("run", "list", "--limit", "700", "--output", "jsonl")
    assert [asked.query["limit"] for asked in api.asked] == ["500", "200"]
    labels = [json.loads(line)["label"] for line in result.stdout.splitlines()]
    assert labels == [f"run-{number}" for number in range(700)]


def test_json_is_one_document_that_says_whether_there_is_more(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", Reply({"items": [run_of(FIRST)], "nextCursor": "c"}))
    printed = json.loads(spawnlog("run", "list", "--limit", "1", "-o", "json").stdout)
    assert printed["items"][0]["runId"] == FIRST
    assert printed["more"] is True


def test_a_run_is_found_by_its_full_id_with_one_question(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, resultText="12 words")))
    result = spawnlog("run", "get", FIRST)
    assert result.exit_code == 0
    assert "12 words" in result.stdout
    assert len(api.asked) == 1


@pytest.mark.parametrize("name", ["last", "#1", "1111", "harbour", KEY])
def test_a_run_is_found_by_every_kind_of_name(
    name: str, spawnlog: Command, api: RecordedApi
) -> None:
    def runs(asked: Asked) -> Reply:
        wanted = asked.query.get("label")
        found = run_of(FIRST, label="harbour")
        return listed(*([found] if wanted in (None, "harbour") else []))

    api.on("GET", "/v1/runs", runs)
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST)))
    assert spawnlog("run", "get", name).exit_code == 0
    assert api.asked[-1].path == f"/v1/runs/{FIRST}"


def test_a_name_that_nothing_has_exits_with_4(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed())
    result = spawnlog("run", "get", "nobody")
    assert result.exit_code == 4
    assert 'no run is called "nobody"' in result.stderr
    assert result.stdout == ""


def test_an_unknown_id_exits_with_4(spawnlog: Command) -> None:
    assert spawnlog("run", "get", FIRST).exit_code == 4


def test_an_ambiguous_name_exits_with_2_and_tells_the_candidates(
    spawnlog: Command, api: RecordedApi
) -> None:
    other = run_of(SECOND, label="same", childSessionKey=f"{KEY[:-1]}8")
    api.on("GET", "/v1/runs", listed(run_of(FIRST, label="same"), other))
    result = spawnlog("run", "get", "same")
    assert result.exit_code == 2
    assert FIRST in result.stderr
    assert SECOND in result.stderr


def test_a_label_that_runs_of_one_child_share_means_the_newest_and_is_not_exact(
    spawnlog: Command, api: RecordedApi
) -> None:
    newest = run_of(SECOND, label="same", continues=FIRST)
    api.on("GET", "/v1/runs", listed(newest, run_of(FIRST, label="same")))
    api.on("GET", f"/v1/runs/{SECOND}", Reply(newest))
    result = spawnlog("run", "get", "same")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == ["run", SECOND]
    assert ["continues", FIRST] in [line.split() for line in result.stdout.splitlines()]
    assert spawnlog("run", "stop", "same").exit_code == 2
    assert not [asked for asked in api.asked if asked.method == "POST"]


def test_a_list_says_which_run_another_one_continues(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST)))
    assert "CONTINUES" not in spawnlog("run", "list").stdout
    api.on("GET", "/v1/runs", listed(run_of(SECOND, continues=FIRST), run_of(FIRST)))
    lines = spawnlog("run", "list").stdout.splitlines()
    at = lines[0].index("CONTINUES")
    assert [line[at : at + 8].strip() for line in lines[1:]] == [FIRST[:8], ""]


def test_a_name_beyond_what_is_searched_is_not_guessed(spawnlog: Command, api: RecordedApi) -> None:
    def page(asked: Asked) -> Reply:
        if "label" in asked.query:
            return listed()
        runs = [
            run_of(f"{SECOND[:-1]}{number % 10}") for number in range(int(asked.query["limit"]))
        ]
        return Reply({"items": runs, "nextCursor": "further"})

    api.on("GET", "/v1/runs", page)
    result = spawnlog("run", "get", "abcd")
    assert result.exit_code == 2
    assert "give the full id" in result.stderr


def test_a_run_whose_agent_was_overridden_says_so(spawnlog: Command, api: RecordedApi) -> None:
    run = run_of(FIRST, agentId="main", requestedAgentId="steward", warnings=["no price"])
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run))
    stdout = spawnlog("run", "get", FIRST).stdout
    assert "main (asked for: steward)" in stdout
    assert "no price" in stdout


def test_a_stop_by_full_id_asks_nothing(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", f"/v1/runs/{FIRST}/stop", Reply({}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, status="stopped")))
    result = spawnlog("run", "stop", FIRST, "--reason", "enough")
    assert result.exit_code == 0
    assert api.asked[0].body == {"reason": "enough"}
    assert len(api.asked[0].headers["idempotency-key"]) == 36
    assert result.stdout == f"run {FIRST} is stopped\n"


def test_a_stop_by_place_needs_a_yes_where_nobody_can_be_asked(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST)))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, status="stopped")))
    api.on("POST", f"/v1/runs/{FIRST}/stop", Reply({}))
    refused = spawnlog("run", "stop", "last")
    assert refused.exit_code == 2
    assert FIRST in refused.stderr
    assert not [asked for asked in api.asked if asked.method == "POST"]
    assert spawnlog("run", "stop", "last", "--yes").exit_code == 0
    assert [asked.path for asked in api.asked if asked.method == "POST"] == [
        f"/v1/runs/{FIRST}/stop"
    ]


def test_a_stop_by_unique_label_asks_nothing(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST, label="harbour")))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, stage="ended", status="stopped")))
    api.on("POST", f"/v1/runs/{FIRST}/stop", Reply({}))
    assert spawnlog("run", "stop", "harbour").exit_code == 0


def test_what_cannot_be_removed_is_told_with_its_place_and_why(
    spawnlog: Command, api: RecordedApi
) -> None:
    step = {
        "step": "attachments",
        "root": "/srv/work",
        "relative": ".openclaw/attachments/x",
        "failures": 3,
        "nextAttemptAt": "2026-03-01T09:30:00.125Z",
        "error": "Permission denied\x1b",
    }
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, undoing=[step])))
    result = spawnlog("run", "get", FIRST)
    assert (
        "to undo  attachments, .openclaw/attachments/x of /srv/work, failed 3 time(s),"
        " next attempt 2026-03-01 09:30:00.125: Permission denied\\x1b\n"
    ) in result.stdout


def test_a6_all_that_a_session_has_at_work_is_stopped(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/sessions/main", Reply({"sessionKey": "main", "activeRuns": [FIRST]}))
    api.on("POST", f"/v1/runs/{FIRST}/stop", Reply({}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, status="stopped")))
    assert spawnlog("run", "stop", "all").exit_code == 2
    result = spawnlog("run", "stop", "all", "--yes")
    assert (result.exit_code, result.stdout) == (0, "1 run is stopped\n")
    api.on("GET", "/v1/sessions/main", Reply({"sessionKey": "main", "activeRuns": []}))
    assert spawnlog("run", "stop", "all").stdout == "no run is at work\n"


def test_list_of_refused_runs_names_the_rule(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST, status="refused", rule="max_children")))
    result = spawnlog("run", "list", "--status", "refused")
    head, row = result.stdout.splitlines()
    assert row[head.index("RULE") :].startswith("max_children")
    api.on("GET", "/v1/runs", listed(run_of(FIRST)))
    assert "RULE" not in spawnlog("run", "list").stdout
