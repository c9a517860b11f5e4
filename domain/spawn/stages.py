"""Stages that decide a spawn or a message: their order, and the rules of each.

This is the only list. Servers and what-ifs use it to decide, explanations to show the comparisons.
The documentation, the OpenAPI document and the filters take their rule names from it. Each stage
checks the rules of its table; add a new rule as a row there.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from domain.plan.child import RefusedChild
from domain.plan.eligibility import CONTINUED_ELIGIBILITY, ELIGIBILITY
from domain.spawn.admission import ADMISSION, CONTINUATION
from domain.spawn.dependency_rules import NAMES, WAITS
from domain.spawn.pipeline import (
    ChildFacts,
    Decided,
    Need,
    choose_agent,
    frame_message,
    frame_spawn,
    place_steps,
    settle_message,
    settle_spawn,
    take_steps,
)
from domain.values import rules
from domain.values.rules import Rule

StageName = Literal[
    "admission", "batch", "dependencies", "scripts", "override", "plan", "steps", "outcome", "other"
]


@dataclass(frozen=True, slots=True)
class Stage:
    """Stage with its rules and choices in the order of checking.

    Attributes:
        name: The name of the stage.
        rules: Rules that refuse, and choices, which have no status and never refuse.
        decides: Decisions for each child, in order. A stage without any is decided for all runs of
            a request together, under the log's lock.
    """

    name: StageName
    rules: tuple[Rule, ...]
    decides: tuple[Callable[[ChildFacts], Decided], ...] = ()


SPAWN_STAGES = (
    # The shared-context rule is not a row of the table: it also applies to patches and to the start
    # of a run, and the family's shared context is in no fact of a request.
    Stage("admission", (*(row.rule for row in ADMISSION), rules.SHARED_CONTEXT)),
    Stage("batch", ()),
    Stage(
        "dependencies",
        (rules.WAITS_FOR, *(row.rule for row in NAMES), *(row.rule for row in WAITS)),
    ),
    Stage("scripts", (rules.CONTEXT_SCRIPTS,)),
    Stage("override", (rules.OVERRIDE,), (choose_agent,)),
    Stage("plan", tuple(row.rule for row in ELIGIBILITY), (frame_spawn, settle_spawn)),
    # Steps are not checked from a table: a step refuses because of the result of an effect outside
    # the log, whenever that arrives.
    Stage("steps", rules.STEPS, (place_steps, take_steps)),
    Stage("outcome", (rules.TOOLS, rules.CAPABILITIES, rules.PREAMBLE)),
    # These refusals come from outside the decision, at any time, and compare nothing.
    Stage("other", (rules.STOPPED, rules.ERASED, rules.BATCH)),
)
MESSAGE_STAGES = (
    Stage("admission", tuple(row.rule for row in CONTINUATION)),
    Stage(
        "plan",
        tuple(row.rule for row in CONTINUED_ELIGIBILITY),
        (frame_message, settle_message),
    ),
    Stage("outcome", (rules.TOOLS, rules.CAPABILITIES)),
)


def decide_child(
    stages: Iterable[Stage], facts: ChildFacts
) -> tuple[ChildFacts, RefusedChild | Need | None]:
    """Run the stages on the facts about a child.

    Returns:
        The facts after the last completed decision, and the first refusal or need; None if all
        stages decided.
    """
    for stage in stages:
        for decide in stage.decides:
            found = decide(facts)
            if not isinstance(found, ChildFacts):
                return facts, found
            facts = found
    return facts, None


def names_of(*stages: StageName) -> frozenset[str]:
    """Return the names of the rules that can refuse a spawn in these stages."""
    return frozenset(rule.name for rule in _refusing(stages))


def _refusing(stages: Iterable[StageName]) -> Iterable[Rule]:
    taken = [stage for stage in SPAWN_STAGES if stage.name in stages]
    return (rule for stage in taken for rule in stage.rules if rule.statuses)


RULES = tuple(_refusing([stage.name for stage in SPAWN_STAGES]))
RULE_NAMES = tuple(rule.name for rule in RULES)
CHOICES = tuple(rule for stage in SPAWN_STAGES for rule in stage.rules if not rule.statuses)
