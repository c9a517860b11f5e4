"""Files of credentials that `config check` warns of."""

import os
from pathlib import Path

import pytest

from infrastructure.outbound.configuration.load import load
from tests.support.builders.folders import api_key, write_profiles

CANARY = "canary-of-a-doubt-0123456789"


def checked(folder: Path, *agents: str) -> list[str]:
    """What is doubtful about a file with these agents, one a line from the second on."""
    path = folder / "spawnlog.json5"
    start = "{agents: {defaults: {runtime: {type: 'scripted'}}, list: [\n"
    path.write_text(start + ",\n".join(agents) + "\n]}}", "utf-8")
    warnings = [str(one).removeprefix(f"{path}:") for one in load(path).warnings]
    assert not [one for one in warnings if CANARY in one]
    return warnings


def test_a_folder_without_a_file_and_one_that_is_right_are_not_doubtful(tmp_path: Path) -> None:
    write_profiles(tmp_path / "right", {"a": api_key("a", CANARY)})
    agents = "{id: 'a', agentDir: 'right'}", "{id: 'b', agentDir: 'none'}", "{id: 'c'}"
    assert checked(tmp_path, *agents) == []


def test_what_cannot_be_used_is_told_at_the_agents_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_FOLDER", raising=False)
    write_profiles(tmp_path / "oauth", {"a:me": {"type": "oauth", "access": CANARY}})
    write_profiles(tmp_path / "wide", {"a": api_key("a", CANARY)}, 0o644)
    write_profiles(tmp_path / "broken", f"{{\n\n  {CANARY}")
    write_profiles(tmp_path / "blank", {"a": api_key("a", " ")})
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "auth-profiles.json")
    names = "oauth", "wide", "broken", "pipe", "${NO_SUCH_FOLDER}", "blank"
    agents = [f"{{id: 'a{at}', agentDir: '{name}'}}" for at, name in enumerate(names)]
    oauth, wide, broken, pipe, unset, blank = checked(tmp_path, *agents)
    where = "agents.list[0].agentDir: auth-profiles.json"
    assert oauth.startswith(f'2:22: {where} has profile "a:me", which is not used: it is of type')
    assert wide.startswith("3:22: agents.list[1].agentDir: auth-profiles.json may be read")
    refused = "spawns of this agent are refused for it"
    where = "auth-profiles.json is"
    assert broken.startswith(f"4:22: agents.list[2].agentDir: {where} not JSON5 at line 3, column")
    assert broken.endswith(refused)
    assert pipe == f"5:22: agents.list[3].agentDir: {where} not a regular file; {refused}"
    assert blank.endswith("cannot be used: it has a value that is blank or contains NUL")
    assert unset.startswith("6:22: agents.list[4].agentDir: cannot be resolved, and ")
    assert "NO_SUCH_FOLDER: is not set" in unset
