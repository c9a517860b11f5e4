"""Which state of a run is told as the newest."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from application.log.envelope import SYSTEM
from application.log.event_log import LogUnavailable
from application.queries import wait
from application.queries.access import ALL_SCOPES, Access, Caller
from application.queries.as_of import AsOf, resolve_as_of
from application.queries.errors import QueryError
from application.queries.runs import newest_run
from application.queries.services import QueryServices
from domain.run.state import Run
from tests.support.builders import run_histories as past
from tests.support.builders.storytelling import run_of

RECORDED = run_of(*past.an_ended_run())
FOLLOWED = run_of(*past.a_started_run())
EVERYTHING = Caller(actor=SYSTEM, scopes=ALL_SCOPES, patterns=("*",))


class Log:
    """A log that ends at `position`, and of which a process has followed `seen`."""

    def __init__(self, position: int, seen: int, followed: Run | None = FOLLOWED) -> None:
        self.ends, self.position, self.followed = position, seen, followed
        self.asked = 0
        self.read_at: int | None = None

    async def head(self) -> int:
        self.asked += 1
        return self.ends

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def run(self, _: object, *, at: int | None = None) -> Run:
        self.read_at = at
        return RECORDED

    def newest(self, _: object) -> Run | None:
        return self.followed

    async def changed(self, *_: object, timeout_seconds: float, **__: object) -> bool:
        await asyncio.sleep(timeout_seconds)
        return False

    def services(self) -> QueryServices:
        work = SimpleNamespace(log=self, registry=self)
        made: Any = SimpleNamespace(
            work=work,
            tail=self,
            access=Access(cast(Any, self)),
            closing=lambda: False,
            stopped=asyncio.get_running_loop().create_future(),
        )
        return cast(QueryServices, made)

    async def told(self, caller: Caller = EVERYTHING, least: int | None = None) -> tuple[Run, int]:
        run, at = await newest_run(self.services(), caller, str(FOLLOWED.run_id), least)
        return run, at.position


async def test_followed_run_is_not_read() -> None:
    log = Log(position=7, seen=7)
    assert await log.told() == (FOLLOWED, 7)
    assert (log.asked, log.read_at) == (1, None)


async def test_run_is_read_if_the_log_is_longer() -> None:
    log = Log(position=9, seen=7)
    assert await log.told() == (RECORDED, 9)
    assert log.read_at == 9


async def test_unknown_run_is_read() -> None:
    assert await Log(position=7, seen=7, followed=None).told() == (RECORDED, 7)


async def test_named_position_may_be_followed() -> None:
    log = Log(position=9, seen=7)
    assert await log.told(least=6) == (FOLLOWED, 7)
    assert log.asked == 0
    assert await log.told(least=8) == (RECORDED, 9)


async def test_unreached_position_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wait, "REACH_SECONDS_MAX", 0.01)
    with pytest.raises(LogUnavailable, match="position 12 is not known here yet"):
        await Log(position=9, seen=9).told(least=12)


async def test_followed_run_is_hidden_from_strangers() -> None:
    stranger = Caller(actor=SYSTEM, scopes=ALL_SCOPES, patterns=("agent:other:*",))
    log = Log(position=7, seen=7)
    log.session = _nobody  # type: ignore[attr-defined]
    with pytest.raises(QueryError, match="there is no such run"):
        await log.told(stranger)


async def _nobody(_: object) -> None:
    return None


async def test_followed_position_needs_no_log() -> None:
    log = Log(position=9, seen=7)
    for position, asked in ((7, 0), (8, 1)):
        found = await resolve_as_of(log.services(), EVERYTHING, f"pos:{position}")
        assert (found, log.asked) == (AsOf(position, now=False), asked)
    with pytest.raises(QueryError, match="the log ends at pos:9"):
        await resolve_as_of(log.services(), EVERYTHING, "pos:10")
