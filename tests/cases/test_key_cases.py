"""Cases of session keys, agent ids, and rights by depth."""

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
    """Return the rights of a session at a depth."""
    found = capabilities_at(given["depth"], given["maxSpawnDepth"])
    return {"role": found.role, "controlScope": found.control_scope, "canSpawn": found.can_spawn}


def deep(given: Given) -> Answer:
    """Return the depth of a session by the record of the case.

    A session id is looked up first, as the interface does. `terminates` means that there was an
    answer.
    """
    store = given["store"]
    return {"depth": depth_in(store, resolved(given["key"], store)), "terminates": True}


def deep_by_shape(given: Given) -> Answer:
    """Return the depth that a key claims."""
    return {"depth": depth_of_shape(given["key"])}


def shaped(given: Given) -> Answer:
    """Return the kind of the key."""
    return {"shape": shape_of(given["key"])}


def scheduled(given: Given) -> Answer:
    """Return whether it is the key of a scheduled job."""
    return {"isCron": is_cron_key(given["key"])}


def in_parts(given: Given) -> Answer:
    """Return the agent and the rest, which the canonical form keeps."""
    parts = parse_agent_key(given["key"])
    assert parts == parse_agent_key(canonical_session_key(given["key"]))
    assert parts is not None
    return {"agentId": parts[0], "rest": parts[1]}


def of_an_agent(given: Given) -> Answer:
    """Return whether it is an agent's id, and its normalized form."""
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
