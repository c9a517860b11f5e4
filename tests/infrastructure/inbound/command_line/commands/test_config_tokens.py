"""What `config check` finds out about the tokens that a file gives out."""

import json
from pathlib import Path

import pytest

from tests.support.servers.command_line import Command

LONG = "0123456789abcdef"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    token = {"id": "board", "token": {"file": "token"}, "scopes": ["read"], "sessions": ["*"]}
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"spawnlog": {"tokens": [token]}}), "utf-8")
    return path


def write_token(file: Path, text: str, mode: int = 0o600) -> None:
    token = file.parent / "token"
    token.write_text(text, "utf-8")
    token.chmod(mode)


@pytest.mark.parametrize("text", [None, "", " \n", "two\nlines"])
def test_token_file_without_a_token_is_an_error(
    spawnlog: Command, file: Path, text: str | None
) -> None:
    if text is not None:
        write_token(file, text)
    result = spawnlog("config", "check", str(file))
    assert result.exit_code == 2
    assert "spawnlog.tokens[0].token.file: " in result.stderr
    assert "the server refuses every request with this token" in result.stderr
    assert f"{file} has mistakes:" in result.stderr


def test_file_that_stops_a_server_cannot_be_used(spawnlog: Command, file: Path) -> None:
    file.write_text("{", "utf-8")
    result = spawnlog("config", "check", str(file))
    assert result.exit_code == 2
    assert f"{file} cannot be used:" in result.stderr


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
    spawnlog: Command, file: Path, text: str, mode: int, warnings: list[str]
) -> None:
    write_token(file, text, mode)
    result = spawnlog("config", "check", str(file), "-o", "json")
    told = [one for one in json.loads(result.stdout)["warnings"] if "tokens" in one]
    assert result.exit_code == 0
    assert len(told) == len(warnings)
    assert all(text in one for text, one in zip(warnings, told, strict=True))
    assert text not in " ".join(told)


def test_token_variable_that_is_unset_is_a_warning(
    spawnlog: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOARD_TOKEN", raising=False)
    file.write_text(file.read_text("utf-8").replace('{"file": "token"}', '"${BOARD_TOKEN}"'))
    result = spawnlog("config", "check", str(file))
    assert result.exit_code == 0
    assert "BOARD_TOKEN: is not set" in result.stderr
