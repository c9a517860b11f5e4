"""Stopping a run at any point of its life."""

import pytest

from domain.run.decide import dedupe_key
from domain.run.events import RunEnded, SpawnRefused, StopRequested
from domain.run.facts import RunOutcome
from domain.values.refusals import StopWanted
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.run_histories import CLAIMER
from tests.support.builders.storytelling import given, ref, run_of


@pytest.mark.parametrize("history", [past.a_requested_run(), past.an_overridden_run()])
def test_a_stop_during_preparation_is_a_refusal(history: past.History) -> None:
    stage = run_of(*history).stage
    refusal = past.refused(rule="stopped", step=stage, text=ref("stopped by operator"))
    given(*history).when(ask.stop()).then(refusal)


@pytest.mark.parametrize("history", [past.a_created_run(), past.a_queued_run()])
def test_a_stop_of_a_run_that_waits_ends_it(history: past.History) -> None:
    after = (
        given(*history)
        .when(ask.stop(by_requester=True))
        .then(
            RunEnded(
                outcome="stopped",
                reason="stopped",
                error=ref("enough"),
                stopped_by="operator",
                stopped_by_requester=True,
            )
        )
    )
    assert after.state is not None
    assert after.state.stop_by_requester


@pytest.mark.parametrize("history", [past.a_claimed_run(), past.a_started_run()])
def test_a_stop_of_a_run_that_is_held_asks_its_holder_once(history: past.History) -> None:
    after = (
        given(*history)
        .when(ask.stop())
        .then(StopRequested(by="operator", by_requester=False, reason=ref("enough")))
    )
    after.when(ask.stop(by="somebody else")).then()


def test_a_run_that_shall_stop_is_not_started_any_more() -> None:
    story = given(*past.a_claimed_run(), past.stop_requested())
    story.when(ask.start(CLAIMER)).refused(StopWanted, "operator")
    story.when(ask.end(CLAIMER, outcome="stopped", reason="stopped")).then(RunEnded)


@pytest.mark.parametrize(
    ("reason", "said", "recorded"),
    [("interrupted", "error", "stopped"), ("exit", "success", "success")],
)
def test_a_run_that_was_to_stop_ends_as_stopped_when_its_holder_is_lost(
    reason: str, said: RunOutcome, recorded: RunOutcome
) -> None:
    story = given(*past.a_started_run(), past.stop_requested())
    after = story.when(ask.end(CLAIMER, outcome=said, reason=reason)).then(RunEnded)
    assert after.state is not None
    assert (after.state.outcome, after.state.stop_requested_by) == (recorded, "operator")


@pytest.mark.parametrize(
    "history", [past.an_ended_run(), past.an_archived_run(), past.a_refused_run()]
)
def test_a_stop_of_what_is_over_changes_nothing(history: past.History) -> None:
    given(*history).when(ask.stop()).then()


def test_a_stop_of_a_spawn_whose_caller_is_gone_waits_in_the_inbox() -> None:
    command = ask.stop(announcement=ref("it was stopped"))
    after = given(*past.a_resolved_run()).when(command).then(SpawnRefused)
    run = after.state
    assert run is not None
    assert run.inbox is not None
    assert (run.inbox.text, run.inbox.dedupe_key) == (ref("it was stopped"), dedupe_key(run))
