"""The model of a child."""

import pytest

from domain.configuration.models import ModelSettings
from domain.plan.model import UNNAMED_MODEL, ModelPlan, fallback_models, plan_model

# Which model a child runs with.

PLACES = ("argument", "agent_subagents", "defaults_subagents", "caller", "agent", "defaults")


def verdicts(plan: ModelPlan) -> list[tuple[str, str | None, str]]:
    return [(one.source, one.reference, one.verdict) for one in plan.verdicts]


def settings_of(named: dict[str, str]) -> ModelSettings:
    return ModelSettings(
        argument=named.get("argument"),
        agent_subagents=named.get("agent_subagents"),
        defaults_subagents=named.get("defaults_subagents"),
        caller=named.get("caller"),
        agent=named.get("agent"),
        defaults=named.get("defaults"),
    )


@pytest.mark.parametrize("first", range(len(PLACES)))
def test_the_places_count_in_order(first: int) -> None:
    plan = plan_model(settings_of({place: f"p/{place}" for place in PLACES[first:]}))
    assert (plan.provider, plan.model) == ("p", PLACES[first])
    assert (plan.source, plan.applied, plan.warnings) == (PLACES[first], True, ())
    assert plan.reference == f"p/{PLACES[first]}"
    later = [(place, f"p/{place}", "not_reached") for place in PLACES[first + 1 :]]
    assert verdicts(plan) == [(PLACES[first], f"p/{PLACES[first]}", "taken"), *later]


def test_an_object_names_its_primary() -> None:
    setting = {"primary": "minimax/MiniMax-M2.7", "fallbacks": ["a/b"]}
    assert plan_model(ModelSettings(defaults=setting)).reference == "minimax/MiniMax-M2.7"
    only_fallbacks = {"fallbacks": ["a/b"]}
    assert plan_model(ModelSettings(agent=only_fallbacks, defaults="c/d")).reference == "c/d"


def test_a_model_that_cannot_be_served_is_skipped_with_a_warning() -> None:
    settings = ModelSettings(argument="a/big", agent="b/small")
    plan = plan_model(settings, served={"b/small"})
    assert (plan.reference, plan.source, plan.applied) == ("b/small", "agent", False)
    assert plan.warnings == (
        'Model "a/big" from the model argument cannot be served by the agent\'s runtime and was '
        "skipped; running on b/small.",
    )
    assert verdicts(plan) == [("argument", "a/big", "not_served"), ("agent", "b/small", "taken")]


def test_an_argument_that_is_no_name_counts_as_skipped() -> None:
    plan = plan_model(ModelSettings(unnamed_argument=True, defaults="c/d"))
    assert (plan.reference, plan.source, plan.applied) == ("c/d", "defaults", False)
    assert plan.warnings == (UNNAMED_MODEL,)
    assert verdicts(plan)[0] == ("argument", None, "no_name")
    alone = plan_model(ModelSettings(unnamed_argument=True))
    assert (alone.reference, alone.source, alone.applied) == (None, "runtime", False)


def test_when_nothing_can_be_served_the_runtime_chooses() -> None:
    plan = plan_model(ModelSettings(argument="a/b", defaults="c/d"), served=set())
    assert (plan.reference, plan.source, plan.applied, len(plan.warnings)) == (
        None,
        "runtime",
        False,
        2,
    )
    assert plan.warnings[1] == (
        'Model "c/d" from agents.defaults.model cannot be served by the agent\'s runtime and was '
        "skipped; running on the runtime's own default."
    )


@pytest.mark.parametrize(
    ("served", "reference", "is_served"),
    [
        ("claude", "anthropic/claude", True),
        ("anthropic/claude", "other/claude", False),
        ("anthropic/*", "other/any", False),
        ("*", "other/any", True),
        ("any", "any", True),
        ("openrouter/anthropic/*", "openrouter/anthropic/any/more", True),
        ("openrouter/anthropic/*", "openrouter/anthropic", False),
        ("@cf/meta/*", "@cf/meta/llama", True),
        ("/x", "/y", False),
    ],
)
def test_what_a_runtime_declares_may_leave_things_open(
    served: str, reference: str, is_served: bool
) -> None:
    plan = plan_model(ModelSettings(argument=reference), served=[served])
    assert plan.applied is is_served


def test_a_bare_name_is_served_by_the_provider_with_which_the_file_lists_it() -> None:
    known = ("q/good", "p/good", "openrouter/p/deep", "p/other")
    for served, name, is_served in (
        ("p/*", "good", True),
        ("r/*", "good", False),
        ("p/*", "bad-model", False),
        ("openrouter/*", "p/deep", False),
    ):
        plan = plan_model(ModelSettings(argument=name), served=[served], known=known)
        assert plan.applied is is_served, (served, name)
        assert plan.reference == (name if is_served else None)
        assert [name in warning for warning in plan.warnings] == ([] if is_served else [True])


@pytest.mark.parametrize("name", ["a\nb", "x" * 300, "a/\x1b[31m"])
def test_what_is_no_name_is_skipped(name: str) -> None:
    plan = plan_model(ModelSettings(argument=name, defaults="c/d"))
    assert (plan.reference, plan.applied) == ("c/d", False)
    assert all(warning.isprintable() and len(warning) < 500 for warning in plan.warnings)
    assert verdicts(plan)[0] == ("argument", None, "no_name")


# Which models stand in for the one that was taken.

CHOICE = {"primary": "p/one", "fallbacks": ["two", "q/three", "p/one", "q/three", "not a name"]}
ALIASES = {"two": "p/two"}


def test_those_that_its_place_names_behind_it_stand_in_each_once() -> None:
    settings = ModelSettings(agent_subagents=CHOICE, defaults={"primary": "d/other"})
    found = fallback_models(settings, source="agent_subagents", taken="p/one", aliases=ALIASES)
    assert found == ("p/two", "q/three")


def test_for_what_the_configuration_does_not_say_any_more_none_stands_in() -> None:
    settings = ModelSettings(agent_subagents=CHOICE)
    assert fallback_models(settings, source="agent_subagents", taken="p/gone") == ()
    assert fallback_models(settings, source="runtime", taken=None) == ()
