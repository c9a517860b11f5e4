"""From request to archive through the real server: each outcome once."""

import time
from datetime import datetime, timedelta

import psycopg
import pytest
from psycopg import sql

from tests.support.servers.server import Server

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


def session(name: str) -> str:
    return f"agent:main:{name}"


def announcement(server: Server, run_id: str, name: str) -> str:
    """Return the text of a run's only announcement."""
    server.run(run_id, "announced")
    (text,) = [run["text"] for run in server.inbox(session(name)) if run["runId"] == run_id]
    return str(text)


def test_plain_run_goes_from_request_to_announcement(server: Server) -> None:
    answer = server.spawn("say it", session=session("plain"), agentId="plain", label="one")
    assert answer.status_code == 201
    result = answer.json()
    run_id = result["runId"]
    assert answer.headers["Location"] == f"/v1/runs/{run_id}"
    assert result["status"] == "accepted"
    assert result["childSessionKey"].startswith("agent:plain:subagent:")
    run = server.run(run_id, "announced")
    assert server.events(run_id) == WHOLE_LIFE
    assert (run["stage"], run["status"], run["outcome"]) == ("announced", "done", "success")
    assert (run["resultText"], run["error"]) == ("done", None)
    (entry,) = server.inbox(session("plain"))
    assert (entry["status"], entry["state"]) == ("success", "delivered")
    assert entry["text"].startswith("Status: success\nResult: ")
    assert entry["dedupeKey"] == f"announce:v1:{run['childSessionKey']}:{run_id}"
    assert server.session(session("plain"))["activeChildren"] == 0
    path = f"/v1/sessions/{session('plain')}/announcements/{entry['id']}/ack"
    assert server.http.post(path, json={}).status_code == 200
    assert server.inbox(session("plain"))[0]["state"] == "acknowledged"


def test_script_sends_alias_to_its_parent(server: Server) -> None:
    run_id = server.accepted("steward", "open the gates", session=session("alias"))
    run = server.run(run_id, "announced")
    assert (run["requestedAgentId"], run["agentId"]) == ("steward", "echo")
    assert server.events(run_id)[1:3] == ["ScriptsResolved", "AgentOverridden"]
    prompt = server.prompt(run_id)
    message = prompt["message"]
    assert message.index("You are the steward.") < message.index("open the gates")
    # The agent prints its input.
    assert run["resultText"] == f"{prompt['systemPrompt']}\n\n{message}".strip()


def test_failing_run_tells_exit_code_and_stderr(server: Server) -> None:
    text = announcement(server, server.accepted("failing", session=session("failing")), "failing")
    assert text.startswith("Status: error\n")
    assert "Result: (not available)" in text
    assert "Notes: exited with code 3: the harbour is closed" in text


def test_missing_command_ends_run_with_advice(server: Server) -> None:
    text = announcement(server, server.accepted("missing", session=session("missing")), "missing")
    assert "./is-not-there" in text
    assert "correct the runtime's command" in text


def test_run_out_of_time_keeps_what_it_said(server: Server) -> None:
    began = time.monotonic()
    run_id = server.accepted("endless", session=session("late"), runTimeoutSeconds=1)
    text = announcement(server, run_id, "late")
    assert 1 <= time.monotonic() - began < 10
    run = server.run(run_id)
    assert (run["status"], run["outcome"], run["runTimeoutSeconds"]) == ("timeout", "timeout", 1)
    assert text.startswith("Status: timeout\n")
    result, *output = server.transcript(run_id)
    assert result["body"]["text"].endswith("\n\nhello")
    assert [line["body"]["text"] for line in output] == ["half a sentence\n"]


def test_lines_of_json_become_transcript_usage_and_result(server: Server) -> None:
    run_id = server.accepted("accountant", session=session("lines"))
    text = announcement(server, run_id, "lines")
    run = server.run(run_id)
    assert run["resultText"] == "all of it"
    totals = {"inputTokens": 1500, "outputTokens": 340, "totalTokens": 1840}
    assert {name: run["usage"][name] for name in totals} == totals
    assert run["estimatedCostUsd"] == pytest.approx(0.0096)
    assert "tokens 1.8k (in 1.5k / out 340) • est $0.0096" in text
    for item in (run["childSessionKey"], run["sessionId"], run["transcriptPath"]):
        assert item in text
    kinds = ["message", "progress", "message", "tool", "usage", "usage", "result"]
    assert [item["kind"] for item in server.transcript(run_id)] == kinds


def test_deleted_run_is_archived_and_kept_one_is_not(server: Server) -> None:
    kept = server.announced("plain", session=session("kept"))["runId"]
    run_id = server.accepted("waiter", session=session("cleanup"), cleanup="delete")
    server.began(run_id)
    began = time.monotonic()
    query = {"wait": "300ms", "until": "ended"}
    assert server.http.get(f"/v1/runs/{run_id}", params=query).json()["stage"] == "started"
    assert time.monotonic() - began >= 0.3
    server.let_go(run_id)
    run = server.run(run_id, "archived")
    ended, started = (datetime.fromisoformat(run[name]) for name in ("endedAt", "startedAt"))
    assert run["runtimeMs"] == (ended - started) // timedelta(milliseconds=1)
    assert ".deleted." in run["transcriptPath"]
    assert server.run(kept)["stage"] == "announced"


def test_free_text_of_callers_is_in_no_event(server: Server) -> None:
    """It is stored beside the log, where it can be erased."""
    request = {"agentId": "plain", "session": session("free-text")}
    prose = "please use the nicest model of Konstantinopel " * 5
    skipped = server.spawn(model=prose, **request).json()
    assert skipped["modelApplied"] is False
    assert skipped["warnings"] == ["The requested model is not a valid model name and was skipped."]
    server.run(skipped["runId"], "announced")
    refused = server.spawn(thinking="like Trapezunt", **request).json()
    assert refused["rule"] == "thinking"
    named = server.spawn(model="nowhere/byzantium-1", **request).json()
    assert named["modelApplied"] is True
    server.run(named["runId"], "announced")
    assert tables_with(server, "Konstantinopel") == tables_with(server, "Trapezunt") == {"contents"}
    assert {"events", "runs"} <= tables_with(server, "byzantium-1")


def tables_with(server: Server, word: str) -> set[str]:
    """Return the tables that contain a word; bytes are shown in hexadecimal digits."""
    tables = (
        "SELECT table_name FROM information_schema.tables"
        " WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
    )
    query = "SELECT count(*) FROM {} t WHERE t::text LIKE %s OR t::text LIKE %s"
    found = set()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        for (name,) in connection.execute(tables).fetchall():
            table = sql.SQL(query).format(sql.Identifier(str(name)))
            values = [f"%{word}%", f"%{word.encode().hex()}%"]
            if connection.execute(table, values).fetchone() != (0,):
                found.add(str(name))
    return found
