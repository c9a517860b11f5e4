"""However a spawn is asked for and whatever is configured: decided again, it is what would have
been recorded under the other configuration, and under its own it is the same."""

from hypothesis import event, given, settings

from domain.what_if.record import RecordedDecision
from tests.support.builders.configured_spawns import Rules
from tests.support.builders.decisions_again import Spawn
from tests.support.models.random_decisions import ANY_RULES, MESSAGES, SPAWNS, two_rules


def really(then: RecordedDecision, now: RecordedDecision) -> tuple[str, str | None]:
    """The verdict, by looking at what was recorded under both; the rule that came or went."""
    before, after = then.refused, now.refused
    if before is not None and after is not None:
        return "same", after.rule if after.rule != before.rule else None
    if after is not None:
        return "newly-refused", after.rule
    if before is not None:
        return "newly-allowed", before.rule
    assert then.created is not None
    assert now.created is not None
    plans = then.created.plan, now.created.plan
    if plans[0].model_reference != plans[1].model_reference:
        return "different-model", None
    said_of = {"model_source", "thinking_source", "run_timeout_source"}
    ways = [
        (one.role, one.control_scope, one.hooks, one.plan.model_dump(exclude=said_of))
        for one in (then.created, now.created)
    ]
    if ways[0] != ways[1]:
        return "different-plan", None
    if then.created.max_depth != now.created.max_depth:
        return "different-context", None
    return "same", None


def default(rules: Rules) -> str:
    """The default agent."""
    marked = rules.marked
    return marked if marked is not None and marked in rules.agents else next(iter(rules.agents))


def is_known(then: Rules, now: Rules, missing: tuple[str, ...]) -> bool:
    """Whether what is said to be missing is not on record indeed."""
    changed = {
        "the requester: its key": (then.main_key, default(then)) != (now.main_key, default(now)),
        "the workspace:": then.roots != now.roots,
    }
    return all(
        any(one.startswith(word) and is_so for word, is_so in changed.items()) for one in missing
    )


@settings(max_examples=200)
@given(asked=SPAWNS | MESSAGES, rules=ANY_RULES)
def test_under_its_own_configuration_a_decision_is_the_same(asked: Spawn, rules: Rules) -> None:
    values = rules.configuration()
    again = asked.again(values, values)
    assert again.verdict.verdict == "same", again.verdict
    assert (again.verdict.difference, again.verdict.assumed) == (None, ())


@settings(max_examples=200)
@given(asked=SPAWNS | MESSAGES, rules=two_rules())
def test_under_another_it_is_what_would_have_been_recorded(
    asked: Spawn, rules: tuple[Rules, Rules]
) -> None:
    then, now = rules
    values = then.configuration(), now.configuration()
    found = asked.again(*values).verdict
    event(found.verdict)
    if found.verdict == "not-replayable":
        assert is_known(then, now, found.missing), found
        return
    expected, rule = really(asked.record(values[0]), asked.record(values[1]))
    assert (found.verdict, found.rule) == (expected, rule), found
