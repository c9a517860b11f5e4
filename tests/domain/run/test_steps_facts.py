"""What the steps of a preparation say of the child, and what the run makes of it."""

import pytest

from domain.run.events import RunQueued, SessionCreated, StepTaken
from domain.run.facts import ForkFacts
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.run_histories import PREPARER
from tests.support.builders.storytelling import given, ref, run_id, run_of


def test_the_files_that_were_written_are_told() -> None:
    files = {"manifest": ref("manifest"), "file_count": 2, "total_bytes": 9, "can_undo": True}
    story = given(*past.a_run_at_a_step()).when(
        ask.take_step(PREPARER, outcome="written", made=False, **files)
    )
    state = story.then(StepTaken).state
    assert state is not None
    step = state.step("attachments")
    assert step is not None
    assert {name: getattr(step, name) for name in files} == files
    assert step.made is False


@pytest.mark.parametrize("mode", ["fork", "isolated"])
def test_what_was_taken_over_of_a_conversation_is_told_and_stays_with_the_child(mode: str) -> None:
    facts = {"source_session_id": run_id(7), "position": 3, "entries": 2, "tokens": 9}
    fork = fact_of(ForkFacts, facts | {"mode": mode})
    begun = (*past.a_prepared_run(), past.step_begun("context_fork"))
    command = ask.take_step(PREPARER, step="context_fork", outcome="forked", fork=fork)
    story = given(*begun).when(command).then(StepTaken)
    assert story.state is not None
    assert (story.state.fork, story.state.context_mode) == (fork, mode)
    (created, _) = story.when(ask.create(PREPARER)).then(SessionCreated, RunQueued).events[-2:]
    assert isinstance(created, SessionCreated)
    assert created.context_mode == mode
    assert run_of(*past.a_queued_run()).context_mode == "isolated"


def test_who_bound_a_thread_says_where_the_results_go() -> None:
    begun = (*past.a_prepared_run(), past.step_begun("thread_binding"))
    bound = {"outcome": "bound", "origin": ref("origin"), "can_undo": True}
    story = given(*begun).when(ask.take_step(PREPARER, step="thread_binding", **bound))
    taken = story.then(StepTaken)
    assert taken.state is not None
    assert taken.state.delivery_origin == ref("origin")
    engine = (*taken.events, past.step_begun("context_engine"))
    told = ask.take_step(PREPARER, step="context_engine", outcome="prepared", token=ref("token"))
    prepared = given(*engine).when(told).then(StepTaken)
    assert prepared.state is not None
    step = prepared.state.step("context_engine")
    assert step is not None
    assert step.token == ref("token")
    created = prepared.when(ask.create(PREPARER)).then(SessionCreated, RunQueued)
    assert isinstance(created.events[-2], SessionCreated)
    assert created.events[-2].delivery_origin == ref("origin")
    assert created.state is not None
    assert created.state.delivery_origin == ref("origin")
