"""Who changed between two positions, and how all of them were."""

import random

import pytest

from application.ports.registry import Registry
from domain.values.record import run_id_of, session_key_of
from infrastructure.outbound.log.read.fold_input import (
    SPAN_POSITIONS_MAX,
    spans_of,
)
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import ROOT
from tests.support.builders.whole_story import tell_everything
from tests.support.memory.served_log import ServedLog
from tests.support.tiers import stride


async def _all_pages(
    registry: Registry, after: int, until: int, events_max: int, tree: str | None
) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    behind = after
    while behind < until:
        page = await registry.changed_streams(
            after=after, until=until, behind=behind, events_max=events_max, tree=tree
        )
        assert behind < page.examined <= until
        assert all(behind < one.position <= page.examined for one in page.streams)
        found += page.streams
        behind = page.examined
    return found


@pytest.mark.server
async def test_changed_stream_is_found_once(running: ServedLog, registry: Registry) -> None:
    await tell_everything(running)
    await LoggedFamily(running.log, root="agent:main:other", first=500).live("elsewhere")
    events = [one.envelope for one in await running.events()]
    die = random.Random(7)
    for _ in range(30):
        after, until = sorted(die.randint(0, len(events)) for _ in range(2))
        tree = die.choice([None, ROOT, "agent:main:other"])
        first: dict[str, int] = {}
        for one in events[after:until]:
            if tree is None or one.provenance.correlation == tree:
                first.setdefault(one.stream, one.position)
        found = await _all_pages(registry, after, until, die.choice([1, 7, 1000]), tree)
        assert found == sorted(first.items(), key=lambda one: one[1])


@pytest.mark.server
async def test_several_states_are_those_of_each_alone(
    running: ServedLog, registry: Registry
) -> None:
    await tell_everything(running)
    streams = {one.envelope.stream for one in await running.events()}
    run_ids = [id for id in map(run_id_of, streams) if id is not None]
    keys = [key for key in map(session_key_of, streams) if key is not None]
    every = range(0, await running.log.head() + 1, stride(17))
    for at, found in zip(every, await registry.states(run_ids, keys, at=every), strict=True):
        runs = {id: await registry.run(id, at=at) for id in run_ids}
        sessions = {key: await registry.session(key, at=at) for key in keys}
        assert found.runs == {id: run for id, run in runs.items() if run is not None}
        assert found.sessions == {key: one for key, one in sessions.items() if one is not None}
    assert await registry.states([], [], at=[0]) == [({}, {})]
    assert await registry.states(run_ids, keys, at=[]) == []


def test_distant_positions_are_folded_apart() -> None:
    near, far = 1 + SPAN_POSITIONS_MAX, 2 + SPAN_POSITIONS_MAX
    spans = spans_of([("b", 5), ("a", far), ("a", near), ("a", 1)])
    assert spans == [("a", [1, near]), ("a", [far]), ("b", [5])]
