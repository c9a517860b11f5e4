"""Agents, lanes, sessions, announcements, `status`, and the common behavior of commands."""

import json
import socket
from importlib.metadata import version

import pytest
import yaml

from tests.support.builders.api_runs import FIRST
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

KEY, QUOTED = "agent:main:demo/1 ä", "agent%3Amain%3Ademo%2F1%20%C3%A4"
LANE = {"lane": "subagent", "depth": 1, "width": 8, "running": ["a", "b"], "queued": ["c"]}
REVISION = {"revision": 3, "source": "spawnlog.json5", "activatedAt": "2026-03-01T09:00:00Z"}
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def server(api: RecordedApi) -> RecordedApi:
    api.on("GET", "/healthz", Reply({"status": "ok", "version": "0.0.9"}))
    api.on("GET", "/readyz", Reply({"status": "ready", "head": 42, "tail": 42}))
    api.on("GET", "/v1/log", Reply({"position": 42, "recordedAt": "2026-03-01T09:30:00Z"}))
    api.on("GET", "/v1/config/revisions", Reply({"items": [REVISION], "nextCursor": None}))
    api.on("GET", "/v1/lanes", Reply({"items": [LANE], "nextCursor": None}))
    return api


def test_lanes_show_running_and_queued(spawnlog: Command, api: RecordedApi) -> None:
    lane = {
        "lane": "subagent",
        "depth": 1,
        "width": 8,
        "running": [{"runId": "11111111-x", "holder": "server-1"}],
        "queued": [{"runId": "22222222-x", "place": 1, "waitsFor": "a free place"}],
    }
    api.on("GET", "/v1/lanes", Reply({"items": [lane]}))
    lines = [line.split() for line in spawnlog("lane", "list").stdout.splitlines()]
    assert lines[1] == ["subagent", "1", "1/8", "1", "queued"]
    assert lines[2] == ["running", "11111111", "server-1"]
    assert lines[3] == ["1", "queued", "22222222", "a", "free", "place"]


def test_session_key_is_one_path_segment(spawnlog: Command, api: RecordedApi) -> None:
    session = {
        "sessionKey": KEY,
        "activeChildren": 2,
        "maxChildren": 5,
        "runs": [{"runId": "33333333-x", "stage": "ended"}],
    }
    api.on("GET", f"/v1/sessions/{QUOTED}", Reply(session))
    result = spawnlog("session", "get", KEY)
    assert result.exit_code == 0
    assert "2 active, at most 5" in result.stdout
    assert "33333333  ended" in result.stdout


@pytest.mark.parametrize(("built", "exit_code"), [(True, 0), (False, 4)])
def test_page_that_is_not_built_has_no_address(
    spawnlog: Command, api: RecordedApi, built: bool, exit_code: int
) -> None:
    code = {"code": "one-time", "expiresInSeconds": 60, "pageBuilt": built}
    api.on("POST", "/v1/page-codes", Reply(code, 201))
    result = spawnlog("open", "--no-browser")
    assert result.exit_code == exit_code
    assert ("#code=one-time" in result.stdout) is built
    assert ("run `make page`" in result.stderr) is not built


AS_OF = {
    "run list": "/v1/runs",
    f"run log {FIRST} -o jsonl": f"/v1/runs/{FIRST}/transcript",
    f"run log {FIRST} --after 3 -o jsonl": f"/v1/runs/{FIRST}/transcript",
    "announcement list s": "/v1/sessions/s/announcements",
    "announcement list": "/v1/announcements",
    "announcement list --parked": "/v1/announcements",
}


@pytest.mark.parametrize("command", AS_OF)
def test_state_is_shown_as_of_a_moment(command: str, spawnlog: Command, api: RecordedApi) -> None:
    at = f"run:{FIRST}@started"
    item = {"runId": FIRST, "deliveries": []}
    api.on("GET", f"/v1/runs/{FIRST}", Reply({"runId": FIRST}))
    api.on("GET", AS_OF[command], Reply({"items": [item], "agents": [], "runId": FIRST}))
    result = spawnlog(*command.split(), "--at", at)
    assert result.exit_code == 0, result.output
    (request,) = [request for request in api.asked if request.path == AS_OF[command]]
    assert request.query["at"] == at
    assert "#1" not in result.stdout


def test_pages_of_past_have_one_position(spawnlog: Command, api: RecordedApi) -> None:
    first = Reply(
        {"items": [{"deliveries": []}], "nextAfter": 7}, headers={"Spawnlog-Position": "40"}
    )
    # A page may be empty, and there is another one all the same.
    empty = Reply({"items": [], "nextAfter": 9}, headers={"Spawnlog-Position": "40"})
    last = Reply({"items": [{"deliveries": []}], "nextAfter": None})
    api.on("GET", "/v1/announcements", first, empty, last)
    result = spawnlog("announcement", "list", "--state", "due", "--at", "-5m", "-o", "jsonl")
    assert len(result.stdout.splitlines()) == 2
    assert [request.query["at"] for request in api.asked] == ["-5m", "pos:40", "pos:40"]
    assert {request.query["state"] for request in api.asked} == {"due"}


def test_ledger_shows_each_delivery(spawnlog: Command, api: RecordedApi) -> None:
    due = {
        "webhook": "chat\x1b",
        "state": "due",
        "attempts": 2,
        "nextAttemptAt": "2026-03-01T09:00:03Z",
    }
    entry = {
        "position": 9,
        "id": FIRST,
        "requester": KEY,
        "state": "delivered",
        "deliveries": [due],
    }
    api.on("GET", "/v1/announcements", Reply({"items": [entry]}))
    listed = spawnlog("announcement", "list")
    assert "chat\\x1b: due, 2 attempt(s), next 2026-03-01 09:00:03" in listed.stdout
    assert "state" not in api.asked[0].query


def test_inbox_is_listed_and_acknowledged(spawnlog: Command, api: RecordedApi) -> None:
    entry = {"id": "7", "runId": "11111111-x", "text": "Status: done\x1b", "status": "success"}
    inbox = f"/v1/sessions/{QUOTED}/announcements"
    api.on("GET", inbox, Reply({"items": [entry]}))
    api.on("POST", f"{inbox}/7/ack", Reply({"id": "7", "state": "acknowledged"}))
    listed = spawnlog("announcement", "list", KEY, "--after", "6")
    assert "Status: done\\x1b" in listed.stdout
    assert api.asked[0].query["after"] == "6"
    assert spawnlog("announcement", "ack", KEY, "7").exit_code == 0
    assert api.asked[-1].method == "POST"


def test_parked_deliveries_are_listed_and_redriven(spawnlog: Command, api: RecordedApi) -> None:
    deliveries = [
        {"webhook": "ops", "state": "delivered", "attempts": 1, "error": None},
        {"webhook": "chat", "state": "parked", "attempts": 15, "error": "HTTP 500\x1b"},
    ]
    gone = {"webhook": "old", "state": "parked", "attempts": 0, "error": None}
    deliveries.append({**gone, "parkedFor": "not_configured"})
    entry = {"position": 9, "id": FIRST, "requester": KEY, "deliveries": deliveries}
    api.on("GET", "/v1/announcements", Reply({"items": [entry]}))
    api.on(
        "POST",
        f"/v1/announcements/{FIRST}/redrive",
        Reply({"runId": FIRST, "webhooks": ["chat"], "hooks": []}),
    )
    listed = spawnlog("announcement", "list", "--parked")
    assert "chat: 15 attempt(s), HTTP 500\\x1b" in listed.stdout
    assert "old: 0 attempt(s), not_configured" in listed.stdout
    assert "ops" not in listed.stdout
    assert api.asked[0].query["state"] == "parked"
    again = spawnlog(
        "announcement", "redrive", FIRST, "--reason", "it is back", "--webhook", "chat"
    )
    assert again.stdout == f"announcement {FIRST} is sent again to chat\n"
    assert api.asked[-1].body == {"reason": "it is back", "webhook": "chat"}


def test_all_parked_announcements_are_redriven(spawnlog: Command, api: RecordedApi) -> None:
    refused = {"runId": "7", "code": "erased", "detail": "the texts were erased"}
    answer = {
        "redriven": [{"runId": FIRST, "webhooks": ["chat", "ops\x1b"]}],
        "refused": [refused],
        "moreAfter": 90,
        "until": 120,
    }
    api.on("POST", "/v1/announcements/redrive", Reply(answer))
    again = spawnlog(
        "announcement", "redrive-all", "--reason", "it is back", "--webhook", "chat", "--limit", "2"
    )
    assert FIRST in again.stdout
    assert "chat, ops\\x1b" in again.stdout
    assert "some stay parked" in again.stderr
    assert "--after 90 --until 120" in again.stderr
    assert api.asked[-1].body == {"reason": "it is back", "webhook": "chat", "limit": 2}


def test_unreachable_server_exits_5(spawnlog: Command) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        result = spawnlog("run", "list", "--url", url)
    assert result.exit_code == 5
    assert "spawnlog serve" in result.stderr


@pytest.mark.parametrize(
    ("status", "code", "exit_code", "line"),
    [
        (503, "not_ready", 5, "error: the database starts\n"),
        (403, "not_permitted", 3, "refused: needs the pattern *\n"),
    ],
)
def test_problem_of_server_is_one_line(
    status: int, code: str, exit_code: int, line: str, spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/lanes", problem(status, code=code, detail=line.strip().partition(": ")[2]))
    result = spawnlog("lane", "list")
    assert (result.exit_code, result.stderr) == (exit_code, line)


@pytest.mark.parametrize(
    "reply",
    [
        Reply("<html>", content_type="text/html"),
        Reply([1]),
        Reply({"hello": "world"}),
        Reply({"items": [1]}),
        Reply("<html>", status=500, content_type="text/html"),
        Reply("", status=302, headers={"Location": "http://example.org/"}),
    ],
)
def test_foreign_answer_is_an_error(reply: Reply, spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", reply)
    result = spawnlog("run", "list")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(api.asked) == 1


def test_status_shows_the_server(spawnlog: Command, server: RecordedApi) -> None:
    result = spawnlog("status")
    assert result.exit_code == 0
    fields = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert fields == {
        "server": server.url,
        "version": f"0.0.9 (this program: {version('spawnlog')})",
        "database": "ready",
        "configuration": "revision 3, spawnlog.json5, active since 2026-03-01 09:00:00",
        "head": "pos:42, recorded 2026-03-01 09:30:00",
        "lanes": "2 running, 1 queued",
    }


def test_status_of_a_server_without_database_is_unreachable(
    spawnlog: Command, server: RecordedApi
) -> None:
    server.on("GET", "/readyz", problem(503, detail="the database did not respond in time"))
    result = spawnlog("status")
    assert result.exit_code == 5
    assert "database  the database did not respond in time" in result.stdout


def test_status_hides_what_token_may_not_see(spawnlog: Command, server: RecordedApi) -> None:
    server.on("GET", "/v1/log", problem(403, detail="this token is not for that"))
    result = spawnlog("status")
    assert result.exit_code == 0
    assert "head           not shown to this token" in result.stdout


def test_version_is_a_command_and_an_option(spawnlog: Command) -> None:
    assert spawnlog("version").stdout == f"spawnlog {version('spawnlog')}\n"
    assert spawnlog("--version").stdout == spawnlog("version").stdout


@pytest.mark.parametrize("typed", [["-o", "json", "version"], ["version", "-o", "yaml"]])
def test_version_may_be_a_document(spawnlog: Command, typed: list[str]) -> None:
    assert yaml.safe_load(spawnlog(*typed).stdout) == {"version": version("spawnlog")}


@pytest.mark.parametrize(
    "before", [["-o", "json"], ["--output", "json"], ["--output=json"], ["-ojson"]]
)
def test_output_may_stand_before_command(
    spawnlog: Command, server: RecordedApi, before: list[str]
) -> None:
    assert json.loads(spawnlog(*before, "lane", "list").stdout)["items"] == [LANE]


def test_url_may_stand_before_command(spawnlog: Command, server: RecordedApi) -> None:
    result = spawnlog("--url", NOWHERE, "lane", "list")
    assert result.exit_code == 5
    for part in (NOWHERE, "(--url or SPAWNLOG_URL, --data-dir or SPAWNLOG_DATA_DIR)"):
        assert part in result.stderr


def test_yaml_is_one_document(spawnlog: Command, server: RecordedApi) -> None:
    assert yaml.safe_load(spawnlog("lane", "list", "-o", "yaml").stdout)["items"] == [LANE]
    assert yaml.safe_load(spawnlog("status", "-o", "yaml").stdout)["head"]["position"] == 42
