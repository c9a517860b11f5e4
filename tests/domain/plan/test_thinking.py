"""Thinking levels and their synonyms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.plan.thinking import ThinkingPlan, plan_thinking
from domain.values.thinking_level import normalise_thinking


@pytest.mark.parametrize(
    ("raw", "level"),
    [
        ("OFF", "off"),
        ("on", "low"),
        ("enabled", "low"),
        ("think", "minimal"),
        ("min", "minimal"),
        ("think_hard", "low"),
        ("think-harder", "medium"),
        (" med ", "medium"),
        ("ultrathink", "high"),
        ("highest", "high"),
        ("x-high", "xhigh"),
        ("extra high", "xhigh"),
        ("max", "max"),
        ("auto", "adaptive"),
        ("A_D_A_P_T_I_V_E", "adaptive"),
        ("banana", None),
        ("m e d", None),
        ("", None),
    ],
)
def test_a_word_stands_for_a_level(raw: str, level: str | None) -> None:
    assert normalise_thinking(raw) == level


def test_the_first_that_is_given_decides() -> None:
    def plan(argument: str | None, agent: str | None, default: str | None) -> ThinkingPlan:
        return plan_thinking(
            argument=argument,
            agent_subagents=agent,
            defaults_subagents=default,
            caller_active="max",
        )

    assert plan("high", "low", "off") == ThinkingPlan("high", source="argument")
    assert plan(" ", "low", "off") == ThinkingPlan("low", source="agent_subagents")
    assert plan(None, None, "off") == ThinkingPlan("off", source="defaults_subagents")
    assert plan(None, None, None) == ThinkingPlan("max", source="caller")


def test_a_word_that_is_no_level_refuses_with_those_that_are() -> None:
    plan = plan_thinking(argument="banana", agent_subagents="low", defaults_subagents=None)
    assert plan == ThinkingPlan(
        level=None,
        error=('Invalid thinking level "banana". Use one of: off, minimal, low, medium, high.'),
        source="argument",
    )


def test_what_nobody_asked_for_refuses_nothing() -> None:
    plan = plan_thinking(
        argument=None, agent_subagents=None, defaults_subagents=None, caller_active="banana"
    )
    assert plan == ThinkingPlan(level=None)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_word_is_answered_on_one_line(raw: str) -> None:
    error = plan_thinking(argument=raw, agent_subagents=None, defaults_subagents=None).error
    assert error is None or len(error.splitlines()) == 1
