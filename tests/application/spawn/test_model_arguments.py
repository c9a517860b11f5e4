"""What a spawn keeps of the model that it was asked for."""

from typing import Any

import pytest

from application.log.envelope import SYSTEM
from application.ports.configurations import PinnedConfiguration
from application.spawn.request import spawn_command
from domain.configuration.configuration import Configuration
from domain.spawn.request import RequestSpawn
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.builders.spawn_plans import resolved_spawn

MODELS: dict[str, Any] = {"anthropic/claude": {"alias": " My Claude "}, "p/opus": {"alias": "opus"}}


def command_for(model: str | None) -> RequestSpawn:
    configuration = Configuration.model_validate({"agents": {"defaults": {"models": MODELS}}})
    request = resolved_spawn(model=model)
    pinned = PinnedConfiguration(1, configuration, {})
    return spawn_command(request, SYSTEM, pinned, RandomIdentities(), "here")


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("anthropic/claude", "anthropic/claude"),
        ("  anthropic/claude ", "anthropic/claude"),
        ("opus", "opus"),
        ("my claude", "anthropic/claude"),
        (" My CLAUDE\t", "anthropic/claude"),
        ("/x", "/x"),
        ("@cf/meta/llama", "@cf/meta/llama"),
        ("_own", "_own"),
        (None, None),
    ],
)
def test_a_name_is_kept_and_an_alias_of_another_form_is_what_it_stands_for(
    asked: str | None, kept: str | None
) -> None:
    command = command_for(asked)
    assert (command.options.model, command.model_argument) == (kept, None)


@pytest.mark.parametrize("text", ["the good one, please", "My Claude!", "-x", "/"])
def test_free_text_is_kept_beside_the_log(text: str) -> None:
    command = command_for(text)
    assert (command.options.model, command.model_argument) == (None, text)
