"""Hooks of a coding agent record its own sub-agents, with inputs as the agent sends them."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.servers.configurations import EXTERNAL, agent, configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

HOOKS = Path(__file__).parents[2] / "examples" / "hooks"
SESSION = {
    "session_id": "0b8c6d1e-7a52-4c1b-9a39-2f3f0f0a9c11",
    "transcript_path": "/home/u/.claude/projects/w/0b8c6d1e.jsonl",
    "cwd": "/work",
    "permission_mode": "default",
}
REQUESTER = f"agent:main:{SESSION['session_id']}"


@pytest.fixture(scope="module")
def server(module_database_url: str) -> Iterator[Server]:
    config = configuration(
        agent("main", default=True),
        agent("explore", EXTERNAL),
        maxChildrenPerAgent=2,
    )
    with (
        new_place() as place,
        Server(place / "data", config, database_url=module_database_url) as server,
    ):
        yield server


class CodingAgent:
    """Runs the hook with one input, as the coding agent would."""

    def __init__(self, server: Server, folder: Path, url: str = "") -> None:
        self._environment = {
            **os.environ,
            "SPAWNLOG_URL": url or server.url,
            "SPAWNLOG_TOKEN": server.token,
            "SPAWNLOG_HOOKS_DIR": str(folder),
        }

    def hook(self, event: str, **given: Any) -> dict[str, Any]:
        """Return the instruction for the coding agent; empty if there is none."""
        result, output = self.hook_that_may_fail(event, **given)
        assert not output, output
        return result

    def hook_that_may_fail(self, event: str, **given: Any) -> tuple[dict[str, Any], str]:
        """Return the instruction, and the hook's standard error."""
        finished = subprocess.run(
            [sys.executable, HOOKS / "record_subagents.py"],
            input=json.dumps({**SESSION, "hook_event_name": event, **given}),
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        result = dict(json.loads(finished.stdout or "{}").get("hookSpecificOutput", {}))
        return result, finished.stderr

    def asks_for(self, kind: str, number: int, prompt: str) -> dict[str, Any]:
        """Report that the agent is about to use the tool that starts a sub-agent."""
        given = {"subagent_type": kind, "description": f"Look {number}", "prompt": prompt}
        return self.hook(
            "PreToolUse", tool_name="Agent", tool_use_id=f"toolu_{number}", tool_input=given
        )


@pytest.fixture
def coding_agent(server: Server, tmp_path: Path) -> CodingAgent:
    return CodingAgent(server, tmp_path / "hooks")


def runs(server: Server) -> list[dict[str, Any]]:
    answer = server.http.get("/v1/runs", params={"requester": REQUESTER, "order": "asc"})
    return list(answer.json()["items"])


def test_a_sub_agent_is_judged_watched_stopped_and_announced(
    server: Server, coding_agent: CodingAgent, tmp_path: Path
) -> None:
    unknown = coding_agent.asks_for("Stranger", 0, "Who are you?")
    assert "not configured" in unknown["permissionDecisionReason"]
    assert coding_agent.asks_for("Explore", 1, "Where is the harbour?") == {}
    assert coding_agent.asks_for("Explore", 2, "Where is the lighthouse?") == {}
    refused = coding_agent.asks_for("Explore", 3, "Where is the third?")
    assert refused["permissionDecision"] == "deny"
    assert "max active children" in refused["permissionDecisionReason"]
    first, second = (run for run in runs(server) if run["stage"] == "queued")
    me = {"agent_id": "a8a5aea3b68767861", "agent_type": "Explore"}
    began = coding_agent.hook("SubagentStart", **me)
    assert "Where is the harbour?" not in began["additionalContext"]
    assert "sub-agent" in began["additionalContext"].lower()
    subagent = {"agent_id": "b1", "agent_type": "Explore"}
    coding_agent.hook("SubagentStart", **subagent)
    use = {"tool_name": "Grep", "tool_use_id": "toolu_9", "tool_input": {"pattern": "harbour"}}
    assert coding_agent.hook("PreToolUse", **me, **use) == {}
    found = {"tool_response": {"matches": ["a.txt"]}, "duration_ms": 12}
    coding_agent.hook("PostToolUse", **me, **use, **found)
    coding_agent.hook("PostToolUse", **me, **use, tool_response={"matches": []})
    # The coding agent's own tools belong to no run.
    coding_agent.hook("PostToolUse", **use, tool_response={"matches": []})
    server.stop_run(second["runId"], reason="found already")
    stopped = coding_agent.hook("PreToolUse", **subagent, **use)
    assert stopped["permissionDecision"] == "deny"
    assert "stopped by admin: found already" in stopped["permissionDecisionReason"]
    own = tmp_path / "agent.jsonl"
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}
    message = {"id": "msg_1", "model": "example-model", "usage": usage}
    own.write_text(f"{json.dumps({'type': 'assistant', 'message': message})}\n" * 2, "utf-8")
    coding_agent.hook(
        "SubagentStop",
        **me,
        stop_hook_active=False,
        agent_transcript_path=str(own),
        last_assistant_message="The harbour is in a.txt",
    )
    coding_agent.hook(
        "SubagentStop", **subagent, stop_hook_active=False, last_assistant_message="Stopped"
    )
    run = server.run(first["runId"], "announced")
    assert (run["outcome"], run["label"]) == ("success", "Look 1")
    assert run["resultText"] == "The harbour is in a.txt"
    assert (run["usage"]["inputTokens"], run["usage"]["outputTokens"]) == (10, 3)
    response = server.http.get(f"/v1/runs/{first['runId']}/transcript", params={"tools": "true"})
    calls = [item["body"] for item in response.json()["items"] if item["kind"] == "tool"]
    assert [call["output"] for call in calls] == ['{"matches": ["a.txt"]}', '{"matches": []}']
    assert [call.get("durationMs") for call in calls] == [12, None]
    assert server.run(second["runId"], "announced")["resultText"] == "Stopped"
    inbox = server.inbox(REQUESTER)
    assert "The harbour is in a.txt" in inbox[0]["text"]
    # If a slot is free, the hook answers at once.
    assert coding_agent.asks_for("Explore", 5, "And the pier?") == {}


class Between(ThreadingHTTPServer):
    """Relay between the hooks and the server.

    For path endings in `instead` it answers itself; for None it loses the server's answer.
    """

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.behind = url
        self.instead: dict[str, tuple[int, bytes] | None] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Passing(BaseHTTPRequestHandler):
    server: Between

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        event = self.path.partition("?")[0].rpartition("/")[2]
        answer = self.server.instead.get(event) if event in self.server.instead else self._ask(body)
        if event in self.server.instead and answer is None:
            self._ask(body)
            self.close_connection = True
            return
        assert answer is not None
        self.send_response(answer[0])
        self.send_header("Content-Length", str(len(answer[1])))
        self.end_headers()
        self.wfile.write(answer[1])

    def _ask(self, body: bytes) -> tuple[int, bytes]:
        named = ("Authorization", "Content-Type", "Idempotency-Key")
        headers = {name: self.headers[name] for name in named if name in self.headers}
        url = self.server.behind + self.path
        answer = httpx2.request(self.command, url, content=body, headers=headers)
        return answer.status_code, answer.content

    do_GET = do_POST = _pass

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def between(server: Server) -> Iterator[Between]:
    with Between(server.url) as relay:
        thread = threading.Thread(target=relay.serve_forever, args=(0.01,))
        thread.start()
        yield relay
        relay.shutdown()
        thread.join()


def test_a_tool_call_whose_answer_was_lost_is_on_record_once_and_hides_no_other(
    server: Server, between: Between, tmp_path: Path
) -> None:
    coding_agent = CodingAgent(server, tmp_path / "hooks", between.url)
    assert coding_agent.asks_for("Explore", 20, "What is lost?") == {}
    me = {"agent_id": "lossy", "agent_type": "Explore"}
    coding_agent.hook("SubagentStart", **me)
    (run,) = (run for run in runs(server) if run["stage"] == "started")
    use = {"tool_name": "Grep", "tool_use_id": "toolu_9", "tool_input": {"pattern": "x"}}

    def used(answered: str) -> str:
        return coding_agent.hook_that_may_fail("PostToolUse", **me, **use, tool_response=answered)[
            1
        ]

    between.instead["transcript"] = None
    assert used("recorded, its answer lost").startswith("spawnlog: ")
    between.instead["transcript"] = (503, b"not now")
    assert "503" in used("not recorded at first")
    between.instead.clear()
    assert used("recorded at once") == ""
    coding_agent.hook("SubagentStop", **me, stop_hook_active=False, last_assistant_message="Found")
    assert server.run(run["runId"], "announced")["outcome"] == "success"
    response = server.http.get(f"/v1/runs/{run['runId']}/transcript", params={"tools": "true"})
    outputs = [
        item["body"].get("output") for item in response.json()["items"] if item["kind"] == "tool"
    ]
    assert outputs == ["recorded, its answer lost", "not recorded at first", "recorded at once"]


@pytest.mark.parametrize(
    ("status", "code", "is_stopped"),
    [
        (403, "spawn_forbidden", True),
        (400, "spawn_error", True),
        (401, "unauthorized", False),
        (403, "not_permitted", False),
        (429, "too_many_requests", False),
        (503, "log_unavailable", False),
        (502, None, False),
    ],
)
def test_a_spawn_is_denied_by_the_rules_and_by_no_other_answer(
    server: Server,
    between: Between,
    tmp_path: Path,
    status: int,
    code: str | None,
    is_stopped: bool,
) -> None:
    coding_agent = CodingAgent(server, tmp_path / "hooks", between.url)
    problem = json.dumps({"code": code, "detail": "no"}).encode() if code else b"<html>"
    between.instead["spawns"] = (status, problem)
    given = {"subagent_type": "Explore", "description": "Look", "prompt": "go"}
    result, output = coding_agent.hook_that_may_fail(
        "PreToolUse", tool_name="Agent", tool_use_id="toolu_no", tool_input=given
    )
    assert (result.get("permissionDecision") == "deny", bool(output)) == (
        is_stopped,
        not is_stopped,
    )


def test_the_settings_run_the_hook_for_all_that_it_acts_on() -> None:
    settings = json.loads((HOOKS / "settings.json").read_text("utf-8"))
    assert set(settings["hooks"]) == {"PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop"}
    commands = {
        hook["command"]
        for groups in settings["hooks"].values()
        for group in groups
        for hook in group["hooks"]
    }
    assert commands == {"python3 examples/hooks/record_subagents.py"}


def test_a_server_that_is_away_stops_nobody_from_working(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, HOOKS / "record_subagents.py"],
        input=json.dumps(
            {
                **SESSION,
                "hook_event_name": "PreToolUse",
                "tool_name": "Agent",
                "tool_use_id": "toolu_1",
                "tool_input": {"prompt": "go on"},
            }
        ),
        env={"SPAWNLOG_URL": "http://127.0.0.1:9", "SPAWNLOG_TOKEN": "none"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert finished.stdout == ""
    assert finished.stderr.startswith("spawnlog: ")


@pytest.mark.parametrize("kind", ["writable by others", "a link"])
def test_what_is_remembered_lies_where_nobody_else_can_write(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    (tmp_path / "other").mkdir(mode=0o700)
    if kind == "a link":
        folder.symlink_to(tmp_path / "other")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    ended = {"hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": "explore"}
    finished = subprocess.run(
        [sys.executable, HOOKS / "record_subagents.py"],
        input=json.dumps({**SESSION, **ended}),
        env={
            "SPAWNLOG_URL": "http://127.0.0.1:9",
            "SPAWNLOG_TOKEN": "none",
            "SPAWNLOG_HOOKS_DIR": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "is not this user's alone" in finished.stderr
    assert list((tmp_path / "other").iterdir()) == []
