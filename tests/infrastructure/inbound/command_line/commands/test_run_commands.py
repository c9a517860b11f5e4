"""`spawnlog run …` against a server."""

import json
from typing import Any

import pytest

from tests.support.builders.api_runs import FIRST, KEY, SECOND, listed, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem


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


def event(position: int, event_type: str, at: str, **payload: Any) -> dict[str, Any]:
    return {
        "position": position,
        "stream": f"run:{FIRST}",
        "version": position,
        "type": event_type,
        "recordedAt": at,
        "runId": FIRST,
        "payload": payload,
    }


def test_the_events_of_a_run_show_position_time_distance_type_and_facts(
    spawnlog: Command, api: RecordedApi
) -> None:
    events = [
        event(7, "SpawnRequested", "2026-03-01T09:30:00Z", requestedAgentId="counter"),
        event(9, "RunEnded", "2026-03-01T09:30:01.25Z", outcome="success", reason="exit"),
    ]
    api.on("GET", f"/v1/runs/{FIRST}/events", Reply({"items": events}))
    lines = spawnlog("run", "events", FIRST).stdout.splitlines()
    assert lines[1].split() == [
        *["7", "09:30:00.000", "+0.000s", "SpawnRequested", "agent", "counter"]
    ]
    assert lines[2].split()[2:] == ["+1.250s", "RunEnded", "success,", "exit"]


def test_the_transcript_is_read_to_its_end(spawnlog: Command, api: RecordedApi) -> None:
    def page(asked: Asked) -> Reply:
        after = int(asked.query.get("after", 0))
        entries = [
            {
                "sequence": number,
                "recordedAt": "2026-03-01T09:30:00Z",
                "kind": "message",
                "body": {"role": "assistant", "text": f"line {number}\x1b[1m"},
            }
            for number in range(after + 1, min(after + int(asked.query["limit"]), 60) + 1)
        ]
        return Reply({"items": entries, "nextAfter": entries[-1]["sequence"] if entries else after})

    api.on("GET", f"/v1/runs/{FIRST}/transcript", page)
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST)))
    result = spawnlog("run", "log", FIRST, "--after", "0")
    assert "[60] 09:30:00.000 message assistant" in result.stdout
    assert "    line 60\\x1b[1m" in result.stdout
    assert "\x1b" not in result.stdout
    assert "tools" not in api.asked[0].query
    assert "continues" not in result.stderr


def test_without_a_place_to_begin_at_the_last_entries_are_shown(
    spawnlog: Command, api: RecordedApi
) -> None:
    entry = {"sequence": 9, "recordedAt": None, "kind": "text", "body": {"text": "the end"}}
    api.on("GET", f"/v1/runs/{FIRST}/transcript", Reply({"items": [entry], "nextAfter": None}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST)))
    assert "the end" in spawnlog("run", "log", FIRST, "--limit", "3").stdout
    assert api.asked[0].query == {"last": "3"}


def test_a_transcript_says_which_run_was_before_it(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{SECOND}/transcript", Reply({"items": [], "nextAfter": None}))
    api.on("GET", f"/v1/runs/{SECOND}", Reply(run_of(SECOND, continues=FIRST)))
    result = spawnlog("run", "log", SECOND)
    assert f"this run continues run {FIRST}, which has a transcript of its own" in result.stderr


def test_a_cut_transcript_tells_how_to_go_on(spawnlog: Command, api: RecordedApi) -> None:
    entry = {"sequence": 3, "recordedAt": None, "kind": "tool", "body": {"name": "t", "input": {}}}
    api.on("GET", f"/v1/runs/{FIRST}/transcript", Reply({"items": [entry], "nextAfter": 3}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST)))
    result = spawnlog("run", "log", FIRST, "--limit", "1", "--tools", "--after", "2")
    assert "--after 3" in result.stderr
    assert "input: {}" in result.stdout
    assert api.asked[0].query == {"tools": "true", "after": "2", "limit": "1"}


def test_the_prompt_is_shown_with_its_parts(spawnlog: Command, api: RecordedApi) -> None:
    prompt = {
        "systemPrompt": "You are näive.\n",
        "message": "Count.",
        "parts": [{"of": "message", "source": "task", "start": 0, "end": 6, "sha256": "abc"}],
    }
    api.on("GET", f"/v1/runs/{FIRST}/prompt", Reply(prompt))
    stdout = spawnlog("run", "prompt", FIRST).stdout
    assert "=== system prompt (16 bytes) ===\nYou are näive.\n" in stdout
    assert "=== message (6 bytes) ===\nCount.\n" in stdout
    assert stdout.splitlines()[-1].split() == ["message", "task", "0", "6", "abc"]


def test_prompt_of_unstarted_run_exits_with_3(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{FIRST}/prompt", problem(409, detail="the run has not started"))
    result = spawnlog("run", "prompt", FIRST)
    assert result.exit_code == 3
    assert result.stderr == "refused: the run has not started\n"


RUN = "11111111-0000-4000-8000-000000000001"

PATH = f"/v1/runs/{RUN}/explain"


def rule(name: str, result: str, text: str) -> dict[str, Any]:
    return {
        "step": "admission",
        "rule": name,
        "result": result,
        "compared": {"callerDepth": 1} if result in ("passed", "refused") else None,
        "text": text,
        "position": 12,
        "configRevision": 3,
    }


def explanation(**changes: Any) -> dict[str, Any]:
    plain = {
        "runId": RUN,
        "stage": "refused",
        "configRevision": 3,
        "decisions": [
            rule("mode", "passed", 'mode "run" with thread false'),
            rule("depth", "refused", "depth 1 is not below maxSpawnDepth 1"),
            rule("active_children", "not_judged", '"depth" refused the spawn before'),
        ],
        "refused": {
            "rule": "depth",
            "status": "forbidden",
            "step": "admission",
            "text": "sessions_spawn is not allowed at this depth (current depth: 1, max: 1)",
            "current": 1,
            "limit": 1,
        },
    }
    return plain | changes


def test_each_rule_is_a_line_with_what_came_of_it(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", PATH, Reply(explanation()))
    result = spawnlog("run", "explain", RUN)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["RULE", "RESULT", "WHAT"]
    assert lines[1].split()[:2] == ["mode", "passed"]
    assert lines[2].endswith("refused     depth 1 is not below maxSpawnDepth 1")
    assert lines[3].split()[:3] == ["active_children", "not", "judged"]
    assert f"run {RUN}, refused, under configuration revision 3" in result.stderr


def test_a_refusal_is_told_in_the_words_of_its_caller(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", PATH, Reply(explanation()))
    lines = spawnlog("run", "explain", RUN).stdout.splitlines()
    assert lines[-2:] == [
        "refused by rule depth (forbidden):",
        "sessions_spawn is not allowed at this depth (current depth: 1, max: 1)",
    ]


def test_a_run_that_was_not_refused_has_rules_alone(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", PATH, Reply(explanation(refused=None, stage="queued")))
    result = spawnlog("run", "explain", RUN)
    assert len(result.stdout.splitlines()) == 4
    assert "refused by" not in result.stdout


HISTORY = f"/v1/runs/{FIRST}/history"


def change(version: int, kind: str, stage: str) -> dict[str, Any]:
    return {
        "position": 10 * version,
        "version": version,
        "type": kind,
        "recordedAt": "2026-03-01T09:30:00.125Z",
        "actor": {"kind": "system", "token": None, "session": None},
        "changes": [
            {"op": "add", "path": "/stage", "value": stage},
            {"op": "add", "path": "/requesterSessionKey", "value": "agent:main:main"},
        ],
    }


CHANGES = [change(1, "SpawnRequested", "requested"), change(2, "RunQueued", "queued")]

SET_BY = {"stage": {"position": 20, "version": 2, "type": "RunQueued"}}


def history(items: list[dict[str, Any]], following: int | None = None) -> Reply:
    body = {"runId": FIRST, "version": 2, "items": items, "setBy": SET_BY}
    return Reply({**body, "nextAfter": following})


def test_a_history_is_a_line_for_each_event_over_all_pages(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", HISTORY, history(CHANGES[:1], 1), history(CHANGES[1:]))
    result = spawnlog(
        "run", "history", FIRST, "--field", "stage", "--field", "/a/b", "--at", "pos:9"
    )
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["POSITION", "VERSION", "TIME", "EVENT", "BY", "CHANGES"]
    assert "stage=requested" in lines[1]
    assert lines[2].split()[:2] == ["20", "2"]
    assert [one.query["after"] for one in api.asked] == ["0", "1"]
    assert api.asked[0].query["at"] == "pos:9"
    assert api.asked[0].query["field"] == "/a/b", "the last of several"


@pytest.mark.parametrize("option", ["--after", "--limit"])
def test_set_by_takes_no_page(spawnlog: Command, api: RecordedApi, option: str) -> None:
    result = spawnlog("run", "history", FIRST, "--set-by", option, "1")
    assert (result.exit_code, api.asked) == (2, [])
    assert f"{option} " in result.stderr


def test_who_set_a_field_is_shown_instead(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", HISTORY, history(CHANGES))
    result = spawnlog("run", "history", FIRST, "--set-by")
    assert result.stdout.splitlines()[1].split() == ["stage", "20", "2", "RunQueued"]
    api.on("GET", HISTORY, history(CHANGES))
    whole = json.loads(spawnlog("run", "history", FIRST, "-o", "json").stdout)
    assert (whole["items"], whole["setBy"], whole["more"]) == (CHANGES, SET_BY, False)
    lines = spawnlog("run", "history", FIRST, "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == CHANGES


def diff_page(cursor: str | None = None, **members: Any) -> Reply:
    body = {"fromPosition": 5, "toPosition": 20, "added": [], "removed": [], "changed": []}
    revisions = {"fromConfigRevision": 1, "toConfigRevision": 1}
    return Reply({**body, **revisions, **members, "nextCursor": cursor})


def item(id: str, *patch: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "run", "id": id, "label": "reviewer", "patch": list(patch)}


def test_another_configuration_is_a_difference_of_the_whole_registry_alone(
    spawnlog: Command, api: RecordedApi
) -> None:
    reloaded = diff_page(toConfigRevision=2)
    api.on("GET", "/v1/diff", reloaded, reloaded)
    whole = spawnlog("diff", "pos:5", "pos:20")
    assert whole.exit_code == 1
    assert "the configuration in force was revision 1 then 2" in whole.stdout + whole.stderr
    part = spawnlog("diff", "pos:5", "pos:20", "--tree", "main")
    assert part.exit_code == 0
    assert "revision 1 then 2" in part.stdout + part.stderr


def test_a_diff_has_a_line_for_each_that_changed_and_says_so_by_its_status(
    spawnlog: Command, api: RecordedApi
) -> None:
    state = {"stage": "refused", "status": "refused", "rule": "depth", "outcome": None}
    new = item(SECOND, {"op": "replace", "path": "", "value": state})
    patch = {"op": "replace", "path": "/stage", "value": "ended"}
    api.on("GET", "/v1/diff", diff_page("c", added=[new]), diff_page(changed=[item(FIRST, patch)]))
    result = spawnlog("diff", "-5m", "pos:20", "--tree", "main")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["CHANGE", "added", "changed"]
    assert lines[1].endswith("status=refused, rule=depth")
    assert "stage=ended" in lines[2]
    assert "pos:5 to pos:20: 1 added, 0 removed, 1 changed" in result.stderr
    first, second = api.asked
    assert (first.query["from"], first.query["to"], first.query["tree"]) == (
        "5m",
        "pos:20",
        "main",
    )
    assert second.query["cursor"] == "c"


def test_a_diff_in_which_nothing_changed_is_fine(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/diff", diff_page())
    assert spawnlog("diff", "pos:5", "pos:20", "--run", FIRST).exit_code == 0
    assert api.asked[0].query["runId"] == FIRST
    found = spawnlog("diff", "pos:5", "pos:20", "-o", "json")
    assert json.loads(found.stdout)["changed"] == []
    api.on("GET", "/v1/diff", problem(403, code="not_permitted", detail="whole-log"))
    assert spawnlog("diff", "pos:5", "pos:20").exit_code == 3
    api.on("GET", "/v1/diff", diff_page(removed=[item(FIRST)]))
    lines = spawnlog("diff", "pos:5", "pos:20", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["change"] for line in lines] == ["removed"]


def comparison(same: bool, **members: Any) -> Reply:
    run = {"runId": FIRST, "label": "a", "stage": "announced", "status": "done"}
    section = {"same": True, "left": {"task": "x"}, "right": {"task": "x"}, "erased": []}
    return Reply(
        {
            "same": same,
            "left": run,
            "right": {**run, "runId": SECOND, "label": "b"},
            "request": section,
            "decisions": [],
            "plan": section,
            "prompt": {"same": True, "parts": []},
            "transcript": {"same": True, "equalEntries": 3, "firstDifference": None},
            "outcome": section,
            **members,
        }
    )


def test_a_comparison_has_a_line_for_what_differs(spawnlog: Command, api: RecordedApi) -> None:
    decision = {
        "rule": "depth",
        "same": False,
        "left": {"result": "passed", "text": "depth 0"},
        "right": None,
    }
    same_words = {
        "rule": "workspace",
        "same": False,
        "left": {"result": "passed", "text": "it is used", "compared": {"made": True, "given": 1}},
        "right": {"result": "passed", "text": "it is used", "compared": {"made": None, "given": 1}},
    }
    part = {
        "of": "message",
        "source": "task",
        "verdict": "left_only",
        "left": {"bytes": 5, "sha256": None},
        "right": None,
        "diff": "-old\n+new\x1b[2J",
    }
    first = {"left": {"sequence": 4, "kind": "message", "body": {"text": "hi"}}, "right": None}
    api.on(
        "GET",
        f"/v1/runs/{FIRST}/compare",
        comparison(
            False,
            plan={"left": {"model": "one"}, "right": {"model": "two"}, "erased": ["task"]},
            decisions=[decision, same_words],
            prompt={"same": False, "parts": [part]},
            transcript={"same": False, "equalEntries": 3, "firstDifference": first},
        ),
    )
    result = spawnlog("run", "compare", FIRST, SECOND)
    assert result.exit_code == 1
    assert api.asked[-1].query["with"] == SECOND
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["PART", "WHAT", "LEFT", "RIGHT"]
    assert ["plan", "model", "one", "two"] in rows
    assert ["plan", "task", "erased", "erased"] in rows
    assert ["decision", "depth", "passed:", "depth", "0"] in rows
    assert ["decision", "workspace", "made", "true", "made", "null"] in rows
    assert any(row[:1] == ["transcript"] and row[-2:] == ["the", "end"] for row in rows)
    assert "+new\\x1b[2J" in result.stdout
    assert "\x1b" not in result.stdout


def test_runs_that_are_the_same_compare_as_fine(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{FIRST}/compare", comparison(True))
    result = spawnlog("run", "compare", FIRST, SECOND)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing differs" in result.stderr
    assert json.loads(spawnlog("run", "compare", FIRST, SECOND, "-o", "json").stdout)["same"]
    spawnlog("run", "compare", FIRST, SECOND, "--at", "-5m")
    assert api.asked[-1].query == {"with": SECOND, "at": "-5m"}


# Step, by lines.


def test_a_walk_is_told_by_lines_where_there_is_no_terminal(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", HISTORY, history(CHANGES))
    result = spawnlog("run", "step", FIRST, given="n\nn\nrequested\nnonsense\nq\nn\n")
    assert result.exit_code == 0
    heads = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("event ")]
    assert heads == ["1", "2", "2", "1", "1"]
    assert "this is the last event" in result.stdout
    assert "no command, and no stage of this run (requested, queued)" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_walk_ends_with_its_input(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", HISTORY, history(CHANGES))
    assert spawnlog("run", "step", FIRST, given="").exit_code == 0
    result = spawnlog("run", "step", FIRST, "-o", "jsonl", given="n\n")
    steps = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["version"] for one in steps] == [1, 2]
    assert steps[1]["state"]["stage"] == "queued"
    assert steps[1]["changes"] == [{"field": "stage", "before": "requested", "after": "queued"}]
    api.on("GET", HISTORY, history([]))
    assert spawnlog("run", "step", FIRST, given="").exit_code == 2


def test_what_else_the_tree_did_is_asked_for_when_it_is_wanted(
    spawnlog: Command, api: RecordedApi
) -> None:
    def event(position: int, stream: str) -> dict[str, Any]:
        return {"position": position, "stream": stream, "type": "RunQueued", "payload": {}}

    api.on("GET", HISTORY, history(CHANGES))
    api.on("GET", "/v1/sessions/agent%3Amain%3Amain", Reply({"rootSessionKey": "agent:main:main"}))
    events = [event(12, "run:other"), event(15, f"run:{FIRST}"), event(21, "run:later")]
    api.on("GET", "/v1/events", Reply({"items": events, "nextAfter": 30, "head": 30}))
    result = spawnlog("run", "step", FIRST, given="t\nn\nt\n")
    assert result.exit_code == 0
    assert "run:other" in result.stdout
    assert "run:later" not in result.stdout
    assert f"run:{FIRST}" not in result.stdout
    asked = [one for one in api.asked if one.path == "/v1/events"]
    assert [(one.query["after"], one.query["tree"]) for one in asked] == [("10", "agent:main:main")]
    api.on("GET", "/v1/events", problem(403, code="not_permitted", detail="only one run"))
    assert "only one run" in spawnlog("run", "step", FIRST, given="n\nt\n").stdout
