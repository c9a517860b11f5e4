"""The agents that a requester may spawn, as every door lists them."""

from dataclasses import dataclass

from domain.configuration.agents import allowed_agents
from domain.configuration.configuration import Configuration


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """One agent. It may be allowed and not be configured: then only a context script that names
    another one in its place saves the spawn, and it has no `model` and no `runtime`, which is the
    type of its runtime."""

    id: str
    name: str | None
    configured: bool
    model: str | None
    runtime: str | None


@dataclass(frozen=True, slots=True)
class AgentListing:
    """`requester` is the requester's agent, which is first when it may name itself; the others are
    sorted. With `allow_any` these are the configured ones, and any other may be named too."""

    requester: str
    allow_any: bool
    agents: tuple[ListedAgent, ...]


def listed_agents(configuration: Configuration, requester_agent_id: str) -> AgentListing:
    """What a requester of this agent may name."""
    allow = configuration.subagents_for(requester_agent_id).allow_agents
    allowed = allowed_agents(requester_agent_id, allow)
    names = configuration.agent_ids() if allowed is None else allowed
    ordered = sorted(set(names), key=lambda name: (name != requester_agent_id, name))
    return AgentListing(
        requester=requester_agent_id,
        allow_any=allowed is None,
        agents=tuple(_listed(name, configuration) for name in ordered),
    )


def _listed(agent_id: str, configuration: Configuration) -> ListedAgent:
    agent = configuration.agent(agent_id)
    runtime = configuration.runtime_for(agent_id) if agent is not None else None
    return ListedAgent(
        id=agent_id,
        name=agent.name if agent is not None else None,
        configured=agent is not None,
        model=configuration.model_of(agent_id) if agent is not None else None,
        runtime=runtime.type if runtime is not None else None,
    )
