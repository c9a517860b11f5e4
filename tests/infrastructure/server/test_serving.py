"""Values that a running server takes from a changed file, and the time limit of its end."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.configuration.session import SessionSection
from domain.configuration.settings import Settings, effective_settings
from infrastructure.contract.errors import UserError
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.server.lifecycle import (
    _reload_now,
    main_key_warning,
    settings_needing_restart,
    warn_about,
)
from infrastructure.server.operations import data_directory_of
from tests.support.builders.configurations import load_text
from tests.support.servers.preloaded import ROOT

BEFORE = Settings(lease_seconds=15, drain_seconds=10)


def test_settings_of_the_start_need_a_restart() -> None:
    after = Settings(lease_seconds=20, drain_seconds=5, allowed_hosts=("board.example",))
    changed = settings_needing_restart(BEFORE, BEFORE, after)
    assert changed == ("allowedHosts", "drainSeconds", "leaseSeconds")


def test_change_of_authentication_or_place_needs_a_restart() -> None:
    before = Settings(no_auth=True)
    after = Settings(host="0.0.0.0", port=8701, data_dir="/srv/log")
    changed = settings_needing_restart(before, before, after)
    assert changed == ("dataDir", "host", "noAuth", "port")


def test_setting_that_the_command_line_overrides_needs_no_restart() -> None:
    running, file = Settings(port=0), Settings(port=8701)
    assert settings_needing_restart(running, file, file) == ()
    assert settings_needing_restart(running, Settings(port=8701), Settings(port=0)) == ()


@pytest.mark.parametrize(
    "after",
    [
        Settings(lease_seconds=15),
        Settings(),
        Settings(script_timeout_seconds=3, scripts_total_seconds=4),
    ],
)
def test_other_settings_need_no_restart(after: Settings) -> None:
    assert settings_needing_restart(BEFORE, BEFORE, after) == ()


@pytest.mark.parametrize(
    ("changed", "session"),
    [
        ({"session": {"mainKey": "desk"}}, "agent:main:desk"),
        ({"session": {"scope": "global"}}, "global"),
        ({"agents": {"list": [{"id": "helper"}]}}, "agent:helper:main"),
    ],
)
def test_other_main_session_is_told(changed: object, session: str) -> None:
    text = main_key_warning(Configuration(), Configuration.model_validate(changed))
    assert text is not None
    assert text.startswith(f"main was session agent:main:main and is now {session}, ")


def test_same_main_session_is_not_told() -> None:
    same = {"agents": {"list": [{"id": "helper"}, {"id": "main", "default": True}]}}
    assert main_key_warning(Configuration.builtin(), Configuration.model_validate(same)) is None


def test_warning_of_a_file_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    defaults = "{subagents: {thinking: 'turbo'}, runtime: {type: 'scripted'}}"
    warn_about(load_text(f"{{agents: {{defaults: {defaults}}}}}", "a.json5"))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        "a.json5:1:44: agents.defaults.subagents.thinking: is not a thinking level"
    )


@pytest.mark.server
def test_end_that_takes_too_long_is_the_end() -> None:
    script = (
        "import asyncio\n"
        "from infrastructure.server.lifecycle import _end_after\n"
        "async def end():\n"
        "    _end_after(0.05)\n"
        "    while True:\n"
        "        try:\n"
        "            await asyncio.Event().wait()\n"
        "        except asyncio.CancelledError:\n"
        "            print('was broken off')\n"
        "asyncio.run(end())\n"
    )
    command = [sys.executable, "-c", script]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "the process exits now" in ended.stderr


GOOD = "{agents: {defaults: {runtime: {type: 'scripted'}}}, session: {mainKey: '%s'}}"


class Active:
    """The active configuration of a house, without a log."""

    def __init__(self, configuration: Configuration) -> None:
        self.revision = 1
        self.pinned = PinnedConfiguration(1, configuration, {})

    def current(self) -> PinnedConfiguration:
        return self.pinned

    async def activate(self, loaded: LoadedConfiguration, _: Any) -> int:
        self.revision += 1
        self.pinned = PinnedConfiguration(self.revision, loaded.configuration, {})
        return self.revision


def broken() -> Configuration:
    """Return a configuration in which `main` is not a session, which no file can contain."""
    return Configuration().model_copy(
        update={"session": SessionSection.model_construct(main_key="x" * 600)}
    )


async def test_untold_change_does_not_stop_reload_or_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "spawnlog")
    file, active = tmp_path / "spawnlog.json5", Active(broken())
    house: Any = SimpleNamespace(configurations=active, settings=Settings(lease_seconds=15))
    result = []
    for name in ("desk", "board"):
        file.write_text(GOOD % name, "utf-8")
        caplog.clear()
        await _reload_now(house, file)
        result.append([(record.levelname, record.getMessage()) for record in caplog.records])
    assert result[0] == [
        ("ERROR", "the changes to the configuration could not be logged"),
        ("INFO", "configuration revision 2 is active"),
    ]
    assert [level for level, _ in result[1]] == ["WARNING", "INFO"]
    assert result[1][0][1].startswith(
        "main was session agent:main:desk and is now agent:main:board, "
    )
    assert result[1][1][1] == "configuration revision 3 is active"


def folder_of(written: str, folder: Path, **flags: object) -> Path | None:
    loaded = load_text(f"{{spawnlog: {{dataDir: '{written}'}}}}", "a.json5", folder)
    return data_directory_of(loaded, effective_settings(loaded.configuration.spawnlog, {}, flags))


def test_variable_in_the_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", str(tmp_path / "elsewhere"))
    assert folder_of("${PLACE}/data", tmp_path) == tmp_path / "elsewhere" / "data"
    monkeypatch.setenv("PLACE", "inside")
    assert folder_of("${PLACE}/data", tmp_path) == tmp_path / "inside" / "data"


@pytest.mark.parametrize(
    ("value", "written", "why"),
    [(None, "${PLACE}/data", "PLACE: is not set"), (" ", "${PLACE}", "empty path")],
)
def test_unset_or_blank_variable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None, written: str, why: str
) -> None:
    monkeypatch.delenv("PLACE", raising=False)
    if value is not None:
        monkeypatch.setenv("PLACE", value)
    with pytest.raises(ConfigurationError, match=why):
        folder_of(written, tmp_path)


def test_flag_is_taken_as_it_is(tmp_path: Path) -> None:
    assert folder_of("data", tmp_path, data_dir="${PLACE}") == Path("${PLACE}")
    assert folder_of("data", tmp_path) == tmp_path / "data"


def test_path_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    """Paths of transcripts are recorded."""
    named = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(UserError, match="is not UTF-8; name another one with --data-dir"):
        DataDirectory.open(named)
    assert not named.exists()
