"""What is below a session counts once, however many runs the sessions between have had."""

import pytest

from application.ports.registry import Registry
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import send
from tests.support.builders.storytelling import ROOT
from tests.support.memory.served_log import ServedLog


@pytest.fixture
def registry(running: ServedLog) -> Registry:
    return running.registry()


@pytest.fixture
def family(running: ServedLog) -> LoggedFamily:
    return LoggedFamily(running.log)


async def test_those_below_count_once_however_often_their_parents_went_on(
    registry: Registry, family: LoggedFamily
) -> None:
    await family.begin("top")
    await family.end("top")
    await family.announce("top")
    await send(family, "again", "top")
    await family.begin("below", "top")
    await family.begin("deepest", "below")
    assert await registry.descendants(ROOT) == (3, 3)
    found = [run.run_id for run in await registry.runs_below(ROOT)]
    assert sorted(found) == sorted(
        [family.id("top"), family.id("again"), family.id("below"), family.id("deepest")]
    )
    assert found[2:] == [family.id("below"), family.id("deepest")]
    position = family.run("deepest").created_position
    assert await registry.descendants(ROOT, at=position) == (3, 3)
