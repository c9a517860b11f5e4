"""What is told of what a spawn was to wait for."""

import pytest

from domain.run.events import DependencyMet
from domain.run.facts import BatchFacts
from domain.spawn.stages import RULES, names_of
from domain.values.rules import WAITS_FOR, Rule
from tests.support.builders.explained_spawns import ADMITTED, results, the, told
from tests.support.builders.run_histories import refused
from tests.support.builders.storytelling import requested, run_id
from tests.support.builders.waiting_runs import TARGET, dependency


def test_what_it_waits_for_is_told_when_it_waits_for_anything() -> None:
    asked = requested(dependencies=(dependency(), dependency(name=str(TARGET), require="ended")))
    found = the(WAITS_FOR.name, asked, ADMITTED)
    assert (found.step, found.result, found.position) == ("admission", "passed", 10)
    assert found.text == (
        "it is queued when these are done, with all below them:"
        f' "scout" (run {TARGET}), run {TARGET}, however it ends'
    )
    assert found.compared is not None
    assert found.compared["ancestors"] == []
    assert WAITS_FOR.name not in results(requested(), ADMITTED)


def test_it_says_where_each_was_met() -> None:
    asked = requested(dependencies=(dependency(),))
    found = the(WAITS_FOR.name, asked, ADMITTED, DependencyMet(run_id=TARGET, outcome="success"))
    assert found.text.endswith(f'"scout" (run {TARGET}), met at 12')
    assert found.compared is not None
    assert str(found.compared["dependencies"]).endswith("'metAt': 12}]")


def test_the_place_in_a_batch_is_told_and_the_culprit_of_a_refused_one() -> None:
    members = tuple(run_id(number) for number in (1, 2, 3))
    batch = BatchFacts(batch_id=run_id(9), index=1, run_ids=members)
    asked = requested(batch=batch)
    found = the("batch", asked, ADMITTED)
    assert (found.step, found.result) == ("admission", "passed")
    assert found.text == f"task 2 of 3 of batch {run_id(9)}"
    inputs = {"culprit": str(run_id(3)), "index": 3, "batchId": str(run_id(9))}
    found = the("batch", asked, ADMITTED, refused(rule="batch", step="batch", inputs=inputs))
    assert found.result == "refused"
    assert found.text == f"task 3 of its batch (run {run_id(3)}) could not be prepared"
    assert "batch" not in results(requested(), ADMITTED)


def test_it_is_not_judged_before_its_turn() -> None:
    asked = requested(dependencies=(dependency(),))
    assert the(WAITS_FOR.name, asked).result == "not_judged"
    found = the(WAITS_FOR.name, asked, refused(rule="depth", status="forbidden", step="admission"))
    assert (found.result, found.text) == ("not_judged", '"depth" refused the spawn before')
    assert results(asked, ADMITTED, refused(rule="model"))[WAITS_FOR.name] == "passed"


_DEPENDENCIES = [one for one in RULES if one.name in names_of("dependencies")]


@pytest.mark.parametrize("rule", _DEPENDENCIES, ids=lambda rule: rule.name)
def test_a_refusal_is_told_once_with_its_reason(rule: Rule) -> None:
    asked = requested(dependencies=(dependency(),))
    events = asked, refused(rule=rule.name, status="error", step="admission")
    (found,) = [one for one in told(*events) if one.result == "refused"]
    assert (found.rule, found.text, found.position) == (rule.name, rule.when, 11)
    assert WAITS_FOR.name not in results(*events)
