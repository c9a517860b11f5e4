"""What a running server takes over from a changed file, and how long its end may take."""

import subprocess
import sys

import pytest

from domain.configuration.configuration import Configuration
from domain.configuration.settings import Settings
from infrastructure.server.lifecycle import main_key_warning, settings_needing_restart, warn_about
from tests.support.builders.configurations import load_text
from tests.support.servers.preloaded import ROOT

BEFORE = Settings(lease_seconds=15, drain_seconds=10)


def test_what_is_read_at_the_start_needs_a_restart_when_it_changes() -> None:
    after = Settings(lease_seconds=20, drain_seconds=5, allowed_hosts=("board.example",))
    assert settings_needing_restart(BEFORE, after) == (
        "allowedHosts",
        "drainSeconds",
        "leaseSeconds",
    )


def test_what_is_the_same_or_not_given_needs_none() -> None:
    assert settings_needing_restart(BEFORE, Settings(lease_seconds=15)) == ()
    assert settings_needing_restart(BEFORE, Settings()) == ()


@pytest.mark.parametrize(
    ("changed", "session"),
    [
        ({"session": {"mainKey": "desk"}}, "agent:main:desk"),
        ({"session": {"scope": "global"}}, "global"),
        ({"agents": {"list": [{"id": "helper"}]}}, "agent:helper:main"),
    ],
)
def test_it_is_told_when_main_is_another_session(changed: object, session: str) -> None:
    text = main_key_warning(Configuration(), Configuration.model_validate(changed))
    assert text is not None
    assert text.startswith(f"main was session agent:main:main and is {session} now, ")


def test_nothing_is_told_when_main_is_the_same_session() -> None:
    same = {"agents": {"list": [{"id": "helper"}, {"id": "main", "default": True}]}}
    assert main_key_warning(Configuration.builtin(), Configuration.model_validate(same)) is None


def test_what_a_file_can_hardly_mean_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    defaults = "{subagents: {thinking: 'turbo'}, runtime: {type: 'scripted'}}"
    warn_about(load_text(f"{{agents: {{defaults: {defaults}}}}}", "a.json5"))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        "a.json5:1:44: agents.defaults.subagents.thinking: is no level"
    )


def test_what_is_read_at_each_use_needs_none() -> None:
    after = Settings(script_timeout_seconds=3, scripts_total_seconds=4)
    assert settings_needing_restart(BEFORE, after) == ()


@pytest.mark.server
def test_an_end_that_takes_too_long_is_the_end_all_the_same() -> None:
    script = (
        "import asyncio\n"
        "from infrastructure.server.lifecycle import _end_after\n"
        "async def end():\n"
        "    with _end_after(0.05):\n"
        "        while True:\n"
        "            try:\n"
        "                await asyncio.Event().wait()\n"
        "            except asyncio.CancelledError:\n"
        "                print('was broken off')\n"
        "asyncio.run(end())\n"
    )
    command = [sys.executable, "-c", script]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "the process ends as it is" in ended.stderr
