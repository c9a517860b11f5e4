"""`spawnlog run …` and `diff` against a server."""

import json
from typing import Any

import pytest

from infrastructure.inbound.command_line.commands.run import stop
from tests.support.builders.api_runs import FIRST, KEY, SECOND, listed, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

RUN = f"/v1/runs/{FIRST}"
AT = "2026-03-01T09:30:00Z"


def posts(api: RecordedApi) -> list[str]:
    return [request.path for request in api.asked if request.method == "POST"]


# Lists.


def test_list_shows_place_and_short_name(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST), run_of(SECOND, status="failed")))
    lines = spawnlog("run", "list").stdout.splitlines()
    assert lines[1].split()[:4] == ["#1", "11111111", "done", "counter"]
    assert lines[2].split()[:3] == ["#2", "22222222", "failed"]
    assert "Count the words" in lines[1]
    assert api.asked[0].headers["authorization"] == "Bearer a-token"
    assert api.asked[0].headers["accept"] == "application/json"


def test_filtered_list_has_no_places(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST)))
    result = spawnlog("run", "list", "--agent", "counter", "--status", "done", "--limit", "7")
    assert api.asked[0].query == {"agentId": "counter", "status": "done", "limit": "7"}
    assert "#1" not in result.stdout


def test_long_list_is_read_in_pages(spawnlog: Command, api: RecordedApi) -> None:
    def page(request: Asked) -> Reply:
        start = int(request.query.get("cursor", 0))
        size = int(request.query["limit"])
        runs = [run_of(FIRST, label=f"run-{start + offset}") for offset in range(size)]
        return Reply({"items": runs, "nextCursor": str(start + size)})

    api.on("GET", "/v1/runs", page)
    result = spawnlog("run", "list", "--limit", "700", "--output", "jsonl")
    assert [request.query["limit"] for request in api.asked] == ["500", "200"]
    labels = [json.loads(line)["label"] for line in result.stdout.splitlines()]
    assert labels == [f"run-{number}" for number in range(700)]
    printed = json.loads(spawnlog("run", "list", "--limit", "1", "-o", "json").stdout)
    assert (printed["items"][0]["runId"], printed["more"]) == (FIRST, True)


@pytest.mark.parametrize(
    ("column", "members", "shown"),
    [
        ("CONTINUES", {"continues": SECOND}, SECOND[:8]),
        ("RULE", {"status": "refused", "rule": "max_children"}, "max_children"),
    ],
)
def test_list_has_column_only_if_it_is_used(
    column: str, members: dict[str, str], shown: str, spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST)))
    assert column not in spawnlog("run", "list").stdout
    api.on("GET", "/v1/runs", listed(run_of(FIRST, **members), run_of(SECOND)))
    head, first, second = spawnlog("run", "list").stdout.splitlines()
    at = head.index(column)
    assert first[at:].startswith(shown)
    assert not second[at : at + len(shown)].strip()


# Names of runs.


@pytest.mark.parametrize("name", ["last", "#1", "1111", "harbour", KEY, FIRST])
def test_run_is_found_by_every_kind_of_name(name: str, spawnlog: Command, api: RecordedApi) -> None:
    def runs(request: Asked) -> Reply:
        wanted = request.query.get("label")
        found = run_of(FIRST, label="harbour")
        return listed(*([found] if wanted in (None, "harbour") else []))

    api.on("GET", "/v1/runs", runs)
    api.on("GET", RUN, Reply(run_of(FIRST, resultText="12 words")))
    result = spawnlog("run", "get", name)
    assert result.exit_code == 0
    assert "12 words" in result.stdout
    assert api.asked[-1].path == RUN
    if name == FIRST:
        assert len(api.asked) == 1


def test_name_beyond_searched_runs_is_not_guessed(spawnlog: Command, api: RecordedApi) -> None:
    def page(request: Asked) -> Reply:
        if "label" in request.query:
            return listed()
        runs = [
            run_of(f"{SECOND[:-1]}{number % 10}") for number in range(int(request.query["limit"]))
        ]
        return Reply({"items": runs, "nextCursor": "further"})

    api.on("GET", "/v1/runs", page)
    result = spawnlog("run", "get", "abcd")
    assert result.exit_code == 2
    assert "give the full id" in result.stderr


# One run.

STEP = {
    "step": "attachments",
    "root": "/srv/work",
    "relative": ".openclaw/attachments/x",
    "failures": 3,
    "nextAttemptAt": "2026-03-01T09:30:00.125Z",
    "error": "Permission denied\x1b",
}


USAGE = {
    "inputTokens": 7,
    "outputTokens": 3,
    "totalTokens": 10,
    "models": [{"model": "p/m", "costUsd": 0.5}, {"model": "p/free\x1b", "costUsd": None}],
}


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({"agentId": "main", "requestedAgentId": "steward"}, "main (requested: steward)"),
        ({"warnings": ["no price"]}, "no price"),
        ({"stage": "refused", "error": "Use agents_list."}, "Use `spawnlog agent list`."),
        ({"stage": "ended", "error": "no tool agents_list"}, "no tool agents_list"),
        ({"estimatedCostUsd": 0.5, "usage": None}, "$0.5\n"),
        (
            {"estimatedCostUsd": 0.5, "usage": USAGE},
            "$0.5 (1 of 2 models has no price: p/free\\x1b)\n",
        ),
        (
            {"undoing": [STEP]},
            "to undo  attachments, .openclaw/attachments/x of /srv/work, failed 3 time(s),"
            " next attempt 2026-03-01 09:30:00.125: Permission denied\\x1b\n",
        ),
    ],
)
def test_run_shows(
    members: dict[str, Any], shown: str, spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", RUN, Reply(run_of(FIRST, **members)))
    assert shown in spawnlog("run", "get", FIRST).stdout


@pytest.mark.parametrize("text", [{"task": None}, {"task": "still here"}])
def test_erased_texts_are_named(
    spawnlog: Command, api: RecordedApi, text: dict[str, str | None]
) -> None:
    api.on("GET", RUN, Reply(run_of(FIRST, **text)))
    shown = spawnlog("run", "get", FIRST).stdout
    said = "texts  erased, or not in this copy of the log" in shown
    assert said == (text["task"] is None)


def test_stopped_run_has_rows_of_stopper_and_reason(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", RUN, Reply(run_of(FIRST, stopRequestedBy="admin", stopReason="enough")))
    lines = [line.split() for line in spawnlog("run", "get", FIRST).stdout.splitlines()]
    assert ["stopped", "by", "admin"] in lines
    assert ["stop", "reason", "enough"] in lines


def test_events_show_distance_type_and_facts(spawnlog: Command, api: RecordedApi) -> None:
    def event(position: int, kind: str, at: str, **payload: Any) -> dict[str, Any]:
        return {"position": position, "type": kind, "recordedAt": at, "payload": payload}

    requested = event(7, "SpawnRequested", AT, requestedAgentId="counter")
    end = event(9, "RunEnded", "2026-03-01T09:30:01.25Z", outcome="success", reason="exit")
    api.on("GET", f"{RUN}/events", Reply({"items": [requested, end]}))
    lines = [line.split() for line in spawnlog("run", "events", FIRST).stdout.splitlines()]
    assert lines[1] == ["7", "09:30:00.000", "+0.000s", "SpawnRequested", "agent", "counter"]
    assert lines[2][2:] == ["+1.250s", "RunEnded", "success,", "exit"]


def test_prompt_is_shown_with_its_parts(spawnlog: Command, api: RecordedApi) -> None:
    prompt = {
        "systemPrompt": "You are näive.\n",
        "message": "Count.",
        "parts": [{"of": "message", "source": "task", "start": 0, "end": 6, "sha256": "abc"}],
    }
    api.on("GET", f"{RUN}/prompt", Reply(prompt))
    stdout = spawnlog("run", "prompt", FIRST).stdout
    assert "=== system prompt (16 bytes) ===\nYou are näive.\n" in stdout
    assert "=== message (6 bytes) ===\nCount.\n" in stdout
    assert stdout.splitlines()[-1].split() == ["message", "task", "0", "6", "abc"]
    api.on("GET", f"{RUN}/prompt", problem(409, detail="the run has not started"))
    result = spawnlog("run", "prompt", FIRST)
    assert (result.exit_code, result.stderr) == (3, "refused: the run has not started\n")


# Transcripts.


def entry(sequence: int, kind: str = "text", **body: Any) -> dict[str, Any]:
    return {"sequence": sequence, "recordedAt": AT, "kind": kind, "body": body}


def test_transcript_is_read_to_its_end(spawnlog: Command, api: RecordedApi) -> None:
    def page(request: Asked) -> Reply:
        after = int(request.query.get("after", 0))
        numbers = range(after + 1, min(after + int(request.query["limit"]), 60) + 1)
        text = "line {}\x1b[1m".format
        items = [
            entry(number, "message", role="assistant", text=text(number)) for number in numbers
        ]
        return Reply({"items": items, "nextAfter": items[-1]["sequence"] if items else after})

    api.on("GET", f"{RUN}/transcript", page)
    api.on("GET", RUN, Reply(run_of(FIRST)))
    result = spawnlog("run", "log", FIRST, "--after", "0")
    assert "[60] 09:30:00.000 message assistant\n    line 60\\x1b[1m" in result.stdout
    assert "\x1b" not in result.stdout
    assert "tools" not in api.asked[0].query
    assert "continues" not in result.stderr


@pytest.mark.parametrize(
    ("options", "query", "next_after", "note"),
    [
        ((), {"last": "1"}, None, ""),
        (("--tools", "--after", "2"), {"tools": "true", "after": "2", "limit": "1"}, 3, "after 3"),
    ],
)
def test_transcript_page_says_how_to_continue(
    options: tuple[str, ...],
    query: dict[str, str],
    next_after: int | None,
    note: str,
    spawnlog: Command,
    api: RecordedApi,
) -> None:
    last = entry(3, "tool", name="t", input={}, durationMs=2_300)
    api.on("GET", f"{RUN}/transcript", Reply({"items": [last], "nextAfter": next_after}))
    api.on("GET", RUN, Reply(run_of(FIRST)))
    result = spawnlog("run", "log", FIRST, "--limit", "1", *options)
    assert "[3] 09:30:00.000 tool t 2.3s\n    input: {}\n" in result.stdout
    assert note in result.stderr
    assert api.asked[0].query == query


def test_transcript_names_continued_run(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"{RUN}/transcript", Reply({"items": [], "nextAfter": None}))
    api.on("GET", RUN, Reply(run_of(FIRST, continues=SECOND)))
    result = spawnlog("run", "log", FIRST)
    assert f"this run continues run {SECOND}, which has a transcript of its own" in result.stderr


# Stop.


def stoppable(api: RecordedApi, **members: Any) -> None:
    run = run_of(FIRST, **{"status": "stopped", **members})
    api.on("GET", "/v1/runs", listed(run))
    api.on("GET", RUN, Reply(run))
    api.on("POST", f"{RUN}/stop", Reply({}))


def test_stop_by_exact_name_asks_nothing(spawnlog: Command, api: RecordedApi) -> None:
    stoppable(api, label="harbour", stage="ended")
    assert spawnlog("run", "stop", "harbour").exit_code == 0
    result = spawnlog("run", "stop", FIRST, "--reason", "enough")
    assert (result.exit_code, result.stdout) == (0, f"run {FIRST} is stopped\n")
    stop = [request for request in api.asked if request.method == "POST"][-1]
    assert stop.body == {"reason": "enough"}
    assert len(stop.headers["idempotency-key"]) == 36


def test_stop_by_place_needs_yes_without_terminal(spawnlog: Command, api: RecordedApi) -> None:
    stoppable(api)
    refused = spawnlog("run", "stop", "last")
    assert (refused.exit_code, posts(api)) == (2, [])
    assert FIRST in refused.stderr
    assert spawnlog("run", "stop", "last", "--yes").exit_code == 0
    assert posts(api) == [f"{RUN}/stop"]


def test_stop_all_stops_what_session_has_at_work(spawnlog: Command, api: RecordedApi) -> None:
    stoppable(api)
    api.on("GET", "/v1/sessions/main", Reply({"sessionKey": "main", "activeRuns": [FIRST]}))
    assert spawnlog("run", "stop", "all").exit_code == 2
    result = spawnlog("run", "stop", "all", "--yes")
    assert (result.exit_code, result.stdout) == (0, "1 run has ended\n")
    api.on("GET", "/v1/sessions/main", Reply({"sessionKey": "main", "activeRuns": []}))
    assert spawnlog("run", "stop", "all").stdout == "no active runs\n"


def test_stop_all_counts_runs_still_running(
    spawnlog: Command, api: RecordedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "STOP_SECONDS_MAX", 0.05)
    session = {"sessionKey": "main", "activeRuns": [FIRST, SECOND]}
    api.on("GET", "/v1/sessions/main", Reply(session))
    stages = {FIRST: ("started", None), SECOND: ("ended", "stopped")}
    for run_id, (stage, outcome) in stages.items():
        run = run_of(run_id, stage=stage, status=outcome or "running", outcome=outcome)
        api.on("GET", f"/v1/runs/{run_id}", Reply(run))
        api.on("POST", f"/v1/runs/{run_id}/stop", Reply({}))
    result = spawnlog("run", "stop", "all", "--yes")
    assert (result.exit_code, result.stdout) == (0, "1 run has ended\n")
    assert result.stderr == "1 run is asked to stop, and still running\n"
    requests = [(request.method, request.path) for request in api.asked[:4]]
    assert requests[1:3] == [("POST", f"/v1/runs/{run_id}/stop") for run_id in (FIRST, SECOND)]
    assert requests[3] == ("GET", RUN)


# Explain.

EXPLAIN = f"{RUN}/explain"
REFUSAL = "sessions_spawn is not allowed at this depth (current depth: 1, max: 1)"


def explanation(**changes: Any) -> Reply:
    def rule(name: str, result: str, text: str) -> dict[str, Any]:
        return {"step": "admission", "rule": name, "result": result, "text": text}

    decisions = [
        rule("mode", "passed", 'mode "run" with thread false'),
        rule("depth", "refused", "depth 1 is not below maxSpawnDepth 1"),
        rule("active_children", "not_judged", '"depth" refused the spawn before'),
    ]
    refused = {"rule": "depth", "status": "forbidden", "text": REFUSAL}
    plain = {"runId": FIRST, "stage": "refused", "configRevision": 3}
    return Reply({**plain, "decisions": decisions, "refused": refused, **changes})


def test_explanation_is_a_line_for_each_rule(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", EXPLAIN, explanation())
    result = spawnlog("run", "explain", FIRST)
    lines = result.stdout.splitlines()
    assert lines[:3] == ["refused by rule depth (forbidden):", REFUSAL, ""]
    assert lines[3].split() == ["RULE", "RESULT", "WHAT"]
    assert lines[4].split()[:2] == ["mode", "passed"]
    assert lines[5].endswith("refused  depth 1 is not below maxSpawnDepth 1")
    assert len(lines) == 6
    assert "1 rule was not reached (--output json lists all)" in result.stderr
    assert f"run {FIRST}, refused, under configuration revision 3" in result.stderr
    text = "Use agents_list to see allowed agent ids."
    api.on("GET", EXPLAIN, explanation(refused={"rule": "agent_known", "text": text}))
    assert "Use `spawnlog agent list` to see" in spawnlog("run", "explain", FIRST).stdout
    api.on("GET", EXPLAIN, explanation(refused=None, stage="queued"))
    assert len(spawnlog("run", "explain", FIRST).stdout.splitlines()) == 3


# History.

HISTORY = f"{RUN}/history"
SET_BY = {"stage": {"position": 20, "version": 2, "type": "RunQueued"}}


def change(version: int, kind: str, stage: str) -> dict[str, Any]:
    return {
        "position": 10 * version,
        "version": version,
        "type": kind,
        "recordedAt": AT,
        "actor": {"kind": "system", "token": None, "session": None},
        "changes": [
            {"op": "add", "path": "/stage", "value": stage},
            {"op": "add", "path": "/requesterSessionKey", "value": "agent:main:main"},
        ],
    }


CHANGES = [change(1, "SpawnRequested", "requested"), change(2, "RunQueued", "queued")]


def history(items: list[dict[str, Any]], following: int | None = None) -> Reply:
    body = {"runId": FIRST, "version": 2, "items": items, "setBy": SET_BY}
    return Reply({**body, "nextAfter": following})


def test_history_is_a_line_for_each_event(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", HISTORY, history(CHANGES[:1], 1), history(CHANGES[1:]))
    fields = ["--field", "stage", "--field", "/a/b"]
    result = spawnlog("run", "history", FIRST, *fields, "--at", "pos:9")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["POSITION", "VERSION", "TIME", "EVENT", "BY", "CHANGES"]
    assert "stage=requested" in lines[1]
    assert lines[2].split()[:2] == ["20", "2"]
    assert [request.query["after"] for request in api.asked] == ["0", "1"]
    assert (api.asked[0].query["at"], api.asked[0].query["field"]) == ("pos:9", "/a/b")


def test_history_set_by_shows_who_set_each_field(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", HISTORY, history(CHANGES))
    result = spawnlog("run", "history", FIRST, "--set-by")
    assert result.stdout.splitlines()[1].split() == ["stage", "20", "2", "RunQueued"]
    whole = json.loads(spawnlog("run", "history", FIRST, "-o", "json").stdout)
    assert (whole["items"], whole["setBy"], whole["more"]) == (CHANGES, SET_BY, False)
    lines = spawnlog("run", "history", FIRST, "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == CHANGES
    for option in ("--after", "--limit"):
        result = spawnlog("run", "history", FIRST, "--set-by", option, "1")
        assert result.exit_code == 2
        assert f"{option} " in result.stderr


# Diff.

DIFF = ("diff", "pos:5", "pos:20")


def diff_page(cursor: str | None = None, **members: Any) -> Reply:
    body = {"fromPosition": 5, "toPosition": 20, "added": [], "removed": [], "changed": []}
    revisions = {"fromConfigRevision": 1, "toConfigRevision": 1}
    return Reply({**body, **revisions, **members, "nextCursor": cursor})


def item(id: str, *patch: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "run", "id": id, "label": "reviewer", "patch": list(patch)}


def test_diff_of_registry_compares_configurations(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/diff", diff_page(toConfigRevision=2))
    for options, exit_code in ((), 1), (("--tree", "main"), 0):
        result = spawnlog(*DIFF, *options)
        assert result.exit_code == exit_code
        assert "the configuration in force was revision 1 then 2" in result.output


def test_diff_is_a_line_for_each_change(spawnlog: Command, api: RecordedApi) -> None:
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
    first, second = (request.query for request in api.asked)
    assert {"from": "5m", "to": "pos:20", "tree": "main"}.items() <= first.items()
    assert second["cursor"] == "c"
    api.on("GET", "/v1/diff", diff_page(removed=[item(FIRST)]))
    jsonl = spawnlog(*DIFF, "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["change"] for line in jsonl] == ["removed"]


def test_diff_without_change_exits_with_0(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/diff", diff_page())
    assert spawnlog(*DIFF, "--run", FIRST).exit_code == 0
    assert api.asked[0].query["runId"] == FIRST
    assert json.loads(spawnlog(*DIFF, "-o", "json").stdout)["changed"] == []
    api.on("GET", "/v1/diff", problem(403, code="not_permitted", detail="whole-log"))
    assert spawnlog(*DIFF).exit_code == 3


# Compare.


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


def decision(rule: str, left: dict[str, Any], right: dict[str, Any] | None) -> dict[str, Any]:
    return {"rule": rule, "same": False, "left": left, "right": right}


def test_comparison_is_a_line_for_each_difference(spawnlog: Command, api: RecordedApi) -> None:
    made = {"result": "passed", "text": "it is used", "compared": {"made": True, "given": 1}}
    not_made = {**made, "compared": {"made": None, "given": 1}}
    part = {
        "of": "message",
        "source": "task",
        "verdict": "left_only",
        "left": {"bytes": 5, "sha256": None},
        "right": None,
        "diff": "-old\n+new\x1b[2J",
    }
    first = {"left": {"sequence": 4, "kind": "message", "body": {"text": "hi"}}, "right": None}
    different = comparison(
        False,
        plan={"left": {"model": "one"}, "right": {"model": "two"}, "erased": ["task"]},
        decisions=[
            decision("depth", {"result": "passed", "text": "depth 0"}, None),
            decision("workspace", made, not_made),
        ],
        prompt={"same": False, "parts": [part]},
        transcript={"same": False, "equalEntries": 3, "firstDifference": first},
    )
    api.on("GET", f"{RUN}/compare", different)
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


def test_comparison_of_equal_runs_is_empty(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"{RUN}/compare", comparison(True))
    result = spawnlog("run", "compare", FIRST, SECOND, "--at", "-5m")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no differences" in result.stderr
    assert api.asked[-1].query == {"with": SECOND, "at": "-5m"}


# Step, by lines.


def test_step_reads_commands_from_lines(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", HISTORY, history(CHANGES))
    result = spawnlog("run", "step", FIRST, given="n\nn\nrequested\nnonsense\nq\nn\n")
    heads = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("event ")]
    assert heads == ["1", "2", "2", "1", "1"]
    assert "this is the last event" in result.stdout
    assert "not a command or stage of this run (requested, queued)" in result.stdout
    assert "\x1b" not in result.stdout


def test_step_ends_with_its_input(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", HISTORY, history(CHANGES))
    assert spawnlog("run", "step", FIRST, given="").exit_code == 0
    result = spawnlog("run", "step", FIRST, "-o", "jsonl", given="n\n")
    steps = [json.loads(line) for line in result.stdout.splitlines()]
    assert [step["version"] for step in steps] == [1, 2]
    assert steps[1]["state"]["stage"] == "queued"
    assert steps[1]["changes"] == [{"field": "stage", "before": "requested", "after": "queued"}]
    api.on("GET", HISTORY, history([]))
    assert spawnlog("run", "step", FIRST, given="").exit_code == 2


def test_step_shows_other_events_of_tree(spawnlog: Command, api: RecordedApi) -> None:
    def event(position: int, stream: str) -> dict[str, Any]:
        return {"position": position, "stream": stream, "type": "RunQueued", "payload": {}}

    api.on("GET", HISTORY, history(CHANGES))
    api.on("GET", "/v1/sessions/agent%3Amain%3Amain", Reply({"rootSessionKey": "agent:main:main"}))
    events = [event(12, "run:other"), event(15, f"run:{FIRST}"), event(21, "run:later")]
    api.on("GET", "/v1/events", Reply({"items": events, "nextAfter": 30, "head": 30}))
    result = spawnlog("run", "step", FIRST, given="t\nn\nt\n")
    assert "run:other" in result.stdout
    assert "run:later" not in result.stdout
    assert f"run:{FIRST}" not in result.stdout
    requests = [request for request in api.asked if request.path == "/v1/events"]
    assert [(request.query["after"], request.query["tree"]) for request in requests] == [
        ("10", "agent:main:main")
    ]
    api.on("GET", "/v1/events", problem(403, code="not_permitted", detail="only one run"))
    assert "only one run" in spawnlog("run", "step", FIRST, given="n\nt\n").stdout
