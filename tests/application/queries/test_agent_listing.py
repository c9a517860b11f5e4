"""The agents that a requester is told it may name."""

from typing import Any

from application.queries.agents import ListedAgent, listed_agents
from domain.configuration.configuration import Configuration


def listed(**defaults: Any) -> tuple[ListedAgent, ...]:
    defaults["runtime"] = {"type": "scripted"}
    agents = {"list": [{"id": "main", "name": "One"}], "defaults": defaults}
    configured = Configuration.model_validate({"agents": agents})
    return listed_agents(configured, "main").agents


def test_what_nobody_configured_has_no_model_and_no_runtime() -> None:
    main, steward = listed(model="p/all", subagents={"allowAgents": ["main", "steward"]})
    assert main == ListedAgent("main", "One", True, "p/all", "scripted")
    assert steward == ListedAgent("steward", None, False, None, None)
