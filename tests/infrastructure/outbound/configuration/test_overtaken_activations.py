"""Two servers read their files again at the same time: nobody goes back behind the later one."""

from pathlib import Path
from typing import Any

from application.envelope import SYSTEM
from application.ports.configurations import PinnedConfiguration
from infrastructure.outbound.configuration.active import ActiveConfigurations
from infrastructure.outbound.configuration.loading import load_values


class SilentLog:
    """A log that nothing is asked of here."""

    log_id = None


class Overtaken(ActiveConfigurations):
    """Its activation is recorded as revision 1; before it hears of that, the tail tells of
    revision 2, which another server activated behind it."""

    async def _last(self) -> None:
        return None

    async def _key(self) -> bytes:
        return bytes(32)

    async def _append(self, *_: Any) -> int:
        await self.follow(2)
        return 1

    async def _read(self, revision: int) -> PinnedConfiguration:
        return PinnedConfiguration(revision, load_values({}).configuration, {})


def overtaken() -> Overtaken:
    configurations = Overtaken(SilentLog(), None, None, Path("/nowhere"))  # type: ignore[arg-type]
    configurations._current = PinnedConfiguration(0, load_values({}).configuration, {})
    return configurations


async def test_a_server_does_not_go_back_behind_what_it_has_followed() -> None:
    configurations = overtaken()
    assert await configurations.activate(load_values({}), SYSTEM) == 1
    assert configurations.current().revision == 2


async def test_a_later_revision_that_was_seen_on_the_log_is_taken_over() -> None:
    configurations = overtaken()
    await configurations.at(7)
    assert configurations.current().revision == 7


async def test_an_earlier_revision_is_looked_up_and_changes_nothing() -> None:
    configurations = overtaken()
    await configurations.at(7)
    assert (await configurations.at(3)).revision == 3
    assert configurations.current().revision == 7
