"""Which models stand in for the one that was taken."""

from domain.configuration.models import ModelSettings
from domain.plan.model import fallback_models

CHOICE = {"primary": "p/one", "fallbacks": ["two", "q/three", "p/one", "q/three", "not a name"]}
ALIASES = {"two": "p/two"}


def test_those_that_its_place_names_behind_it_stand_in_each_once() -> None:
    settings = ModelSettings(agent_subagents=CHOICE, defaults={"primary": "d/other"})
    found = fallback_models(settings, source="agent_subagents", taken="p/one", aliases=ALIASES)
    assert found == ("p/two", "q/three")


def test_where_the_first_was_skipped_those_behind_the_one_that_was_taken_stand_in() -> None:
    settings = ModelSettings(agent_subagents=CHOICE)
    found = fallback_models(settings, source="agent_subagents", taken="p/two", aliases=ALIASES)
    assert found == ("q/three", "p/one")


def test_none_stands_in_that_the_runtime_does_not_serve() -> None:
    settings = ModelSettings(agent_subagents=CHOICE)
    found = fallback_models(
        settings, source="agent_subagents", taken="p/one", aliases=ALIASES, served=("p/*",)
    )
    assert found == ("p/two",)


def test_for_a_model_that_was_asked_for_none_stands_in() -> None:
    settings = ModelSettings(argument="p/mine", agent_subagents=CHOICE)
    assert fallback_models(settings, source="argument", taken="p/mine") == ()


def test_for_what_the_configuration_does_not_say_any_more_none_stands_in() -> None:
    settings = ModelSettings(agent_subagents=CHOICE)
    assert fallback_models(settings, source="agent_subagents", taken="p/gone") == ()
    assert fallback_models(settings, source="runtime", taken=None) == ()
