"""The agents that a requester is told it may name."""

from typing import Any

from application.queries.agents import ListedAgent, listed_agents
from domain.configuration.configuration import Configuration


def listed(**defaults: Any) -> list[ListedAgent]:
    defaults["runtime"] = {"type": "scripted"}
    agents = {"list": [{"id": "main", "name": "One"}], "defaults": defaults}
    configured = Configuration.model_validate({"agents": agents})
    return listed_agents(configured, "main").agents


def test_what_nobody_configured_has_no_model_and_no_runtime() -> None:
    main, steward = listed(model="p/all", subagents={"allowAgents": ["main", "steward"]})
    assert main == ListedAgent(
        id="main", name="One", configured=True, model="p/all", runtime="scripted"
    )
    assert steward == ListedAgent(
        id="steward", name=None, configured=False, model=None, runtime=None
    )
