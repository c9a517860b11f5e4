"""A name of a session in a question about the past means what it meant then, whoever is asked."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from application.log.envelope import Actor
from application.queries.changes.diff import GetDiff, get_diff
from application.queries.search.find import FindEvents, find_events
from application.queries.services import QueryServices
from application.queries.timeline.histogram import CountEvents, count_events
from application.queries.what_if.ask import WhatIfBody, what_if
from tests.support.builders.configurations import load_values
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.reads_of_the_past import EVERYTHING, queries_on
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

OPERATOR = Actor(kind="token", token="operator")
NAME = "main"
OTHER = "agent:main:work"
"""What the name means from the second configuration on."""


async def _diff(services: QueryServices, tree: str, at: str) -> Any:
    answer = await get_diff(services, EVERYTHING, GetDiff(left="pos:0", right=at, tree=tree))
    return orjson.loads(answer.view.json_bytes())["added"]


async def _counts(services: QueryServices, tree: str, at: str) -> Any:
    answer = await count_events(services, EVERYTHING, CountEvents(tree=tree, end=at))
    return orjson.loads(answer.view.json_bytes())


async def _found(services: QueryServices, query: FindEvents) -> Any:
    answer = await find_events(services, EVERYTHING, query)
    return orjson.loads(answer.view.json_bytes())["items"]


async def _found_in_tree(services: QueryServices, tree: str, at: str) -> Any:
    return await _found(services, FindEvents(types=("RunEnded",), tree=tree, end=at, limit=3))


async def _found_of_session(services: QueryServices, session: str, at: str) -> Any:
    query = FindEvents(types=("RunEnded",), session=session, end=at, limit=3)
    return await _found(services, query)


async def _decided(services: QueryServices, at: str, **criteria: str) -> Any:
    body = WhatIfBody.model_validate({"patch": [], "filter": criteria, "to": at})
    answer = await what_if(services, EVERYTHING, body)
    async with answer.room:
        lines = [one async for page in answer.pages() for one in page]
    found = [one.model_dump(mode="json", by_alias=True) for one in lines]
    return [one for one in found if "verdict" in one]


async def _decided_in_tree(services: QueryServices, tree: str, at: str) -> Any:
    return await _decided(services, at, tree=tree)


async def _decided_for(services: QueryServices, requester: str, at: str) -> Any:
    return await _decided(services, at, requester=requester)


@pytest.mark.parametrize(
    "ask",
    [_diff, _counts, _found_in_tree, _found_of_session, _decided_in_tree, _decided_for],
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
    # One that has heard of no revision, and one that works by the newest.
    deaf = queries_on(running, ServerConfigurations(running, tmp_path), tmp_path)
    heard = queries_on(running, configurations, tmp_path)
    for services in (deaf, heard):
        for root, at in zip((ROOT, OTHER), positions, strict=True):
            by_key = await ask(services, root, at)
            assert by_key
            assert await ask(services, NAME, at) == by_key
