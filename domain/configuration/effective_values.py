"""The whole configuration with everything filled in that it leaves open."""

from collections.abc import Iterable, Mapping
from typing import Any

from domain.configuration.agents import Agent
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.configuration.tokens import Token


def effective_values(configuration: Configuration, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The sections as a file would write them, every default written out. null stays where another
    place is asked: an agent's defaults, or the list of tools that a child's role makes.

    `configuration` is one that was read back from `stored`, where secrets are references; neither
    holds a secret, nor does what is made of them.
    """
    values: dict[str, Any] = configuration.model_dump(mode="json", by_alias=True)
    defaults = values["agents"]["defaults"]
    defaults["sandbox"]["mode"] = defaults["sandbox"]["mode"] or "off"
    values["agents"]["list"] = [
        _agent(configuration, agent)
        for agent in configuration.agents.list or (Agent(id=configuration.default_agent_id),)
    ]
    defaults["subagents"]["contextScripts"]["run"] = _scripts(
        configuration, configuration.subagent_defaults.context_scripts.run
    )
    settings = values["spawnlog"]
    settings["tokens"] = [_token(token) for token in configuration.spawnlog.tokens]
    # A revision read back has no address; what was stored has it, or the place of it.
    settings["databaseUrl"] = stored.get("spawnlog", {}).get("databaseUrl")
    return values


def _agent(configuration: Configuration, agent: Agent) -> dict[str, Any]:
    values = agent.model_dump(mode="json", by_alias=True)
    own = agent.subagents.context_scripts.run
    values["subagents"]["contextScripts"]["run"] = _scripts(configuration, own)
    return values


def _scripts(
    configuration: Configuration, scripts: Iterable[ContextScript]
) -> list[dict[str, Any]]:
    return [configuration.timed(one).model_dump(mode="json", by_alias=True) for one in scripts]


def _token(token: Token) -> dict[str, Any]:
    """The token's source in the words of a file."""
    values = token.model_dump(mode="json", by_alias=True)
    source = token.token
    if source.variable is not None:
        values["token"] = "${" + source.variable + "}"
    elif source.file is not None:
        values["token"] = {"file": source.file}
    else:
        values["token"] = values["token"]["secret"]
    return values
