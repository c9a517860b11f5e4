"""The steps of a preparation."""

from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain.run.events import EffectAttempted, RunQueued, SessionCreated, StepBegun, StepTaken
from domain.run.facts import (
    STEP_ORDER,
    AttachmentsRequest,
    ForkFacts,
    SpawnOptions,
    StepName,
    step_key,
)
from domain.values.refusals import CorruptHistoryError, LostClaim, NotYet, WrongStage
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.run_histories import PREPARER
from tests.support.builders.storytelling import (
    START,
    AskedRun,
    given,
    ref,
    requested,
    run_id,
    run_of,
)
from tests.support.tiers import examples

pytestmark = pytest.mark.long

# Each preparation step is recorded before it acts, and undone from the record.

LIMIT = timedelta(seconds=5)


def at(position: int) -> datetime:
    return START + timedelta(seconds=position)


def undos(*events: past.History) -> dict[StepName, datetime | None]:
    """Return when each step is to be undone after these histories."""
    run = run_of(*(event for history in events for event in history))
    due = {effect.name: effect.due_at for effect in run.effects}
    assert run.effects_at == min((item for item in due.values() if item is not None), default=None)
    return {step.name: due.get(step.name) for step in run.steps}


def kept(*, retain: bool, **options: object) -> past.History:
    """Return a queued run with steps, with the retention of its files and other options."""
    attachments_request = AttachmentsRequest(
        count=2, total_bytes=9, retain=retain, manifest=ref("manifest")
    )
    birth = requested(attachments=attachments_request, options=fact_of(SpawnOptions, options))
    return (birth, *past.a_run_with_steps()[1:], past.created(), past.queued())


def test_next_step_begins_after_the_one_before() -> None:
    at_the_first = given(*past.a_prepared_run(), past.step_begun("workspace"))
    at_the_first.when(ask.begin_step(PREPARER)).refused(WrongStage, "step workspace (begun)")
    at_the_first.when(ask.create(PREPARER)).refused(WrongStage, "create", "at step workspace")


def test_resumed_step_begins_again_under_its_key() -> None:
    resumed = given(*past.a_run_at_a_step(), past.resumed())
    assert resumed.state is not None
    epoch = resumed.state.epoch
    resumed.when(ask.begin_step(PREPARER)).refused(LostClaim)
    resumed.when(ask.take_step(epoch)).refused(WrongStage, "under this claim")
    again = resumed.when(ask.begin_step(epoch, limit_seconds=9.0)).then(StepBegun)
    assert again.state is not None
    assert [step.name for step in again.state.steps] == ["workspace", "attachments"]
    state = again.state.step("attachments")
    assert state is not None
    assert (state.epoch, state.begun_at, state.limit_seconds) == (epoch, at(8), 9.0)
    assert state.key == step_key(run_id(1), "attachments")
    again.when(ask.take_step(epoch)).then(StepTaken)


@pytest.mark.parametrize("change", [{"root": "/srv/other"}, {"relative": "elsewhere"}])
def test_step_is_never_begun_again_at_another_place(change: dict[str, str]) -> None:
    resumed = given(*past.a_run_at_a_step(), past.resumed())
    assert resumed.state is not None
    command = ask.begin_step(resumed.state.epoch, **change)
    resumed.when(command).refused(WrongStage, "elsewhere", "its recorded place")


def test_undo_waits_for_the_limit_of_its_step() -> None:
    begun_at = len(past.a_run_at_a_step())
    due = undos(past.a_run_at_a_step(), (past.refused(rule="stopped", step="scripts-resolved"),))
    assert due == dict.fromkeys(("workspace", "attachments"), at(begun_at) + LIMIT)


@pytest.mark.parametrize(
    ("retain", "cleanup", "goes"),
    [(True, "keep", False), (False, "keep", True), (True, "delete", True), (False, "delete", True)],
)
@pytest.mark.parametrize("ran", [(past.claimed(), past.started()), ()])
def test_files_are_removed_at_announcement_unless_retained(
    retain: bool, cleanup: str, goes: bool, ran: past.History
) -> None:
    run = kept(retain=retain, cleanup=cleanup)
    assert set(undos(run, ran, (past.ended(),)).values()) == {None}
    result = (*run, *ran, past.ended(), past.announced())
    due = undos(result)
    assert due == {"workspace": None, "attachments": at(len(result)) if goes else None}
    assert undos(result, (past.archived(),)) == due


@pytest.mark.parametrize("retain", [True, False])
def test_files_of_lasting_session_go_with_its_archive(retain: bool) -> None:
    result = (*kept(retain=retain, mode="session"), past.ended(), past.announced())
    assert set(undos(result).values()) == {None}
    due = undos(result, (past.archived(),))
    gone = None if retain else at(len(result) + 1)
    assert due == {"workspace": None, "attachments": gone}


@pytest.mark.parametrize(
    ("mode", "outcome", "expected"),
    [
        ("run", "stopped", {"thread_binding", "context_engine"}),
        ("run", "error", {"thread_binding", "context_engine"}),
        ("session", "stopped", {"thread_binding", "context_engine"}),
        ("session", "error", {"context_engine"}),
    ],
)
def test_steps_of_unstarted_child_are_undone(mode: str, outcome: str, expected: set[str]) -> None:
    made = [item for name in STEP_ORDER for item in (past.step_begun(name), past.step_taken(name))]
    birth = requested(options=fact_of(SpawnOptions, {"mode": mode}))
    queued = (birth, *past.a_prepared_run()[1:], *made, past.created(), past.queued())
    in_vain = undos(queued, (past.ended(outcome=outcome),))
    assert {name for name, due in in_vain.items() if due} == expected
    started = (*queued, past.claimed(), past.started())
    ended = undos(started, (past.ended(outcome=outcome),))
    assert set(ended.values()) == {None}
    # Its program could not be executed, so its steps are undone as for a run that never started.
    for_nothing = undos(started, (past.ended(outcome=outcome, reason="not_executable"),))
    assert {name for name, due in for_nothing.items() if due} == expected


def test_what_was_made_last_is_undone_first() -> None:
    story = given(*past.a_run_with_steps(), past.refused())
    for command in (ask.confirm_undo(step="workspace"), ask.note_undo_failure(step="workspace")):
        story.when(command).refused(NotYet, "undo attachments comes before workspace")
    story = story.when(ask.confirm_undo()).then(past.step_undone())
    story = story.when(ask.confirm_undo(step="workspace", how="left_in_place")).then(
        past.step_undone("workspace", outcome="left_in_place")
    )
    assert story.state is not None
    assert story.state.effects_at is None
    assert [effect.phase for effect in story.state.effects] == ["done", "done"]
    assert [effect.outcome for effect in story.state.effects] == ["undone", "left_in_place"]
    story.when(ask.confirm_undo()).then()
    story.when(ask.note_undo_failure(attempt=2)).then()


def test_failed_undo_is_retried_before_the_next() -> None:
    refused = given(*past.a_run_with_steps(), past.refused())
    once = refused.when(ask.note_undo_failure()).then(past.undo_failed())
    assert undos(once.events) == {"workspace": at(10), "attachments": at(10)}
    once.when(ask.note_undo_failure()).then()
    twice = once.when(ask.note_undo_failure(attempt=2)).then(EffectAttempted)
    assert undos(twice.events) == {"workspace": at(12), "attachments": at(12)}
    twice.when(ask.confirm_undo()).then(past.step_undone(attempt=3))


def test_undo_waits_for_later_steps() -> None:
    made = *past.a_run_with_steps(), past.step_begun("context_engine")
    created = (*made, past.step_taken("context_engine"), past.created(), past.queued())
    failing = (*created, past.ended(), past.undo_failed("context_engine", retry_after_seconds=60))
    later = at(len(failing) + 60)
    due = {"workspace": None, "attachments": None, "context_engine": later}
    assert undos(failing) == due
    assert undos(failing, (past.announced(),)) == due | {"attachments": later}


def test_archive_repeats_no_undo() -> None:
    story = given(
        *past.a_run_with_steps(),
        *(past.created(), past.queued(), past.claimed(), past.started()),
        *(past.ended(reason="yielded"), past.announced(), past.step_undone(), past.archived()),
    )
    assert story.state is not None
    assert story.state.effects_at is None


@pytest.mark.parametrize("event", [past.step_taken(), past.step_undone(), past.undo_failed()])
def test_event_of_unbegun_step_is_corrupt(
    event: StepTaken | EffectAttempted,
) -> None:
    history = past.a_prepared_run()
    if not isinstance(event, StepTaken):
        history = (*history, past.refused())
    with pytest.raises(CorruptHistoryError, match=r"never begun|no undo"):
        run_of(*history, event)


# Facts that preparation steps record about the child, and the resulting state of the run.


def test_files_that_were_written_are_told() -> None:
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
def test_fork_is_recorded_with_the_child(mode: str) -> None:
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


def test_thread_binding_says_where_results_go() -> None:
    begun = (*past.a_prepared_run(), past.step_begun("thread_binding"))
    bound = {"outcome": "bound", "origin": ref("origin"), "can_undo": True}
    story = given(*begun).when(ask.take_step(PREPARER, step="thread_binding", **bound))
    taken = story.then(StepTaken)
    assert taken.state is not None
    assert taken.state.delivery_origin == ref("origin")
    engine = (*taken.events, past.step_begun("context_engine"))
    result = ask.take_step(PREPARER, step="context_engine", outcome="prepared", token=ref("token"))
    prepared = given(*engine).when(result).then(StepTaken)
    assert prepared.state is not None
    step = prepared.state.step("context_engine")
    assert step is not None
    assert step.token == ref("token")
    created = prepared.when(ask.create(PREPARER)).then(SessionCreated, RunQueued)
    assert isinstance(created.events[-2], SessionCreated)
    assert created.events[-2].delivery_origin == ref("origin")
    assert created.state is not None
    assert created.state.delivery_origin == ref("origin")


# For any course of a preparation, the record shows the steps to undo.


STEPS = st.sampled_from(STEP_ORDER)


class Steps(AskedRun, RuleBasedStateMachine):
    """State machine with a model of sets: steps that are made, being made, and left.

    `outside` is the state outside the log, changed where a step maker would change it, before the
    event.
    """

    @initialize()
    def begin(self) -> None:
        self.story = given(*past.a_prepared_run())
        self.stage = "preparing"
        self.outside: set[StepName] = set()
        self.begun: list[StepName] = []
        self.taken: set[StepName] = set()
        self.undone: set[StepName] = set()
        self.holds = True

    @property
    def at(self) -> StepName | None:
        """Return the step in progress."""
        return next((item for item in self.begun if item not in self.taken), None)

    @rule(step=STEPS)
    def begin_step(self, step: StepName) -> None:
        fits = self.stage == "preparing" and (
            self.at == step
            or (self.at is None and all(_place(item) < _place(step) for item in self.begun))
        )
        events = self.ask(ask.begin_step(self.run.epoch, step=step))
        assert (events is not None) == fits
        if not fits:
            return
        # A begun step may act from now on, whether recorded or not.
        self.outside.add(step)
        if step in self.begun:
            assert bool(events) != self.holds
        else:
            assert events
            self.begun.append(step)
        self.holds = True

    @rule(step=STEPS)
    def take(self, step: StepName) -> None:
        events = self.ask(ask.take_step(self.run.epoch, step=step))
        if self.stage == "preparing" and self.at == step and self.holds:
            assert events
            self.taken.add(step)
        else:
            assert not events

    @precondition(lambda self: self.stage == "preparing")
    @rule()
    def crash(self) -> None:
        assert self.ask(ask.resume(self.run.epoch))
        # The step under way is not this holder's before it is begun again.
        self.holds = self.at is None

    @rule(stopped=st.booleans())
    def refuse(self, stopped: bool) -> None:
        command = ask.stop() if stopped else ask.refuse(self.run.epoch, step=self.at or "x")
        if self.stage == "preparing":
            assert self.ask(command)
            self.stage = "refused"
        elif not stopped:
            assert self.ask(command) is None

    @precondition(lambda self: self.stage == "preparing" and len(self.begun) > 2)
    @rule()
    def create(self) -> None:
        events = self.ask(ask.create(self.run.epoch))
        assert bool(events) == (self.at is None)
        if events:
            self.stage = "created"

    @property
    def left(self) -> list[StepName]:
        """Return the steps to undo, next one first."""
        if self.stage != "refused":
            return []
        return [item for item in reversed(self.begun) if item not in self.undone]

    @rule(step=STEPS)
    def undo(self, step: StepName) -> None:
        events = self.ask(ask.confirm_undo(step))
        if self.left[:1] == [step]:
            assert events
            self.outside.discard(step)
            self.undone.add(step)
        else:
            assert not events

    @rule(step=STEPS, late=st.booleans())
    def fail_to_undo(self, step: StepName, late: bool) -> None:
        undo = self.run.effect("undo", step)
        failures = undo.attempts if undo else 0
        events = self.ask(ask.note_undo_failure(step=step, attempt=failures + (not late)))
        assert bool(events) == (self.left[:1] == [step] and not late)

    @invariant()
    def the_record_and_the_sets_agree(self) -> None:
        if not hasattr(self, "story"):
            return
        steps = self.run.steps
        assert [step.name for step in steps] == self.begun
        undos = self.run.effects
        assert {undo.name for undo in undos if undo.phase == "done"} == self.undone
        assert [undo.name for undo in undos if undo.due_at] == self.left
        assert (self.run.effects_at is not None) == bool(self.left)
        assert self.outside <= set(self.begun) - self.undone
        due = [undo.due_at for undo in undos if undo.due_at]
        assert due == sorted(due)

    def teardown(self) -> None:
        """Assert that no begun step is left once all due undos are confirmed."""
        if not hasattr(self, "story") or self.stage != "refused":
            return
        for step in self.left:
            self.undo(step)
        assert not self.outside
        assert self.run.effects_at is None
        assert [effect.name for effect in self.run.effects] == self.begun[::-1]


def _place(step: StepName) -> int:
    return STEP_ORDER.index(step)


TestSteps = Steps.TestCase
TestSteps.settings = examples(60, stateful_step_count=30)
