"""Children that begin with their requester's conversation."""

import json
from pathlib import Path
from typing import Any

import pytest

from domain.context.fork import INBOX_NOTE
from tests.support.builders.submitted_transcripts import KEPT, entries_of, tell
from tests.support.http.problems import problem_of
from tests.support.http.requests import a_key, replayed
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

TOO_LARGE = (
    "Parent context is too large to fork (100001/100000 tokens); "
    "starting with isolated context instead."
)


def session_with_transcript(server: Server, name: str = "told", **more: Any) -> str:
    """Return a session whose transcript was uploaded."""
    session = server.new_session(name)
    answer = tell(server.http, session, **more)
    assert answer.status_code == 200, answer.text
    return session


def payloads(server: Server, run_id: str, kind: str) -> list[dict[str, Any]]:
    return [event["payload"] for event in server.recorded(run_id, kind)]


def fork_taken(server: Server, run_id: str) -> dict[str, Any]:
    """Return the recorded fork step; assert that there is one."""
    taken = payloads(server, run_id, "StepTaken")
    (step,) = [submission for submission in taken if submission["step"] == "context_fork"]
    return step


def first_entry(server: Server, session: str, tokens: int) -> tuple[str, dict[str, Any]]:
    """Return the entry before the copied ones of a child of this session."""
    session_id = server.get(f"/v1/sessions/{session}")["sessionId"]
    return "session", {
        "parentSessionKey": session,
        "parentSessionId": session_id,
        "entries": len(KEPT),
        "tokens": tokens,
    }


def test_fork_begins_with_provided_transcript(server: Server) -> None:
    session = session_with_transcript(server, totalTokens=50)
    answer = server.spawned(session=session, context="fork", agentId="main")
    assert (answer["note"], answer["warnings"]) == (INBOX_NOTE, [])
    run_id = answer["runId"]
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["contextMode"]) == ("success", "fork")
    entries = entries_of(server.http, run_id)
    assert entries[:5] == [first_entry(server, session, 50), *KEPT]
    assert len(entries) > 5, "and goes on with what it says itself"
    spoken = server.get(f"/v1/runs/{run_id}/transcript")["items"]
    assert [item["kind"] for item in spoken[:3]] == ["session", "message", "message"]
    taken = fork_taken(server, run_id)
    assert taken["outcome"] == "forked"
    assert (taken["fork"]["mode"], taken["fork"]["entries"], taken["fork"]["tokens"]) == (
        "fork",
        4,
        50,
    )
    (created,) = payloads(server, run_id, "SessionCreated")
    assert created["contextMode"] == "fork"
    wait_for("the file", Path(run["transcriptPath"]).exists)
    lines = Path(run["transcriptPath"]).read_bytes().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == [kind for kind, _ in entries]
    (ended,) = payloads(server, run_id, "RunEnded")
    assert ended["transcript"]["count"] == len(entries)
    folder = Path(run["transcriptPath"]).parent
    wait_for("the file to go", lambda: not list(folder.glob(f"*{run['sessionId']}.fork*")))
    prompt = server.get(f"/v1/runs/{run_id}/prompt")
    assert "This session begins with 4 entries of your requester" in prompt["systemPrompt"]
    assert "fork" in [part["source"] for part in prompt["parts"]]
    events = json.dumps(server.get(f"/v1/runs/{run_id}/events"))
    assert "arbour" not in events


def test_fork_takes_100_000_tokens_at_most(server: Server) -> None:
    most = server.spawned(
        session=session_with_transcript(server, totalTokens=100_000), context="fork"
    )
    assert most["note"] == INBOX_NOTE
    assert server.run(most["runId"], "announced")["outcome"] == "success"
    assert payloads(server, most["runId"], "SessionCreated")[0]["contextMode"] == "fork"
    session, key = session_with_transcript(server, totalTokens=100_001), a_key()
    answer = server.spawn(session=session, context="fork", key=key)
    assert answer.status_code == 201, answer.text
    assert answer.json()["note"] == f"{INBOX_NOTE} {TOO_LARGE}"
    run_id = answer.json()["runId"]
    server.run(run_id, "announced")
    assert "session" not in [kind for kind, _ in entries_of(server.http, run_id)]
    taken = fork_taken(server, run_id)
    assert (taken["outcome"], taken["made"]) == ("isolated", False)
    assert taken["fork"]["tokens"] == 100_001
    assert payloads(server, run_id, "SessionCreated")[0]["contextMode"] == "isolated"
    again = server.spawn(session=session, context="fork", key=key)
    assert replayed(again)
    assert again.json() == answer.json()


def refused_fork(server: Server, session: str, **body: Any) -> dict[str, Any]:
    """Return the problem of a spawn that this rule refuses, and that leaves nothing."""
    problem = problem_of(server.spawn(session=session, context="fork", **body), 422, "spawn_error")
    assert problem["rule"] == "context_fork"
    run_id = problem["runId"]
    assert problem["childSessionKey"] == server.run(run_id)["childSessionKey"]
    (event,) = payloads(server, run_id, "SpawnRefused")
    assert (event["rule"], event["step"]) == ("context_fork", "context_fork")
    assert server.get(f"/v1/sessions/{session}")["activeChildren"] == 0
    assert entries_of(server.http, run_id) == []
    explained = server.get(f"/v1/runs/{run_id}/explain")["refused"]
    assert (explained["rule"], explained["step"]) == ("context_fork", "context_fork")
    return problem


def test_fork_for_another_agent_is_refused(server: Server) -> None:
    assert refused_fork(server, session_with_transcript(server), agentId="talker")["detail"] == (
        'context="fork" currently requires the same target agent as the requester; use '
        'context="isolated" for cross-agent spawns.'
    )


def test_fork_without_transcript_is_refused(server: Server) -> None:
    expected = 'context="fork" requested but the requester session transcript is not available.'
    assert refused_fork(server, server.new_session())["detail"] == expected
    session = server.new_session()
    server.announced(session=session)
    assert refused_fork(server, session)["detail"] == expected
    tell(server.http, session, [])
    (warning,) = server.spawned(session=session, context="fork")["warnings"]
    assert warning.startswith("the child starts without its requester's conversation")
