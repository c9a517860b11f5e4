"""`spawnlog status`, `spawnlog version`, options before the command, and suggestions."""

import json
from importlib.metadata import version

import pytest
import yaml

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

LANE = {"lane": "subagent", "depth": 1, "width": 8, "running": ["a", "b"], "queued": ["c"]}
REVISION = {"revision": 3, "source": "spawnlog.json5", "activatedAt": "2026-03-01T09:00:00Z"}


@pytest.fixture
def server(api: RecordedApi) -> RecordedApi:
    api.on("GET", "/healthz", Reply({"status": "ok", "version": "0.0.9"}))
    api.on("GET", "/readyz", Reply({"status": "ready", "head": 42, "tail": 42}))
    api.on("GET", "/v1/log", Reply({"position": 42, "recordedAt": "2026-03-01T09:30:00Z"}))
    api.on("GET", "/v1/config/revisions", Reply({"items": [REVISION], "nextCursor": None}))
    api.on("GET", "/v1/lanes", Reply({"items": [LANE], "nextCursor": None}))
    return api


def test_status_shows_the_server(spawnlog: Command, server: RecordedApi) -> None:
    told = spawnlog("status")
    assert told.exit_code == 0
    fields = dict(line.split(maxsplit=1) for line in told.stdout.splitlines())
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
    server.on("GET", "/readyz", problem(503, detail="the database does not answer in time"))
    told = spawnlog("status")
    assert told.exit_code == 5
    assert "database  the database does not answer in time" in told.stdout


def test_status_hides_nothing_but_what_the_token_may_not_see(
    spawnlog: Command, server: RecordedApi
) -> None:
    server.on("GET", "/v1/log", problem(403, detail="this token is not for that"))
    told = spawnlog("status")
    assert told.exit_code == 0
    assert "head           not shown to this token" in told.stdout


def test_version_is_a_command_and_an_option(spawnlog: Command) -> None:
    assert spawnlog("version").stdout == f"spawnlog {version('spawnlog')}\n"
    assert spawnlog("--version").stdout == spawnlog("version").stdout


@pytest.mark.parametrize("typed", [["-o", "json", "version"], ["version", "-o", "yaml"]])
def test_version_may_be_a_document(spawnlog: Command, typed: list[str]) -> None:
    assert yaml.safe_load(spawnlog(*typed).stdout) == {"version": version("spawnlog")}


@pytest.mark.parametrize(
    "before",
    [["-o", "json"], ["--output", "json"], ["--output=json"], ["-ojson"]],
)
def test_output_may_stand_before_the_command(
    spawnlog: Command, server: RecordedApi, before: list[str]
) -> None:
    assert json.loads(spawnlog(*before, "lane", "list").stdout)["items"] == [LANE]


def test_url_may_stand_before_the_command(spawnlog: Command, server: RecordedApi) -> None:
    nowhere = "http://127.0.0.1:1"
    assert spawnlog("--url", nowhere, "lane", "list").exit_code == 5
    told = spawnlog("--url", nowhere, "lane", "list").stderr
    assert nowhere in told
    assert "(--url or SPAWNLOG_URL, --data-dir or SPAWNLOG_DATA_DIR)" in told


@pytest.mark.parametrize(
    ("typed", "refused"),
    [
        (["--url", "http://127.0.0.1:1", "version"], "version' does not take --url"),
        (["-o", "json", "--data-dir=x", "version"], "version' does not take --data-dir"),
        (["-ojson", "migrate"], "migrate' does not take -o"),
        (["--output", "--url", "--url", "x", "version"], "version' does not take --url"),
    ],
)
def test_global_option_of_a_command_without_it_is_refused(
    spawnlog: Command, typed: list[str], refused: str
) -> None:
    told = spawnlog(*typed)
    assert told.exit_code == 2
    assert refused in told.stderr


def test_yaml_is_one_document(spawnlog: Command, server: RecordedApi) -> None:
    assert yaml.safe_load(spawnlog("lane", "list", "-o", "yaml").stdout)["items"] == [LANE]
    assert yaml.safe_load(spawnlog("status", "-o", "yaml").stdout)["head"]["position"] == 42


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["get", "x"], "'run get' or"),
        (["list"], "'run list' or"),
        (["ps"], "'run list' or"),
        (["versoin"], "'version'"),
        (["run", "ls"], "'list'"),
        (["run", "kill", "x"], "'stop'"),
        (["spwan"], "'spawn'"),
        (["run", "list", "--json"], "--output json"),
        (["run", "list", "--yaml"], "--output yaml"),
        (["--json", "run", "list"], "--output json"),
        (["run", "list", "-n", "3"], "--limit"),
        (["event", "list", "--folow"], "--follow"),
        (["spawn", "-f", "x"], "--file"),
    ],
)
def test_wrong_word_is_answered_with_the_right_one(
    spawnlog: Command, typed: list[str], meant: str
) -> None:
    told = spawnlog(*typed)
    assert told.exit_code == 2
    assert meant in told.stderr
