"""Two servers reload their files at the same time: neither returns to an older revision."""

import asyncio
from typing import Any, TypeVar, cast

import pytest

from application.configuration.activate import REVISIONS_REMEMBERED_MAX, ActiveConfigurations
from application.log.envelope import SYSTEM
from application.log.texts import Contents, SessionTexts
from application.log.unit_of_work import CommandLog
from application.ports.configurations import PinnedConfiguration
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import LoadedConfiguration
from tests.support.builders.configurations import load_values


class Overtaken(ActiveConfigurations[LoadedConfiguration]):
    """Activation that is recorded as revision 1, and sees revision 2 of another server first."""

    async def _last(self) -> None:
        return None

    async def _texts(self) -> SessionTexts:
        return cast("SessionTexts", None)

    async def _append(self, *_: Any) -> int:
        await self.follow(2)
        return 1

    async def _read(self, revision: int) -> PinnedConfiguration:
        return PinnedConfiguration(revision, load_values({}).configuration, {})


class Heard(Overtaken):
    """Activation that sees its own event before it is done, and reads it then."""

    async def _append(self, *_: Any) -> int:
        self.is_over = asyncio.Event()
        self.following = asyncio.create_task(self.follow(1))
        await asyncio.sleep(0)
        return 1

    async def _read(self, revision: int) -> PinnedConfiguration:
        await self.is_over.wait()
        return await super()._read(revision)


C = TypeVar("C", bound=Overtaken)


def server(kind: type[C]) -> C:
    configurations = kind(cast("CommandLog", None), cast("Contents", None), LoadedFiles())
    configurations._current = PinnedConfiguration(0, load_values({}).configuration, {})
    return configurations


async def test_own_activation_does_not_undo_a_later_one() -> None:
    configurations = server(Overtaken)
    assert await configurations.activate(load_values({}), SYSTEM) == 1
    assert configurations.current().revision == 2


async def test_own_activation_is_not_logged_as_followed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "spawnlog.configuration")
    configurations = server(Heard)
    assert await configurations.activate(load_values({}), SYSTEM) == 1
    configurations.is_over.set()
    await configurations.following
    assert [record.getMessage() for record in caplog.records] == []
    await configurations.follow(3)
    (record,) = caplog.records
    assert record.getMessage() == "configuration revision 3 is active"


async def test_later_revision_on_the_log_is_taken_over() -> None:
    configurations = server(Overtaken)
    await configurations.at(7)
    assert configurations.current().revision == 7


async def test_earlier_revision_changes_nothing() -> None:
    configurations = server(Overtaken)
    await configurations.at(7)
    assert (await configurations.at(3)).revision == 3
    assert configurations.current().revision == 7


async def test_first_of_many_revisions_are_forgotten() -> None:
    configurations = server(Overtaken)
    for revision in range(1, REVISIONS_REMEMBERED_MAX + 6):
        await configurations.at(revision)
    assert [*configurations._pinned] == [*range(6, REVISIONS_REMEMBERED_MAX + 6)]
    assert (await configurations.at(1)).revision == 1
    assert configurations.current().revision == REVISIONS_REMEMBERED_MAX + 5
