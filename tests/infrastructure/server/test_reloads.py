"""A reload that goes wrong is logged, and the next one is a reload again."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration
from domain.configuration.session import SessionSection
from domain.configuration.settings import Settings
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.server.lifecycle import _reload_now

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
    """A configuration under which `main` is no session, as no file can say it."""
    return Configuration().model_copy(
        update={"session": SessionSection.model_construct(main_key="x" * 600)}
    )


async def test_what_cannot_be_told_of_a_reload_does_not_stop_it_or_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "spawnlog")
    file, active = tmp_path / "spawnlog.json5", Active(broken())
    house: Any = SimpleNamespace(configurations=active, settings=Settings(lease_seconds=15))
    told = []
    for name in ("desk", "board"):
        file.write_text(GOOD % name, "utf-8")
        caplog.clear()
        await _reload_now(house, file)
        told.append([(one.levelname, one.getMessage()) for one in caplog.records])
    assert told[0] == [
        ("ERROR", "what the configuration changes could not be logged"),
        ("INFO", "configuration revision 2 is active"),
    ]
    assert [level for level, _ in told[1]] == ["WARNING", "INFO"]
    assert told[1][0][1].startswith("main was session agent:main:desk and is agent:main:board now")
    assert told[1][1][1] == "configuration revision 3 is active"
