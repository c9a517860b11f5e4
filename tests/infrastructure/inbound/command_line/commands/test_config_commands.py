"""`spawnlog config show`, `check`, `history` and `diff`."""

import json
from pathlib import Path
from typing import Any

import pytest

from application.queries.changes.json_patch import apply_patch
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

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


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "spawnlog.json5"
    path.write_text(FILE, "utf-8")
    return str(path)


def test_what_a_file_says_is_shown_without_its_secrets(spawnlog: Command, file: str) -> None:
    result = spawnlog("config", "show", file)

    shown = json.loads(result.stdout)
    assert result.exit_code == 0
    assert "s3cret" not in result.output
    assert shown["agents"]["list"][1] == {"id": "counter", "subagents": {"thinking": "low"}}
    assert shown["spawnlog"] == {"databaseUrl": {"$secret": "/spawnlog/databaseUrl"}}
    env = shown["agents"]["defaults"]["runtime"]["env"]
    assert env == {"API_KEY": {"$secret": "/agents/defaults/runtime/env/API_KEY"}}


def test_effective_writes_every_default_out(spawnlog: Command, file: str) -> None:
    result = spawnlog("config", "show", file, "--effective", "-o", "jsonl")

    shown = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert "s3cret" not in result.output
    assert shown["spawnlog"]["leaseSeconds"] == 15
    assert shown["spawnlog"]["databaseUrl"] == {"$secret": "/spawnlog/databaseUrl"}
    assert shown["agents"]["defaults"]["subagents"]["maxSpawnDepth"] == 1


def test_an_agent_is_shown_value_by_value_with_the_place_of_each(
    spawnlog: Command, file: str
) -> None:
    lines = spawnlog("config", "show", file, "--agent", "COUNTER").stdout.splitlines()

    assert lines[0].split() == ["KEY", "VALUE", "FROM"]
    rows = [line.split() for line in lines]
    assert ["thinking", "low", "agents.list[1].subagents.thinking"] in rows
    assert ["mayName", "countr", "agents.defaults.subagents.allowAgents"] in rows
    assert ["maxConcurrent", "8", "built-in"] in rows


def test_an_agent_is_shown_as_json_too(spawnlog: Command, file: str) -> None:
    rows = json.loads(spawnlog("config", "show", file, "--agent", "main", "-o", "json").stdout)

    assert {"key": "requireAgentId", "value": False, "from": "built-in"} in rows
    lines = spawnlog("config", "show", file, "--agent", "main", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_an_agent_that_is_not_there_is_not_found(spawnlog: Command, file: str) -> None:
    result = spawnlog("config", "show", file, "--agent", "count")

    assert result.exit_code == 4
    assert 'there is no agent "count"; did you mean "counter"?' in result.stderr
    assert spawnlog("config", "show", file, "--agent", "\x1b[1m").exit_code == 4


def test_without_a_file_the_built_in_configuration_is_shown(spawnlog: Command) -> None:
    shown = json.loads(spawnlog("config", "show").stdout)
    assert [agent["id"] for agent in shown["agents"]["list"]] == ["main"]
    rows = json.loads(spawnlog("config", "show", "--agent", "main", "-o", "json").stdout)
    assert {row["from"] for row in rows} == {"built-in"}


def test_a_file_with_mistakes_is_not_shown(spawnlog: Command, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json5"
    path.write_text("{spawnlog: {prot: 1}}", "utf-8")
    result = spawnlog("config", "show", str(path))

    assert result.exit_code == 2
    assert 'spawnlog.prot: unknown key; did you mean "port"?' in result.stderr
    assert result.stdout == ""


def test_what_is_doubtful_is_a_warning_with_its_line_and_no_error(
    spawnlog: Command, file: str
) -> None:
    result = spawnlog("config", "check", file)

    assert result.exit_code == 0
    assert "is right" in result.stdout
    (warning,) = result.stderr.splitlines()
    assert warning.startswith("warning: ")
    assert "spawnlog.json5:4:34: agents.defaults.subagents.allowAgents[0]: " in warning
    assert warning.endswith(
        'is not configured: a spawn that names it is refused; did you mean "counter"?'
    )


REVISIONS = "/v1/config/revisions"

CONTENTS: dict[int, Any] = {
    1: {"agents": {"list": [{"id": "main"}, {"id": "writer", "model": "a/b"}]}},
    2: {"agents": {"list": [{"id": "writer", "model": "a/c"}]}, "x": "\x1b[2J"},
    3: None,
}


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


@pytest.fixture(autouse=True)
def _served(api: RecordedApi) -> None:
    items = [revision(number) for number in sorted(CONTENTS, reverse=True)]
    api.on("GET", REVISIONS, Reply({"items": items, "nextCursor": None}))
    for number, content in CONTENTS.items():
        api.on("GET", f"{REVISIONS}/{number}", Reply({**revision(number), "content": content}))


def test_the_history_says_what_was_active_when(spawnlog: Command, api: RecordedApi) -> None:
    lines = spawnlog("config", "history", "--at", "pos:40").stdout.splitlines()
    assert api.asked[0].query == {"at": "pos:40", "limit": "50"}
    assert lines[1].split() == [
        *("3", "30", "2026-03-01", "09:30:00.000", "now", "system", "spawnlog.json5", "(erased)"),
    ]
    assert lines[2].split()[:2] == ["2", "20"]


def test_a_difference_is_shown_place_by_place_and_is_exit_status_1(spawnlog: Command) -> None:
    result = spawnlog("config", "diff", "1", "2")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["WHERE", "BEFORE", "AFTER"]
    assert ["/agents/list/0", '{"id":', '"main"}', "-"] in rows
    assert ["/agents/list/0/model", '"a/b"', '"a/c"'] in rows
    assert ["/x", "-", '"\\u001b[2J"'] in rows


def test_as_json_it_is_a_patch_that_leads_from_one_to_the_other(spawnlog: Command) -> None:
    whole = spawnlog("config", "diff", "1", "2", "-o", "json")
    lines = spawnlog("config", "diff", "1", "2", "-o", "jsonl").stdout.splitlines()
    patch = json.loads(whole.stdout)
    assert whole.exit_code == 1
    assert [json.loads(line) for line in lines] == patch
    assert apply_patch(patch, CONTENTS[1]) == CONTENTS[2]


def test_no_difference_is_exit_status_0(spawnlog: Command) -> None:
    result = spawnlog("config", "diff", "2", "2")
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(spawnlog("config", "diff", "2", "2", "-o", "json").stdout) == []


def test_without_another_one_it_is_the_active_one_and_what_was_erased_is_said(
    spawnlog: Command,
) -> None:
    result = spawnlog("config", "diff", "1")
    assert result.exit_code == 4
    assert "the text of revision 3 was erased" in result.stderr


def test_show_at_is_what_was_active_then(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", REVISIONS, Reply({"items": [revision(1)], "nextCursor": None}))
    shown = spawnlog("config", "show", "--at", "pos:12")
    assert json.loads(shown.stdout) == CONTENTS[1]
    assert api.asked[0].query == {"at": "pos:12", "limit": "1"}
    effective = spawnlog("config", "show", "--at", "pos:12", "--effective")
    assert json.loads(effective.stdout)["spawnlog"]["leaseSeconds"] == 15
    agent = spawnlog("config", "show", "--at", "pos:12", "--agent", "writer")
    assert ["model", "a/b", "agents.list[1].model"] in [
        line.split() for line in agent.stdout.splitlines()
    ]
    both = spawnlog("config", "show", "file.json5", "--at", "pos:12")
    assert both.exit_code == 2
    assert "leave FILE out" in both.stderr


def test_before_the_first_revision_there_is_none(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", REVISIONS, Reply({"items": [], "nextCursor": None}))
    assert spawnlog("config", "show", "--at", "pos:0").exit_code == 4


LONG = "0123456789abcdef"


@pytest.fixture
def tokens_file(tmp_path: Path) -> Path:
    token = {"id": "board", "token": {"file": "token"}, "scopes": ["read"], "sessions": ["*"]}
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"spawnlog": {"tokens": [token]}}), "utf-8")
    return path


def write_token(tokens_file: Path, text: str, mode: int = 0o600) -> None:
    token = tokens_file.parent / "token"
    token.write_text(text, "utf-8")
    token.chmod(mode)


@pytest.mark.parametrize("text", [None, "", " \n", "two\nlines"])
def test_token_file_without_a_token_is_an_error(
    spawnlog: Command, tokens_file: Path, text: str | None
) -> None:
    if text is not None:
        write_token(tokens_file, text)
    result = spawnlog("config", "check", str(tokens_file))
    assert result.exit_code == 2
    assert "spawnlog.tokens[0].token.file: " in result.stderr
    assert "the server refuses every request with this token" in result.stderr
    assert f"{tokens_file} has mistakes:" in result.stderr


def test_file_that_stops_a_server_cannot_be_used(spawnlog: Command, tokens_file: Path) -> None:
    tokens_file.write_text("{", "utf-8")
    result = spawnlog("config", "check", str(tokens_file))
    assert result.exit_code == 2
    assert f"{tokens_file} cannot be used:" in result.stderr


@pytest.mark.parametrize(
    ("text", "mode", "warnings"),
    [
        (LONG, 0o600, []),
        (LONG[:-1], 0o600, ["holds fewer than 16 characters"]),
        (LONG, 0o640, ["other users of this machine can read"]),
        ("abc", 0o604, ["holds fewer than 16 characters", "other users of this machine can read"]),
    ],
)
def test_token_that_is_easy_to_get_is_a_warning(
    spawnlog: Command, tokens_file: Path, text: str, mode: int, warnings: list[str]
) -> None:
    write_token(tokens_file, text, mode)
    result = spawnlog("config", "check", str(tokens_file), "-o", "json")
    told = [one for one in json.loads(result.stdout)["warnings"] if "tokens" in one]
    assert result.exit_code == 0
    assert len(told) == len(warnings)
    assert all(text in one for text, one in zip(warnings, told, strict=True))
    assert text not in " ".join(told)


def test_token_variable_that_is_unset_is_a_warning(
    spawnlog: Command, tokens_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOARD_TOKEN", raising=False)
    tokens_file.write_text(
        tokens_file.read_text("utf-8").replace('{"file": "token"}', '"${BOARD_TOKEN}"')
    )
    result = spawnlog("config", "check", str(tokens_file))
    assert result.exit_code == 0
    assert "BOARD_TOKEN: is not set" in result.stderr


CANARY = "canary-of-a-hook-0123456789"


def test_headers_and_addresses_with_a_query_are_not_shown(
    spawnlog: Command, tmp_path: Path
) -> None:
    path = tmp_path / "spawnlog.json5"
    hook = {"url": f"https://h/?k={CANARY}", "headers": {"A": CANARY}}
    path.write_text(json.dumps({"spawnlog": {"hooks": {"subagentEnded": hook}}}), "utf-8")
    for words in (["show"], ["show", "--effective"], ["check"]):
        result = spawnlog("config", *words, str(path))
        assert result.exit_code == 0, result.output
        assert CANARY not in result.output


def test_a_mistake_in_one_does_not_show_it(spawnlog: Command, tmp_path: Path) -> None:
    path = tmp_path / "spawnlog.json5"
    hook = {"url": f"https://u:{CANARY}@h/", "headers": {"A": f"{CANARY}\n"}}
    path.write_text(json.dumps({"spawnlog": {"hooks": {"subagentEnded": hook}}}), "utf-8")
    result = spawnlog("config", "check", str(path))
    assert result.exit_code != 0
    assert "must not hold a user name or a password" in result.output
    assert CANARY not in result.output
