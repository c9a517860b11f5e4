"""Given the events of a run, the decision that they tell of."""

import pytest

from domain.run.events import RunEvent
from domain.states import StreamEvent
from domain.what_if.decide_again import texts_needed
from domain.what_if.record import recorded_decision
from tests.support.builders import run_histories as past
from tests.support.builders.decisions_again import Spawn, Values, setup
from tests.support.builders.explained_spawns import plan_facts
from tests.support.builders.storytelling import ref, requested, stamp


def steps(*events: RunEvent) -> list[StreamEvent]:
    """One behind the other."""
    return [StreamEvent("", one, stamp(at)) for at, one in enumerate(events, start=1)]


def test_it_is_read_from_its_request_on() -> None:
    with pytest.raises(ValueError, match="a decision is read from its request on"):
        recorded_decision(steps(past.resolved()))


def test_it_was_made_under_the_revision_of_its_request_and_announced_somewhere_behind() -> None:
    found = recorded_decision(steps(*past.an_announced_run()))
    assert found.config_revision == requested().config_revision == 1
    assert found.announced_position == len(past.an_announced_run())


@pytest.mark.parametrize(
    ("history", "is_decided"),
    [
        (past.a_requested_run(), False),
        (past.a_prepared_run(), False),
        (past.a_created_run(), True),
        (past.a_refused_run(), True),
    ],
)
def test_it_is_made_once_its_caller_was_answered(history: past.History, is_decided: bool) -> None:
    assert recorded_decision(steps(*history)).is_decided == is_decided


def test_the_agent_is_the_one_that_a_script_named() -> None:
    assert recorded_decision(steps(*past.an_overridden_run())).agent_id == "steward"
    assert recorded_decision(steps(*past.a_resolved_run())).agent_id == "main"


def test_its_facts_are_those_of_whichever_answer_there_was() -> None:
    looked_at = plan_facts()
    history = past.a_resolved_run()
    for last in (past.created(facts=looked_at), past.refused(facts=looked_at)):
        assert recorded_decision(steps(*history, last)).facts == looked_at
    assert recorded_decision(steps(*history)).facts is None


def test_the_start_is_told_for_its_prompt() -> None:
    assert recorded_decision(steps(*past.a_started_run())).started == past.started()


# The texts beside the log are read where they decide, and are not where they do not.

WORDY = Spawn(model="a model, please", thinking="like a sage", preamble="words", origin="{}")


@pytest.mark.parametrize(
    "change", [{}, {"subagents": {"thinking": "low"}}, {"subagents": {"maxChildrenPerAgent": 1}}]
)
def test_no_text_is_read_that_decides_nothing(change: Values) -> None:
    assert texts_needed(WORDY.question(setup(), setup(default=change))) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"models": {"acme/large": {"alias": "large"}}}, "a model, please"),
        ({"subagents": {"contextPreambleMaxChars": 7}}, "words"),
    ],
)
def test_a_text_is_read_where_what_it_is_judged_by_changed(change: Values, text: str) -> None:
    assert texts_needed(WORDY.question(setup(), setup(default=change))) == [ref(text)]
