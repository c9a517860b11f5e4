"""From request to archive through the real server: each outcome once."""

import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.support.servers.server import Server
from tests.support.servers.stories import CHILDREN_MAX
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

WHOLE_LIFE = [
    "SpawnRequested",
    "ScriptsResolved",
    "PreparationStarted",
    "SessionCreated",
    "RunQueued",
    "RunClaimed",
    "RunStarted",
    "RunEnded",
    "RunAnnounced",
]


def requester(key: str) -> dict[str, object]:
    return {"sessionKey": f"agent:main:{key}"}


def announcement(server: Server, run_id: str, key: str) -> str:
    """The text of the one announcement of the run."""
    server.run(run_id, "announced")
    texts = [one["text"] for one in server.inbox(f"agent:main:{key}") if one["runId"] == run_id]
    assert len(texts) == 1
    return str(texts[0])


def test_a_plain_run_goes_from_request_to_announcement(server: Server) -> None:
    answer = server.spawn("say it", requester=requester("plain"), agentId="plain", label="one")
    assert answer.status_code == 201
    told = answer.json()
    run_id = told["runId"]
    assert answer.headers["Location"] == f"/v1/runs/{run_id}"
    assert told["status"] == "accepted"
    assert told["childSessionKey"].startswith("agent:plain:subagent:")
    run = server.run(run_id, "announced")
    assert server.events(run_id) == WHOLE_LIFE
    assert (run["stage"], run["status"], run["outcome"]) == ("announced", "done", "success")
    assert (run["resultText"], run["error"]) == ("done", None)
    assert run["childSessionKey"] == told["childSessionKey"]
    (entry,) = server.inbox("agent:main:plain")
    assert entry["status"] == "success"
    assert entry["state"] == "delivered"
    assert entry["text"].startswith("Status: success\nResult: ")
    assert entry["dedupeKey"] == f"announce:v1:{run['childSessionKey']}:{run_id}"
    assert server.session("agent:main:plain")["activeChildren"] == 0
    path = f"/v1/sessions/agent:main:plain/announcements/{entry['id']}/ack"
    assert server.http.post(path, json={}).status_code == 200
    assert server.inbox("agent:main:plain")[0]["state"] == "acknowledged"


def test_a_script_sends_an_alias_to_its_parent_and_speaks_before_the_task(server: Server) -> None:
    run_id = server.accepted("steward", "open the gates", requester=requester("alias"))
    run = server.run(run_id, "announced")
    assert (run["requestedAgentId"], run["agentId"]) == ("steward", "echo")
    assert run["childSessionKey"].startswith("agent:echo:subagent:")
    assert server.events(run_id)[1:3] == ["ScriptsResolved", "AgentOverridden"]
    prompt = server.http.get(f"/v1/runs/{run_id}/prompt").json()
    message = prompt["message"]
    assert message.index("You are the steward.") < message.index("open the gates")
    assert [part["source"] for part in prompt["parts"] if "script" in part["source"]] == [
        "script:identity"
    ]
    # The agent prints what it was given.
    assert run["resultText"] == f"{prompt['systemPrompt']}\n\n{message}".strip()


def test_an_agent_that_nobody_knows_is_refused_after_its_scripts(server: Server) -> None:
    answer = server.spawn(requester=requester("unknown"), agentId="impostor")
    assert answer.status_code == 422
    problem = answer.json()
    assert (problem["code"], problem["rule"]) == ("spawn_error", "agent_unknown")
    assert server.events(problem["runId"]) == ["SpawnRequested", "ScriptsResolved", "SpawnRefused"]
    assert server.session("agent:main:unknown")["activeChildren"] == 0
    # Its caller was told, so its inbox is not.
    assert server.inbox("agent:main:unknown") == []


def test_a_failing_run_tells_its_exit_code_and_what_it_complained_of(server: Server) -> None:
    run_id = server.accepted("failing", requester=requester("failing"))
    text = announcement(server, run_id, "failing")
    run = server.run(run_id)
    assert (run["status"], run["outcome"]) == ("failed", "error")
    assert run["error"] == "exited with code 3: the harbour is closed"
    assert text.startswith("Status: error\n")
    assert "Result: (not available)" in text
    assert "Notes: exited with code 3: the harbour is closed" in text


def test_a_command_that_is_missing_ends_its_run_with_advice(server: Server) -> None:
    run_id = server.accepted("missing", requester=requester("missing"))
    text = announcement(server, run_id, "missing")
    assert server.run(run_id)["outcome"] == "error"
    assert "./is-not-there" in text
    assert "correct the runtime's command" in text


def test_a_run_out_of_time_is_ended_and_what_it_said_is_kept(server: Server) -> None:
    began = time.monotonic()
    run_id = server.accepted("endless", requester=requester("late"), runTimeoutSeconds=1)
    text = announcement(server, run_id, "late")
    assert 1 <= time.monotonic() - began < 10
    run = server.run(run_id)
    assert (run["status"], run["outcome"]) == ("timeout", "timeout")
    assert run["runTimeoutSeconds"] == 1
    assert text.startswith("Status: timeout\n")
    told, *items = server.http.get(f"/v1/runs/{run_id}/transcript").json()["items"]
    assert told["body"]["role"] == "user"
    assert told["body"]["text"].endswith("\n\nhello")
    assert [one["body"]["text"] for one in items] == ["half a sentence\n"]


def test_a_spawn_beyond_the_cap_is_refused_and_recorded(server: Server) -> None:
    held = [
        server.accepted("waiter", requester=requester("crowd"), cleanup="delete")
        for _ in range(CHILDREN_MAX)
    ]
    answer = server.spawn(requester=requester("crowd"), agentId="plain")
    assert answer.status_code == 403
    problem = answer.json()
    assert (problem["code"], problem["rule"]) == ("spawn_forbidden", "active_children")
    assert (problem["current"], problem["limit"]) == (CHILDREN_MAX, CHILDREN_MAX)
    assert server.run(problem["runId"], "ended")["status"] == "refused"
    assert server.events(problem["runId"]) == ["SpawnRequested", "SpawnRefused"]
    for run_id in held:
        server.let_go(run_id)
        assert server.run(run_id, "archived")["outcome"] == "success"
    assert server.spawn(requester=requester("crowd"), agentId="plain").status_code == 201


def test_cleanup_delete_archives_after_the_announcement_and_keeps_the_transcript(
    server: Server,
) -> None:
    run_id = server.accepted("accountant", requester=requester("cleanup"), cleanup="delete")
    run = server.run(run_id, "archived")
    assert run["stage"] == "archived"
    assert server.events(run_id)[-2:] == ["RunAnnounced", "RunArchived"]
    path = Path(run["transcriptPath"])
    assert path.name.startswith(f"{run['sessionId']}.jsonl.deleted.")
    wait_for("the file", path.exists)
    assert path.read_text("utf-8").count("\n") == 7
    assert not path.with_name(f"{run['sessionId']}.jsonl").exists()
    assert server.session(run["childSessionKey"])["stage"] == "closed"
    assert len(server.inbox("agent:main:cleanup")) == 1


def test_with_archive_after_no_minutes_a_kept_session_is_never_archived(server: Server) -> None:
    run_id = server.accepted("plain", requester=requester("kept"))
    run = server.run(run_id, "announced")
    assert (run["archiveAt"], run["archivedAt"]) == (None, None)
    assert Path(run["transcriptPath"]).name == f"{run['sessionId']}.jsonl"
    # One that is archived at once overtakes it.
    other = server.accepted("plain", requester=requester("kept"), cleanup="delete")
    server.run(other, "archived")
    assert server.run(run_id)["stage"] == "announced"


def test_a_child_that_answers_announce_skip_is_not_announced(server: Server) -> None:
    run_id = server.accepted("silent", requester=requester("silent"), cleanup="delete")
    run = server.run(run_id, "archived")
    assert run["outcome"] == "success"
    assert run["announcement"]["state"] == "skipped"
    assert server.inbox("agent:main:silent") == []


def test_lines_of_json_become_transcript_usage_cost_and_result(server: Server) -> None:
    run_id = server.accepted("accountant", requester=requester("lines"))
    text = announcement(server, run_id, "lines")
    run = server.run(run_id)
    assert run["resultText"] == "all of it"
    totals = {"inputTokens": 1500, "outputTokens": 340, "totalTokens": 1840}
    assert {name: run["usage"][name] for name in totals} == totals
    assert run["estimatedCostUsd"] == pytest.approx(0.0096)
    assert "tokens 1.8k (in 1.5k / out 340) • est $0.0096" in text
    for said in (run["childSessionKey"], run["sessionId"], run["transcriptPath"]):
        assert said in text
    path = f"/v1/runs/{run_id}/transcript"
    spoken = server.http.get(path).json()["items"]
    assert [one["kind"] for one in spoken] == ["message", "progress", "message", "result"]
    everything = server.http.get(path, params={"tools": "true"}).json()["items"]
    kinds = ["message", "progress", "message", "tool", "usage", "usage", "result"]
    assert [one["kind"] for one in everything] == kinds


def test_waiting_for_a_stage_answers_when_it_is_reached_or_the_time_is_over(
    server: Server,
) -> None:
    run_id = server.accepted("waiter", requester=requester("waiting"))
    server.run(run_id, "started")
    began = time.monotonic()
    answer = server.http.get(f"/v1/runs/{run_id}", params={"wait": "300ms", "until": "ended"})
    assert answer.json()["stage"] == "started"
    assert time.monotonic() - began >= 0.3
    server.let_go(run_id)
    run = server.run(run_id, "ended")
    ended, started = (datetime.fromisoformat(run[name]) for name in ("endedAt", "startedAt"))
    assert run["runtimeMs"] == (ended - started) // timedelta(milliseconds=1)
    assert server.run(run_id, "announced")["stage"] == "announced"


def test_a_spawn_whose_client_hung_up_is_complete_under_its_key(server: Server) -> None:
    body = {"requester": requester("gone"), "task": "go on", "agentId": "plain"}
    sent = {"json": body, "headers": {"Idempotency-Key": "gone-1"}}
    with pytest.raises(Exception, match="timed out"):
        server.http.post("/v1/spawns", timeout=0.001, **sent)  # type: ignore[arg-type]
    answer = server.http.post("/v1/spawns", **sent)  # type: ignore[arg-type]
    while answer.status_code == 409:
        answer = server.http.post("/v1/spawns", **sent)  # type: ignore[arg-type]
    assert answer.status_code == 201
    runs = server.http.get("/v1/runs", params={"requester": "agent:main:gone"}).json()["items"]
    assert [one["runId"] for one in runs] == [answer.json()["runId"]]
    assert server.run(runs[0]["runId"], "announced")["outcome"] == "success"
