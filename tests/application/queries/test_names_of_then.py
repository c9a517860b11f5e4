"""Queries about the past resolve a session's name as of then, in any process."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from application.log.envelope import Actor
from application.queries.changes.diff import GetDiff, get_diff
from application.queries.search.find import FindEvents, find_events
from application.queries.services import QueryServices
from application.queries.timeline.histogram import CountEvents, count_events
from tests.support.builders.configurations import load_values
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import queries_on, verdicts
from tests.support.builders.reads_of_the_past import EVERYTHING
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

OPERATOR = Actor(kind="token", token="operator")
NAME = "main"
OTHER = "agent:main:work"
"""Meaning of the name from the second configuration on."""


async def _diff(services: QueryServices, tree: str, at: str) -> Any:
    answer = await get_diff(services, EVERYTHING, GetDiff(left="pos:0", right=at, tree=tree))
    return answer.view.added


async def _counts(services: QueryServices, tree: str, at: str) -> Any:
    return (await count_events(services, EVERYTHING, CountEvents(tree=tree, end=at))).view.items


def _found(scope: str) -> Any:
    async def found(services: QueryServices, session: str, at: str) -> Any:
        query = FindEvents(types=("RunEnded",), end=at, limit=3, **{scope: session})
        return (await find_events(services, EVERYTHING, query)).view.items

    return found


def _decided(criterion: str) -> Any:
    async def decided(services: QueryServices, session: str, at: str) -> Any:
        return await verdicts(services, patch=[], filter={criterion: session}, to=at)

    return decided


@pytest.mark.parametrize(
    "ask",
    [_diff, _counts, _found("tree"), _found("session"), _decided("tree"), _decided("requester")],
)
async def test_a_name_means_what_it_meant_then(
    running: RunningLog,
    tmp_path: Path,
    ask: Callable[[QueryServices, str, str], Awaitable[Any]],
) -> None:
    configurations = ServerConfigurations(running, tmp_path)
    positions: list[str] = []
    for main_key, root in (("main", ROOT), ("work", OTHER)):
        await configurations.activate(load_values({"session": {"mainKey": main_key}}), OPERATOR)
        first = 1 + 500 * len(positions)
        await LoggedFamily(running.log, root=root, first=first).live("reviewer")
        positions.append(f"pos:{await running.log.head()}")
    # One process has no revision cached, the other the newest.
    deaf, heard = queries_on(running, tmp_path), queries_on(running, tmp_path, configurations)
    for services in (deaf, heard):
        for root, at in zip((ROOT, OTHER), positions, strict=True):
            by_key = await ask(services, root, at)
            assert by_key
            assert await ask(services, NAME, at) == by_key
