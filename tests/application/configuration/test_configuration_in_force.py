"""Configuration in force at a position, whatever a process has seen."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from application.log.envelope import Actor
from application.ports.configurations import NoActiveConfigurationError, RevisionErasedError
from domain.values.record import CONFIG_STREAM
from tests.support.builders.configurations import load_values
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

OPERATOR = Actor(kind="token", token="operator")
pytestmark = pytest.mark.server


def values(width: int) -> dict[str, Any]:
    return {"agents": {"defaults": {"subagents": {"maxConcurrent": width}}}}


async def width_at(configurations: ServerConfigurations, position: int) -> int:
    pinned = await configurations.in_force(position)
    return pinned.configuration.subagent_defaults.max_concurrent


async def test_last_activation_of_any_process_is_in_force(
    running: RunningLog, tmp_path: Path
) -> None:
    here, behind = (ServerConfigurations(running, tmp_path) for _ in range(2))
    expected: dict[int, int] = {}
    family = LoggedFamily(running.log)
    for width in (3, 4, 5):
        before = await running.log.head()
        await here.activate(load_values(values(width)), OPERATOR)
        first = await running.log.head()
        assert first == before + 1
        await family.live(f"run-{width}")
        expected |= dict.fromkeys(range(first, await running.log.head() + 1), width)
        if width == 3:
            await behind.activate(load_values(values(width)), OPERATOR)
    assert behind.current().revision == 1
    for _ in range(2):
        for position, width in expected.items():
            assert await width_at(here, position) == width
            assert await width_at(behind, position) == width
    # By now it has read the later revisions.
    assert behind.current().revision == 3


async def test_before_the_first_there_is_none(running: RunningLog, tmp_path: Path) -> None:
    configurations = ServerConfigurations(running, tmp_path)
    await configurations.activate(load_values(values(3)), OPERATOR)
    with pytest.raises(NoActiveConfigurationError):
        await configurations.in_force(0)
    assert await width_at(configurations, 1) == 3


async def test_erased_configuration_is_named(running: RunningLog, tmp_path: Path) -> None:
    here, later = (ServerConfigurations(running, tmp_path) for _ in range(2))
    await here.activate(load_values(values(3)), OPERATOR)
    await here.activate(load_values(values(4)), OPERATOR)
    async with running.pool.connection() as connection:
        await connection.execute("DELETE FROM contents WHERE kind = 'configuration'")
    with pytest.raises(RevisionErasedError):
        await later.in_force(1)


async def test_positions_of_known_revision_need_no_log(
    running: RunningLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configurations = ServerConfigurations(running, tmp_path)
    await configurations.activate(load_values(values(3)), OPERATOR)
    await LoggedFamily(running.log).live("run")
    head = await running.log.head()
    assert await width_at(configurations, 1) == await width_at(configurations, head) == 3
    monkeypatch.delattr(type(running.log), "version_of")
    for position in range(1, head + 1):
        assert await width_at(configurations, position) == 3


async def test_activation_reads_only_the_last_revision(
    running: RunningLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ServerConfigurations(running, tmp_path)
    for width in range(2, 6):
        assert await first.activate(load_values(values(width)), OPERATOR) == width - 1
    monkeypatch.delattr(type(running.log), "read")
    again = ServerConfigurations(running, tmp_path)
    assert await again.activate(load_values(values(5)), OPERATOR) == 4
    assert await again.activate(load_values(values(6)), OPERATOR) == 5
    assert (await again.at(2)).configuration.subagent_defaults.max_concurrent == 3
    assert await running.log.version_of(CONFIG_STREAM, at=await running.log.head()) == 5


async def test_server_without_file_keeps_the_active_revision(
    running: RunningLog, tmp_path: Path
) -> None:
    here, behind = (ServerConfigurations(running, tmp_path) for _ in range(2))
    assert await here.newest() is None
    await here.activate(load_values(values(3)), OPERATOR)
    assert await behind.keep(load_values({}), OPERATOR) == 1
    assert behind.current().configuration.subagent_defaults.max_concurrent == 3
    assert await running.log.version_of(CONFIG_STREAM, at=await running.log.head()) == 1


async def test_first_file_outlasts_a_server_without_one(
    running: RunningLog, tmp_path: Path
) -> None:
    here, behind = (ServerConfigurations(running, tmp_path) for _ in range(2))
    await asyncio.gather(
        behind.keep(load_values(values(9)), OPERATOR),
        here.activate(load_values(values(3)), OPERATOR),
    )
    last = await running.log.version_of(CONFIG_STREAM, at=await running.log.head())
    assert (await behind.at(last)).configuration.subagent_defaults.max_concurrent == 3
