"""`spawnlog config` with hooks: nothing of them that is secret is shown."""

import json
from pathlib import Path

from tests.support.servers.command_line import Command

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
