"""How a spawn was decided, told from its events alone."""

import pytest

from domain.explanation.record import NOT_RECORDED
from domain.run.facts import SpawnOptions
from tests.support.builders.explained_spawns import (
    ADMISSION_RULES,
    ADMITTED,
    BEHIND_ADMISSION,
    PLAN_RULES,
    plan_facts,
    results,
    the,
    told,
)
from tests.support.builders.run_histories import created, refused, resolved
from tests.support.builders.storytelling import ref, requested


@pytest.mark.parametrize("rule", ADMISSION_RULES)
def test_behind_the_rule_of_admission_that_refused_nothing_was_judged(rule: str) -> None:
    events = requested(), refused(rule=rule, status="forbidden", step="admission")
    found = results(*events)
    names = [*ADMISSION_RULES]
    place = names.index(rule)
    assert [found[one] for one in names] == [
        *["passed"] * place,
        "refused",
        *["not_judged"] * (len(names) - place - 1),
    ]
    assert {found[one] for one in BEHIND_ADMISSION} == {"not_judged"}
    behind = the("capabilities", *events)
    assert behind.text == f'"{rule}" refused the spawn before'
    assert (behind.compared, behind.position) == (None, None)


def test_every_rule_stands_in_the_order_in_which_it_is_judged() -> None:
    events = requested(), ADMITTED, resolved(), created(facts=plan_facts())
    assert [one.rule for one in told(*events)] == [*ADMISSION_RULES, *BEHIND_ADMISSION]
    assert set(results(*events).values()) == {"passed"}
    admission = [10] * len(ADMISSION_RULES)
    assert [one.position for one in told(*events)] == [*admission, *[12] * 2, *[13] * 15]


def test_a_request_alone_is_not_judged_yet() -> None:
    assert {one.result for one in told(requested())} == {"not_judged"}
    assert {one.text for one in told(requested())} == {"not judged yet"}


def test_while_scripts_run_admission_has_passed_and_the_rest_is_not_judged_yet() -> None:
    found = results(requested(), ADMITTED)
    assert {found[one] for one in ADMISSION_RULES} == {"passed"}
    assert {found[one] for one in BEHIND_ADMISSION} == {"not_judged"}


def test_events_without_a_request_are_an_error() -> None:
    with pytest.raises(ValueError, match="from its request on"):
        told(resolved())


@pytest.mark.parametrize("rule", PLAN_RULES)
def test_behind_the_rule_of_the_plan_that_refused_nothing_was_judged(rule: str) -> None:
    names = [*PLAN_RULES]
    event = refused(rule=rule, facts=plan_facts())
    found = results(requested(), ADMITTED, resolved(), event)
    place = names.index(rule)
    assert {found[one] for one in (*ADMISSION_RULES, *names[:place])} == {"passed"}
    assert found[rule] == "refused"
    behind = (*names[place + 1 :], "tool_policy", "capabilities")
    assert {found[one] for one in behind} == {"not_judged"}


def test_a_rule_of_the_plan_that_was_not_reached_was_not_judged() -> None:
    early = plan_facts(models=None, thinking=None)
    found = results(requested(), ADMITTED, resolved(), refused(rule="workspace", facts=early))
    assert (found["sandbox"], found["model"], found["thinking"]) == (
        "passed",
        "not_judged",
        "not_judged",
    )


def test_a_stop_is_told_last_and_leaves_the_rest_unjudged() -> None:
    event = refused(rule="stopped", step="scripts-resolved")
    last = told(requested(), ADMITTED, resolved(), event)[-1]
    assert (last.rule, last.result, last.step) == ("stopped", "refused", "scripts-resolved")
    assert last.text == "the spawn was stopped before its session was created"
    found = results(requested(), ADMITTED, resolved(), event)
    assert (found["override"], found["agent_unknown"], found["tool_policy"]) == (
        "passed",
        "not_judged",
        "not_judged",
    )


def test_rule_without_recorded_facts_is_not_recorded() -> None:
    events = requested(), ADMITTED, resolved()
    assert {results(*events, created())[one] for one in PLAN_RULES} == {"not_recorded"}
    one = the("model", *events, created())
    assert (one.compared, one.text) == (None, NOT_RECORDED)
    one = the("thinking", *events, refused(rule="thinking", facts=None))
    assert (one.result, one.compared) == ("refused", None)
    assert one.text == f"refused; what was compared is {NOT_RECORDED}"


def test_a_step_behind_the_plan_refuses_and_the_rules_of_the_plan_have_passed() -> None:
    event = refused(rule="context_engine", step="context_engine", facts=plan_facts())
    events = requested(), ADMITTED, resolved(), event
    found = results(*events)
    assert {found[one] for one in PLAN_RULES} == {"passed"}
    assert (found["tool_policy"], found["context_engine"]) == ("not_judged", "refused")


def test_no_free_text_of_a_request_is_in_its_explanation() -> None:
    hidden = {
        "agent_id_argument": ref("hidden"),
        "model_argument": ref("hidden"),
        "thinking_argument": ref("hidden"),
        "options": SpawnOptions(),
    }
    events = requested(**hidden), ADMITTED, resolved(), created(facts=plan_facts())
    text = " ".join(one.to_json().decode() for one in told(*events))
    assert ref("hidden").hmac not in text
    assert str(ref("hidden").id) not in text
