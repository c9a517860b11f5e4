"""How much of a workspace's files a configuration lets into a prompt."""

import pytest
from pydantic import ValidationError

from domain.configuration.agents import BootstrapLimits
from domain.configuration.configuration import Configuration


def configuration(**sections: object) -> Configuration:
    return Configuration.model_validate(sections)


def limits_of(configured: Configuration, agent_id: str) -> BootstrapLimits:
    agent = configured.effective_agent(agent_id)
    assert agent is not None
    return agent.bootstrap


def test_the_limits_of_bootstrap_files_are_asked_of_the_agent_first() -> None:
    limited = configuration(
        agents={
            "defaults": {"bootstrapMaxChars": 10, "bootstrapTotalMaxChars": 30},
            "list": [{"id": "a", "bootstrapTotalMaxChars": 20}, {"id": "b"}],
        }
    )

    assert limits_of(limited, "A") == BootstrapLimits(10, 20)
    assert limits_of(limited, "b") == BootstrapLimits(10, 30)
    assert limits_of(configuration(), "main") == BootstrapLimits(20_000, 150_000)


@pytest.mark.parametrize("key", ["bootstrapMaxChars", "bootstrapTotalMaxChars"])
@pytest.mark.parametrize("value", [0, -1, 1.0, 1.5, "1", True, None, 10_000_001])
def test_a_limit_of_bootstrap_files_is_a_whole_number_above_nothing(
    key: str, value: object
) -> None:
    with pytest.raises(ValidationError):
        configuration(agents={"defaults": {key: value}})
    if value is not None:
        with pytest.raises(ValidationError):
            configuration(agents={"list": [{"id": "a", key: value}]})
