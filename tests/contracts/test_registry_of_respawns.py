"""What was made from a run is found, now and as of any position, by creation."""

from typing import Any

import pytest

from application.ports.registry import RESPAWNS_MAX, Registry, RunQuery
from domain.run.facts import RespawnFacts
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import ROOT
from tests.support.memory.served_log import ServedLog

STRANGER: dict[str, Any] = {"target_agent_id": "stranger", "agent_id_argument": "stranger"}


@pytest.fixture
def registry(running: ServedLog) -> Registry:
    return running.registry()


async def test_it_is_found_by_the_run_as_of_every_position(
    running: ServedLog, registry: Registry
) -> None:
    family = LoggedFamily(running.log, max_children=4)
    await family.begin("first")
    first = family.run("first").run_id
    created: list[tuple[int, str]] = []
    for name in ("one", "two", "three"):
        # One of them is permitted, and goes on to its end.
        refused: dict[str, Any] = STRANGER if name != "two" else {}
        await family.spawn(name, respawn=RespawnFacts(run_id=first), **refused)
        created.append((family.run(name).created_position, name))
    await family.create("two")
    head = await running.log.head()
    for position in range(head + 1):
        expected = [family.run(name).run_id for at, name in created if at <= position]
        found = await registry.respawns(first, at=position)
        assert [one.run_id for one in found] == expected, position
        assert {one.requester for one in found} <= {ROOT}
        query = RunQuery.where(respawned_from=first)
        listed = await registry.runs(query, at=position, limit=9, ascending=True)
        assert [run.run_id for run in listed] == expected, position
    assert not await registry.respawns(family.run("two").run_id, at=head)


async def test_so_many_are_told_with_a_run_and_all_of_them_in_lists(
    running: ServedLog, registry: Registry
) -> None:
    family = LoggedFamily(running.log, max_children=4)
    await family.begin("first")
    first = family.run("first").run_id
    names = [f"again {number}" for number in range(RESPAWNS_MAX + 1)]
    for name in names:
        await family.spawn(name, respawn=RespawnFacts(run_id=first), **STRANGER)
    head = await running.log.head()
    ids = [family.run(name).run_id for name in names]
    found = await registry.respawns(first, at=head)
    assert [one.run_id for one in found] == ids[:RESPAWNS_MAX]
    listed = await registry.runs(RunQuery.where(respawned_from=first), at=head, limit=500)
    assert [run.run_id for run in listed] == ids[::-1]
