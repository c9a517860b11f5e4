"""Identity of a log, and whether a server may work on it."""

import asyncio
from uuid import UUID

import pytest

from domain.event_types import LOG_FORMAT
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.append_lock import LOCK
from infrastructure.outbound.log.schema.connections import LogConnection, open_connection
from infrastructure.outbound.log.schema.identity import identify
from tests.support.builders.submissions import at_once, key, observe, observing
from tests.support.servers.running_log import RunningLog


async def test_log_keeps_its_id_and_directory(connection: LogConnection) -> None:
    first = await identify(connection, "home-1")
    assert first.schema == "public"
    assert await identify(connection, "home-1") == first
    with pytest.raises(UserError, match=r"another data directory.*--data-dir"):
        await identify(connection, "home-2")


async def test_refused_log_is_not_bound(connection: LogConnection) -> None:
    def refuse(_: UUID) -> None:
        raise UserError("another log")

    with pytest.raises(UserError, match="another log"):
        await identify(connection, "home-1", refuse)
    claimed: list[UUID] = []
    found = await identify(connection, "home-2", claimed.append)
    assert claimed == [found.log_id]
    # The log of another directory is refused before anything is recorded in this one.
    with pytest.raises(UserError, match="another data directory"):
        await identify(connection, "home-1", claimed.append)
    assert len(claimed) == 1


async def test_one_of_several_directories_is_taken(database_url: str) -> None:
    async def ask(home: str) -> bool:
        async with await open_connection(database_url, application="test") as connection:
            try:
                await identify(connection, home)
            except UserError:
                return False
        return True

    answers = await asyncio.gather(*(ask(f"home-{number}") for number in range(6)))
    assert sorted(answers) == [False] * 5 + [True]


async def test_log_of_newer_format_is_left_alone(connection: LogConnection) -> None:
    await connection.execute("UPDATE log_head SET format = %s", [LOG_FORMAT + 1])
    with pytest.raises(UserError, match=f"has format {LOG_FORMAT + 1}.*install a newer spawnlog"):
        await identify(connection, "home-1")
    row = await (await connection.execute("SELECT storage_home FROM log_head")).fetchone()
    assert row == (None,)


async def test_log_that_becomes_newer_takes_nothing_more(running: RunningLog) -> None:
    await observe(running.log, ["before"])
    await _set_format(running, LOG_FORMAT + 1)
    answers = await at_once(running.log, *(observing(key(number)) for number in range(3)))
    assert all(isinstance(answer, UserError) for answer in answers)
    assert "install a newer spawnlog" in str(answers[0])
    await _set_format(running, LOG_FORMAT)
    await observe(running.log, ["after"])
    assert len(await running.events()) == 2


async def _set_format(running: RunningLog, number: int) -> None:
    """Set the format under the append lock, as a migration does."""
    async with running.pool.connection() as connection, connection.transaction():
        await connection.execute(LOCK)
        await connection.execute("UPDATE log_head SET format = %s", [number])


async def test_log_without_head_is_told(connection: LogConnection) -> None:
    await connection.execute("DELETE FROM log_head")
    with pytest.raises(UserError, match="has no head; restore it from a backup"):
        await identify(connection, "home-1")
