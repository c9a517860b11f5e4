"""How much of a workspace's files a configuration lets into a prompt."""

import pytest
from pydantic import ValidationError

from domain.configuration.agents import BootstrapLimits
from domain.configuration.configuration import Configuration


def configuration(**sections: object) -> Configuration:
    return Configuration.model_validate(sections)


def test_the_limits_of_bootstrap_files_are_asked_of_the_agent_first() -> None:
    limited = configuration(
        agents={
            "defaults": {"bootstrapMaxChars": 10, "bootstrapTotalMaxChars": 30},
            "list": [{"id": "a", "bootstrapTotalMaxChars": 20}, {"id": "b"}],
        }
    )

    assert limited.bootstrap_limits_for("A") == BootstrapLimits(10, 20)
    assert limited.bootstrap_limits_for("b") == BootstrapLimits(10, 30)
    assert limited.bootstrap_limits_for("unknown") == BootstrapLimits(10, 30)
    assert configuration().bootstrap_limits_for("main") == BootstrapLimits(20_000, 150_000)


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
