"""Rows of an older version are made anew when a server starts; rows of a newer one are left."""

import asyncio
import logging
from typing import Any

import pytest

from domain.values.refusals import CorruptHistory
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.rebuild import rebuild as rebuild_at_start
from infrastructure.outbound.log.rebuild.rebuild import (
    RebuildCounts,
    RebuildUnderWay,
    bring_rows_up_to_date,
    rebuild,
)
from infrastructure.outbound.log.schema import projection_versions
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import UnknownFormat
from infrastructure.outbound.log.schema.identity import identify
from infrastructure.outbound.log.schema.projection_versions import (
    NOTED_VERSIONS,
    IncompatibleRows,
    note_versions,
    require_known_rows,
    stale_projections,
)
from tests.support.builders.submissions import at_once, key, observe, observing
from tests.support.builders.whole_story import tell_everything
from tests.support.servers.rebuilds import rows
from tests.support.servers.running_log import RunningLog

OLDER = "UPDATE projections SET version = version - 1 WHERE name = 'runs'"


async def _noted(running: RunningLog) -> Any:
    return (await running.ask(f"SELECT {NOTED_VERSIONS}"))[0][0]


@pytest.mark.server
async def test_rows_of_an_older_version_are_made_anew(
    running: RunningLog, connection: LogConnection, caplog: pytest.LogCaptureFixture
) -> None:
    await note_versions(connection)
    await tell_everything(running)
    before = await rows(running)
    await running.ask("UPDATE runs SET label = 'as it was called before'")
    await running.ask(OLDER)
    with caplog.at_level(logging.INFO):
        await bring_rows_up_to_date(running.url)
    assert await rows(running) == before
    assert await stale_projections(connection) == ()
    assert "the rows of runs are of an older version" in caplog.text
    assert "rebuild: events, 0 of" in caplog.text
    caplog.clear()
    await bring_rows_up_to_date(running.url)
    assert caplog.text == ""


@pytest.mark.server
async def test_of_several_that_start_at_once_one_makes_them(
    running: RunningLog, connection: LogConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await note_versions(connection)
    await observe(running.log, range(5))
    await running.ask(OLDER)
    done: list[RebuildCounts] = []

    async def counted(conninfo: str, **options: Any) -> RebuildCounts:
        done.append(await rebuild(conninfo, **options))
        return done[-1]

    monkeypatch.setattr(rebuild_at_start, "rebuild", counted)
    await asyncio.gather(*(bring_rows_up_to_date(running.url) for _ in range(4)))
    assert [one.events for one in done] == [5]
    assert await stale_projections(connection) == ()


@pytest.mark.server
async def test_rows_that_another_has_just_made_are_not_made_again(
    running: RunningLog, connection: LogConnection
) -> None:
    await note_versions(connection)
    await observe(running.log, range(5))
    with pytest.raises(RebuildUnderWay, match="has just rebuilt"):
        await rebuild(running.url, if_stale=True)


async def test_a_log_with_events_and_no_version_noted_is_stale(
    running: RunningLog, connection: LogConnection
) -> None:
    assert await stale_projections(connection) == ()
    await running.ask("DELETE FROM projections")
    await observe(running.log, range(3))
    assert await stale_projections(connection) == ("runs", "sessions")
    await bring_rows_up_to_date(running.url)
    assert await stale_projections(connection) == ()


async def test_a_log_that_cannot_be_folded_stops_the_start_with_the_reason(
    running: RunningLog, connection: LogConnection
) -> None:
    await note_versions(connection)
    await observe(running.log, range(3))
    await running.ask(OLDER)
    await running.ask("UPDATE events SET state = '{}'::bytea WHERE position = 2")
    with pytest.raises(UserError, match=r"cannot be made anew from the log: version 1 of") as told:
        await bring_rows_up_to_date(running.url)
    assert isinstance(told.value.__cause__, CorruptHistory)
    assert await running.ask("SELECT to_regclass('rebuilding')") == [(None,)]


async def test_rows_of_a_newer_version_are_not_undone_by_a_start(connection: LogConnection) -> None:
    await note_versions(connection)
    await connection.execute("UPDATE projections SET version = version + 1 WHERE name = 'runs'")
    with pytest.raises(UserError, match=r"the rows of runs are of a newer.*spawnlog log rebuild"):
        await identify(connection, "home-1")


async def test_a_program_notices_that_others_have_rebuilt_the_rows(
    running: RunningLog, connection: LogConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_known_rows(await _noted(running))
    await note_versions(connection)
    require_known_rows(await _noted(running))
    monkeypatch.setitem(projection_versions.VERSIONS, "sessions", 99)
    await rebuild(running.url)
    noted = await _noted(running)
    assert "sessions 99" in noted
    with pytest.raises(UnknownFormat, match=r"\(runs \d+, sessions 99\).*stop this server"):
        require_known_rows(noted)


async def test_a_server_of_the_older_release_writes_no_more_once_the_rows_are_exchanged(
    running: RunningLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await observe(running.log, ["before"])
    with monkeypatch.context() as newer:
        newer.setitem(projection_versions.VERSIONS, "sessions", 99)
        await rebuild(running.url)
    before = await rows(running)
    answers = await at_once(running.log, *(observing(key(number)) for number in range(3)))
    assert all(isinstance(one, IncompatibleRows) for one in answers)
    assert await rows(running) == before
    assert len(await running.events()) == 1
    await rebuild(running.url)
    await observe(running.log, ["after"])
