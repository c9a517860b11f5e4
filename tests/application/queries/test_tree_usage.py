"""A tree has the tokens and cost of each node, and their sums from the leaves up."""

from typing import Any

import pytest

from application.ports.runtimes import TranscriptEntry
from application.queries.access import Caller
from application.queries.services import QueryServices
from application.queries.timeline.tree import GetSessionTree, TreeNodeView, get_session_tree
from application.queries.timeline.usage import (
    ListTreeUsage,
    TreeUsageView,
    list_tree_usage,
)
from domain.run.facts import ModelUsage, Usage
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import caller
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog

READER = caller("read")
TASK = "count the boats " * 20


def _usage(tokens: int, cost: float | None) -> Usage:
    models = (ModelUsage(input_tokens=tokens, cost_usd=cost),)
    return Usage(input_tokens=tokens, output_tokens=1, models=models)


async def _tree(services: QueryServices, at: int | None = None) -> TreeNodeView:
    query = GetSessionTree(at=None if at is None else f"pos:{at}")
    return (await get_session_tree(services, caller("read"), ROOT, query)).view.root


@pytest.fixture
async def family(running: RunningLog) -> LoggedFamily:
    family = LoggedFamily(running.log)
    await family.begin("above", task=TASK)
    await family.begin("below", "above")
    await family.spawn("refused", target_agent_id="stranger", agent_id_argument="stranger")
    return family


async def test_usage_is_summed_up_the_tree(services: QueryServices, family: LoggedFamily) -> None:
    before = await services.work.log.head()
    await family.end("below", usage=_usage(100, 0.25))
    await family.announce("below")
    await family.end("above", usage=_usage(40, None))
    root = await _tree(services)
    (above,) = root.children
    (below,) = above.children
    sums = [
        (node.own.runs, node.own.input_tokens, node.own.estimated_cost_usd)
        for node in (root, above, below)
    ]
    assert sums == [(0, 0, None), (1, 40, None), (1, 100, 0.25)]
    assert (root.total.runs, root.total.input_tokens, root.total.output_tokens) == (2, 140, 2)
    assert (root.total.models, root.total.unpriced_models) == (1, 1)
    assert root.total.estimated_cost_usd == above.total.estimated_cost_usd == 0.25
    assert above.runs[0].input_tokens == 40
    then = await _tree(services, before)
    assert (then.total.runs, then.total.input_tokens) == (2, 0)
    assert then.children[0].children[0].runs[0].input_tokens is None


async def test_running_runs_are_summed_so_far(
    services: QueryServices, family: LoggedFamily
) -> None:
    await family.end("above", usage=_usage(40, None))
    below = family.run("below")
    used = TranscriptEntry("usage", {"inputTokens": 7, "outputTokens": 1, "model": "m"})
    assert await services.transcripts.append(below.run_id, below.epoch, 1, [used])
    root = await _tree(services)
    assert (root.total.input_tokens, root.total.models, root.total.unpriced_models) == (47, 2, 2)
    assert root.children[0].children[0].runs[0].input_tokens == 7
    then = await _tree(services, await services.work.log.head())
    assert then.total.input_tokens == 40
    await family.begin("later")
    then = await _tree(services, await services.work.log.head())
    assert then.total.input_tokens == 47


async def test_usage_of_trees_is_that_of_each_tree(
    services: QueryServices, family: LoggedFamily
) -> None:
    other = LoggedFamily(family.log, root="agent:main:other", first=900)
    await other.begin("alone")
    run = other.run("alone")
    used = TranscriptEntry("usage", {"inputTokens": 7, "outputTokens": 1, "model": "m"})
    assert await services.transcripts.append(run.run_id, run.epoch, 1, [used])
    await family.end("below", usage=_usage(100, 0.25))

    async def usage(by: Caller = READER, **query: Any) -> list[TreeUsageView]:
        trees = ("agent:main:other", ROOT, "agent:main:nobody")
        asked = ListTreeUsage.model_validate({"tree": trees, **query})
        return (await list_tree_usage(services, by, asked)).view.items

    found = await usage()
    assert [(one.tree, one.runs, one.input_tokens) for one in found] == [
        ("agent:main:other", 1, 7), (ROOT, 3, 100),
    ]  # fmt: skip
    assert [one.running_not_summed for one in found] == [0, 0]
    assert [one.estimated_cost_usd for one in found] == [None, 0.25]
    assert await usage(at="pos:1") == []
    theirs = await usage(caller("read", session="agent:main:other"))
    assert [(one.tree, one.runs) for one in theirs] == [("agent:main:other", 1)]
    child = caller("read", session=family.key("below"), run_id=family.id("below"))
    assert [(one.tree, one.runs) for one in await usage(child)] == [(ROOT, 1)]


async def test_rows_of_a_tree_have_their_texts(
    services: QueryServices, family: LoggedFamily
) -> None:
    root = await _tree(services)
    (run,) = root.children[0].runs
    assert (run.task_preview, run.error) == (TASK[:200], None)
    (refused,) = root.refused
    assert refused.error
    assert [stage.stage for stage in refused.stages] == ["requested", "refused"]
    position = refused.stages[0].position
    assert (await _tree(services, position - 1)).refused == []
