"""`spawnlog config show`, `check`, `history` and `diff`."""

import json
from pathlib import Path
from typing import Any

import pytest

from application.queries.changes.json_patch import apply_patch
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

REVISIONS = "/v1/config/revisions"
FILE = """{
  agents: {
    defaults: {
      subagents: { allowAgents: ["countr"] },
      runtime: { type: "command", command: ["true"], env: { API_KEY: "s3cret" } },
    },
    list: [{ id: "main" }, { id: "counter", subagents: { thinking: "low" } }],
  },
  spawnlog: { databaseUrl: "postgresql://u:s3cret@h/d" },
}"""
CONTENTS: dict[int, Any] = {
    1: {"agents": {"list": [{"id": "main"}, {"id": "writer", "model": "a/b"}]}},
    2: {"agents": {"list": [{"id": "writer", "model": "a/c"}]}, "x": "\x1b[2J"},
    3: None,
}
TOKEN = "0123456789abcdef"
CANARY = "canary-of-a-hook-0123456789"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "spawnlog.json5"
    path.write_text(FILE, "utf-8")
    return path


def rows(lines: str) -> list[list[str]]:
    return [line.split() for line in lines.splitlines()]


# Files.


@pytest.mark.parametrize("flags", [[], ["--effective", "-o", "jsonl"]])
def test_show_hides_secrets(flags: list[str], spawnlog: Command, file: Path) -> None:
    result = spawnlog("config", "show", str(file), *flags)
    assert result.exit_code == 0
    assert "s3cret" not in result.output
    shown = json.loads(result.stdout)
    assert shown["spawnlog"]["databaseUrl"] == {"$secret": "/spawnlog/databaseUrl"}
    env = shown["agents"]["defaults"]["runtime"]["env"]
    assert env == {"API_KEY": {"$secret": "/agents/defaults/runtime/env/API_KEY"}}
    if flags:
        assert result.stdout.count("\n") == 1
        assert shown["spawnlog"]["leaseSeconds"] == 15
        assert shown["agents"]["defaults"]["subagents"]["maxSpawnDepth"] == 1
    else:
        assert shown["agents"]["list"][1] == {"id": "counter", "subagents": {"thinking": "low"}}
        assert set(shown["spawnlog"]) == {"databaseUrl"}


def test_show_agent_names_source_of_values(spawnlog: Command, file: Path) -> None:
    shown = rows(spawnlog("config", "show", str(file), "--agent", "COUNTER").stdout)
    assert shown[0] == ["KEY", "VALUE", "FROM"]
    assert ["thinking", "low", "agents.list[1].subagents.thinking"] in shown
    assert ["mayName", "countr", "agents.defaults.subagents.allowAgents"] in shown
    assert ["maxConcurrent", "8", "built-in"] in shown
    as_json = [
        spawnlog("config", "show", str(file), "--agent", "main", "-o", output).stdout
        for output in ("json", "jsonl")
    ]
    assert {"key": "requireAgentId", "value": False, "from": "built-in"} in json.loads(as_json[0])
    assert [json.loads(line) for line in as_json[1].splitlines()] == json.loads(as_json[0])


def test_show_unknown_agent_exits_4(spawnlog: Command, file: Path) -> None:
    result = spawnlog("config", "show", str(file), "--agent", "count")
    assert result.exit_code == 4
    assert 'there is no agent "count"; did you mean "counter"?' in result.stderr
    assert spawnlog("config", "show", str(file), "--agent", "\x1b[1m").exit_code == 4


def test_show_without_file_is_built_in(spawnlog: Command) -> None:
    result = spawnlog("config", "show")
    assert "the built-in configuration: name FILE" in result.stderr
    shown = json.loads(result.stdout)
    assert [agent["id"] for agent in shown["agents"]["list"]] == ["main"]
    values = json.loads(spawnlog("config", "show", "--agent", "main", "-o", "json").stdout)
    assert {row["from"] for row in values} == {"built-in"}


def test_show_names_file_of_environment(spawnlog: Command, file: Path) -> None:
    assert spawnlog("config", "show", str(file)).stderr == ""
    result = spawnlog("config", "show", settings={"SPAWNLOG_CONFIG": str(file)})
    assert result.stderr == f"the configuration of {file}, named by SPAWNLOG_CONFIG\n"
    assert json.loads(result.stdout)["agents"]["list"]


def test_show_refuses_file_with_mistakes(spawnlog: Command, file: Path) -> None:
    file.write_text("{spawnlog: {prot: 1}}", "utf-8")
    result = spawnlog("config", "show", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert 'spawnlog.prot: unknown key; did you mean "port"?' in result.stderr


def test_check_warns_with_line(spawnlog: Command, file: Path) -> None:
    result = spawnlog("config", "check", str(file))
    assert result.exit_code == 0
    assert "is valid" in result.stdout
    (warning,) = result.stderr.splitlines()
    assert warning.startswith("warning: ")
    assert "spawnlog.json5:4:34: agents.defaults.subagents.allowAgents[0]: " in warning
    assert warning.endswith(
        'is not configured, so a spawn that names it is refused; did you mean "counter"?'
    )


def test_check_refuses_what_no_server_starts_with(spawnlog: Command, tmp_path: Path) -> None:
    file = tmp_path / "open.json5"
    file.write_text('{spawnlog: {noAuth: true, host: "0.0.0.0"}}', "utf-8")
    result = spawnlog("config", "check", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be used" in result.stderr
    assert "serving without authentication needs a loopback host" in result.stderr


@pytest.mark.parametrize(
    ("url", "value", "commands", "message"),
    [
        (f"https://h/?k={CANARY}", CANARY, ["show", "show --effective", "check"], None),
        (
            f"https://u:{CANARY}@h/",
            f"{CANARY}\n",
            ["check"],
            "must not contain a user name or a password",
        ),
    ],
)
def test_secrets_of_hooks_are_not_shown(
    url: str, value: str, commands: list[str], message: str | None, spawnlog: Command, file: Path
) -> None:
    hook = {"url": url, "headers": {"A": value}}
    file.write_text(json.dumps({"spawnlog": {"hooks": {"subagentEnded": hook}}}), "utf-8")
    for words in commands:
        result = spawnlog("config", *words.split(), str(file))
        assert (result.exit_code == 0) is (message is None), result.output
        assert (message or "") in result.output
        assert CANARY not in result.output


# Tokens in files and variables.


@pytest.fixture
def token(file: Path) -> Path:
    """Return the missing file of a configured token."""
    row = {"id": "board", "token": {"file": "token"}, "scopes": ["read"], "sessions": ["*"]}
    file.write_text(json.dumps({"spawnlog": {"tokens": [row]}}), "utf-8")
    return file.parent / "token"


@pytest.mark.parametrize("text", [None, "", " \n", "two\nlines"])
def test_token_file_without_a_token_is_an_error(
    text: str | None, spawnlog: Command, file: Path, token: Path
) -> None:
    if text is not None:
        token.write_text(text, "utf-8")
        token.chmod(0o600)
    result = spawnlog("config", "check", str(file))
    assert result.exit_code == 2
    for part in (
        "spawnlog.tokens[0].token.file: ",
        "the server refuses every request with this token",
        f"{file} has mistakes:",
    ):
        assert part in result.stderr


@pytest.mark.parametrize(
    ("text", "mode", "warnings"),
    [
        (TOKEN, 0o600, []),
        (TOKEN[:-1], 0o600, ["holds fewer than 16 characters"]),
        (TOKEN, 0o640, ["other users of this machine can read"]),
        ("abc", 0o604, ["holds fewer than 16 characters", "other users of this machine can read"]),
    ],
)
def test_token_that_is_easy_to_get_is_a_warning(
    text: str, mode: int, warnings: list[str], spawnlog: Command, file: Path, token: Path
) -> None:
    token.write_text(text, "utf-8")
    token.chmod(mode)
    result = spawnlog("config", "check", str(file), "-o", "json")
    found = [warning for warning in json.loads(result.stdout)["warnings"] if "tokens" in warning]
    assert (result.exit_code, len(found)) == (0, len(warnings))
    assert all(part in warning for part, warning in zip(warnings, found, strict=True))
    assert text not in " ".join(found)


@pytest.mark.usefixtures("token")
def test_token_variable_that_is_unset_is_a_warning(
    spawnlog: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOARD_TOKEN", raising=False)
    file.write_text(file.read_text("utf-8").replace('{"file": "token"}', '"${BOARD_TOKEN}"'))
    result = spawnlog("config", "check", str(file))
    assert result.exit_code == 0
    assert "BOARD_TOKEN: is not set" in result.stderr


# Revisions.


def revision(number: int) -> dict[str, Any]:
    is_newest = number == max(CONTENTS)
    return {
        "revision": number,
        "position": number * 10,
        "activatedAt": "2026-03-01T09:30:00Z",
        "activatedBy": "system",
        "source": "spawnlog.json5",
        "untilPosition": None if is_newest else number * 10 + 10,
        "untilAt": None if is_newest else "2026-03-01T09:31:00Z",
        "bytes": 412,
        "erased": CONTENTS[number] is None,
    }


@pytest.fixture
def server(api: RecordedApi) -> RecordedApi:
    items = [revision(number) for number in sorted(CONTENTS, reverse=True)]
    api.on("GET", REVISIONS, Reply({"items": items, "nextCursor": None}))
    for number, content in CONTENTS.items():
        api.on("GET", f"{REVISIONS}/{number}", Reply({**revision(number), "content": content}))
    return api


def test_history_shows_when_revisions_were_active(spawnlog: Command, server: RecordedApi) -> None:
    shown = rows(spawnlog("config", "history", "--at", "pos:40").stdout)
    assert server.asked[0].query == {"at": "pos:40", "limit": "50"}
    assert shown[1] == [
        *("3", "30", "2026-03-01", "09:30:00.000", "now", "system", "spawnlog.json5", "(erased)"),
    ]
    assert shown[2][:2] == ["2", "20"]


@pytest.mark.usefixtures("server")
def test_difference_exits_1(spawnlog: Command) -> None:
    result = spawnlog("config", "diff", "1", "2")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    shown = rows(result.stdout)
    assert shown[0] == ["WHERE", "BEFORE", "AFTER"]
    assert ["/agents/list/0", '{"id":', '"main"}', "-"] in shown
    assert ["/agents/list/0/model", '"a/b"', '"a/c"'] in shown
    assert ["/x", "-", '"\\u001b[2J"'] in shown
    whole = spawnlog("config", "diff", "1", "2", "-o", "json")
    lines = spawnlog("config", "diff", "1", "2", "-o", "jsonl").stdout.splitlines()
    patch = json.loads(whole.stdout)
    assert whole.exit_code == 1
    assert [json.loads(line) for line in lines] == patch
    assert apply_patch(patch, CONTENTS[1]) == CONTENTS[2]


@pytest.mark.usefixtures("server")
def test_no_difference_exits_0(spawnlog: Command) -> None:
    result = spawnlog("config", "diff", "2", "2")
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(spawnlog("config", "diff", "2", "2", "-o", "json").stdout) == []


@pytest.mark.usefixtures("server")
def test_diff_with_erased_active_revision_exits_4(spawnlog: Command) -> None:
    result = spawnlog("config", "diff", "1")
    assert result.exit_code == 4
    assert "the text of revision 3 was erased" in result.stderr


def test_show_at_is_what_was_active_then(spawnlog: Command, server: RecordedApi) -> None:
    server.on("GET", REVISIONS, Reply({"items": [revision(1)], "nextCursor": None}))
    at = ["config", "show", "--at", "pos:12"]
    assert json.loads(spawnlog(*at).stdout) == CONTENTS[1]
    assert server.asked[0].query == {"at": "pos:12", "limit": "1"}
    assert json.loads(spawnlog(*at, "--effective").stdout)["spawnlog"]["leaseSeconds"] == 15
    agent = rows(spawnlog(*at, "--agent", "writer").stdout)
    assert ["model", "a/b", "agents.list[1].model"] in agent


def test_show_before_first_revision_exits_4(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", REVISIONS, Reply({"items": [], "nextCursor": None}))
    assert spawnlog("config", "show", "--at", "pos:0").exit_code == 4
