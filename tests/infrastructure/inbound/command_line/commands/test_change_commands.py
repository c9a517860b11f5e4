"""`spawnlog diff`, `run history`, `run compare` and `run step` against a server."""

import json
from typing import Any

import pytest

from tests.support.builders.api_runs import FIRST, SECOND
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

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
