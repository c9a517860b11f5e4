"""Session keys, agent ids, and what follows from how deep a session is."""

from collections.abc import Mapping

import pytest

from domain.session.role import capabilities_at
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.session_key import (
    canonical_session_key,
    depth_of_shape,
    is_cron_key,
    parse_agent_key,
    shape_of,
)
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.spawns import depth_in, resolved


def capable(given: Given) -> Answer:
    """What a session may at a depth."""
    found = capabilities_at(given["depth"], given["maxSpawnDepth"])
    return {"role": found.role, "controlScope": found.control_scope, "canSpawn": found.can_spawn}


def deep(given: Given) -> Answer:
    """How deep a session is by the record of the case; a session id is looked up in it first, as
    the door does. `terminates` is that there was an answer."""
    store = given["store"]
    return {"depth": depth_in(store, resolved(given["key"], store)), "terminates": True}


def deep_by_shape(given: Given) -> Answer:
    """How deep a key says its session is."""
    return {"depth": depth_of_shape(given["key"])}


def shaped(given: Given) -> Answer:
    """What kind of key it is."""
    return {"shape": shape_of(given["key"])}


def scheduled(given: Given) -> Answer:
    """Whether it is the key of a scheduled job."""
    return {"isCron": is_cron_key(given["key"])}


def in_parts(given: Given) -> Answer:
    """The agent and the rest, which the canonical form keeps."""
    parts = parse_agent_key(given["key"])
    assert parts == parse_agent_key(canonical_session_key(given["key"]))
    assert parts is not None
    return {"agentId": parts[0], "rest": parts[1]}


def of_an_agent(given: Given) -> Answer:
    """Whether it is an agent's id, and the id it is normalised to."""
    text = given["agentId"]
    return {"valid": is_valid_agent_id(text), "normalized": normalise_agent_id(text)}


RUNNERS: Mapping[str, Runner] = {
    "capabilities": capable,
    "depth": deep,
    "keys.agentId": of_an_agent,
    "keys.classify": shaped,
    "keys.cron": scheduled,
    "keys.depth": deep_by_shape,
    "keys.parse": in_parts,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_key_is_read_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
