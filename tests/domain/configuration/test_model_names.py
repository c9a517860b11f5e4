"""What is a model's name, and what is kept of a text that is none."""

import pytest

from domain.configuration.models import ModelSettings, is_model_name, is_model_pattern
from domain.plan.model import plan_model, storable_model_name


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("anthropic/claude-3.5:beta+x@1", True),
        ("/x", True),
        ("@cf/meta/llama", True),
        ("_own", True),
        ("x/", True),
        ("a" * 256, True),
        ("@" + "a" * 256, False),
        ("/", False),
        ("@/_", False),
        ("-x", False),
        (".x", False),
        ("a b", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_some_texts_are_names_of_models(text: str, fits: bool) -> None:
    assert is_model_name(text) is fits


def test_a_name_may_begin_with_a_mark_and_has_no_provider_then() -> None:
    plan = plan_model(ModelSettings(argument="/x"))
    assert (plan.provider, plan.model, plan.reference, plan.applied) == (None, "/x", "/x", True)
    assert plan_model(ModelSettings(argument="@cf/meta/llama")).provider == "@cf"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (" MY claude ", "anthropic/claude"),
        (" opus ", "opus"),
        ("@cf/meta/llama", "@cf/meta/llama"),
        ("my claude, please", None),
        ("my/claude opus", None),
        ("My Own", "My Own"),
        ("broken one", None),
        (" ", None),
    ],
)
def test_of_what_is_asked_for_a_name_is_kept_or_what_an_alias_stands_for(
    text: str, named: str | None
) -> None:
    aliases = {
        "my claude": "anthropic/claude",
        "opus": "anthropic/opus",
        "my/claude opus": "p/m",
        "my own": "My Own",
        "broken one": "p/\x1b[31m",
    }
    assert storable_model_name(text, aliases) == named


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("*", True),
        ("anthropic/*", True),
        ("openrouter/anthropic/*", True),
        ("claude", True),
        ("anthropic/claude", True),
        ("@cf/*", True),
        ("/*", False),
        ("//*", False),
        ("*/claude", False),
        ("claude*", False),
        ("", False),
        ("a b", False),
    ],
)
def test_a_runtime_declares_names_or_all_of_a_provider(text: str, fits: bool) -> None:
    assert is_model_pattern(text) is fits
