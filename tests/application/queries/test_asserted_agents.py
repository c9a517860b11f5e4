"""Whose agent a session is decides what it may spawn, so it is not to be had for the asking."""

import pytest

from application.log.envelope import Actor
from application.queries.access import Caller, require_agent_access
from application.queries.errors import QueryError
from domain.configuration.configuration import Configuration

CONFIGURED = {"agents": {"list": [{"id": "ops"}, {"id": "lab"}]}}


def may_assert(agent_id: str, *patterns: str, **session: str) -> bool:
    configuration = Configuration.model_validate({**CONFIGURED, "session": session})
    caller = Caller(actor=Actor(kind="token"), scopes=frozenset({"spawn"}), patterns=patterns)
    try:
        require_agent_access(caller, agent_id, configuration)
    except QueryError:
        return False
    return True


@pytest.mark.parametrize("main_key", ["main", " Desk : Left"])
def test_main_session_asserts_its_agent(main_key: str) -> None:
    key = "agent:lab:main" if main_key == "main" else "agent:lab:desk:left"
    assert may_assert("lab", key, mainKey=main_key)
    assert may_assert("lab", "agent:lab:*", mainKey=main_key)
    assert not may_assert("ops", "agent:lab:*", mainKey=main_key)


def test_global_session_asserts_no_agent() -> None:
    assert not may_assert("lab", "global", scope="global")
    assert may_assert("lab", "agent:lab:main", scope="global")
