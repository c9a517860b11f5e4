"""The lifecycle of a run."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from domain.run.decide import NOT_CLAIMED, dedupe_key
from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    PreparationResumed,
    RunAnnounced,
    RunClaimed,
    RunEnded,
    RunQueued,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    StopRequested,
)
from domain.run.evolve import archive_due
from domain.run.facts import Candidate, Cleanup, Requester, RunOutcome, SpawnOptions, TranscriptSeal
from domain.run.lifecycle import LIFECYCLE, mermaid
from domain.run.state import Run
from domain.session.events import ChildAdmitted
from domain.values.record import ContentRef
from domain.values.refusals import (
    CannotDeliver,
    LostClaim,
    NotYet,
    Rejected,
    SessionIsClosed,
    WrongStage,
)
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import FamilyLog, policy
from tests.support.builders.run_histories import CLAIMER, PREPARER
from tests.support.builders.storytelling import (
    CHILD,
    given,
    plan,
    ref,
    requested,
    requester,
    run_of,
    stamp,
)
from tests.support.models.batch_lives import BatchedLives
from tests.support.models.family_model import HELD, RECORDED, REFUSED, Life, Tree, next_step
from tests.support.models.life_requests import COMMANDS, MANNERS, asked
from tests.support.models.log_invariants import (
    States,
    is_over_once,
    is_put_away_in_turn,
    places_agree,
    replays,
    runs_agree,
)
from tests.support.models.message_lives import PICK
from tests.support.tiers import examples

pytestmark = pytest.mark.long

# The life of a run, told as sentences.

STEWARD = (Candidate(script_id="who", priority=10.0, agent_id="steward", verdict="winner"),)


def test_another_server_goes_on_with_a_preparation_and_the_first_is_locked_out() -> None:
    story = given(*past.a_resolved_run()).when(ask.resume(PREPARER))
    after = story.then(PreparationResumed(holder="server-2", attempt=2, reason="the lease ran out"))
    after.when(ask.prepare(PREPARER)).refused(LostClaim, "claim 1", "claim 3")
    after.when(ask.prepare(3)).then(past.prepared())


def test_a_script_may_put_another_agent_in_the_place_of_the_one_asked_for() -> None:
    command = ask.resolve(PREPARER, candidates=STEWARD, override_to="steward")
    after = (
        given(*past.a_requested_run())
        .when(command)
        .then(
            ScriptsResolved(receipts=(), candidates=STEWARD),
            AgentOverridden(from_agent_id="main", to_agent_id="steward", candidates=STEWARD),
        )
    )
    assert after.state is not None
    assert (after.state.stage, after.state.agent_id) == ("overridden", "steward")
    assert after.state.requested_agent_id == "main"


@pytest.mark.parametrize("winner", [None, "main"])
def test_an_agent_that_stays_the_same_is_not_overridden(winner: str | None) -> None:
    command = ask.resolve(PREPARER, override_to=winner)
    given(*past.a_requested_run()).when(command).then(past.resolved())


def test_a_session_is_created_with_the_key_that_was_minted_and_queued_at_once() -> None:
    after = (
        given(*past.a_prepared_run())
        .when(ask.create(PREPARER, depth=1))
        .then(SessionCreated, RunQueued(lane="subagent", lane_depth=1))
    )
    run = after.state
    assert run is not None
    assert (run.child_session_key, run.holder, run.queued_position) == (CHILD, None, 5)


def test_a_session_is_not_created_before_its_key_is_minted() -> None:
    given(*past.a_resolved_run()).when(ask.create(PREPARER)).refused(WrongStage, "not prepared")


@pytest.mark.parametrize("history", [past.a_requested_run(), past.a_prepared_run()])
def test_a_preparation_is_refused_by_whoever_holds_it_or_by_nobody(history: past.History) -> None:
    given(*history).when(ask.refuse(PREPARER)).then(past.refused())
    given(*history).when(ask.refuse(None)).then(past.refused())
    given(*history).when(ask.refuse(7)).refused(LostClaim)


def test_a_refusal_whose_caller_is_gone_waits_in_the_inbox() -> None:
    command = ask.refuse(PREPARER, announcement=ref("it failed"))
    after = given(*past.a_resolved_run()).when(command).then(SpawnRefused)
    assert after.state is not None
    assert after.state.inbox is not None
    assert after.state.inbox.text == ref("it failed")
    assert after.state.inbox.dedupe_key == dedupe_key(after.state)
    after.when(ask.acknowledge()).then(AnnouncementAcknowledged(by="main"))


def test_a_refusal_that_was_answered_to_has_nothing_to_acknowledge() -> None:
    given(*past.a_refused_run()).when(ask.acknowledge()).refused(CannotDeliver)


@pytest.mark.parametrize(("running", "width"), [(8, 8), (9, 8), (1, 1)])
def test_a_run_waits_while_its_lane_is_full(running: int, width: int) -> None:
    command = ask.claim(lane_running=running, lane_width=width)
    given(*past.a_queued_run()).when(command).refused(NotYet, f"{running}/{width}")


def test_a_claim_opens_an_epoch_under_which_alone_the_run_is_carried_out() -> None:
    after = given(*past.a_queued_run()).when(ask.claim()).then(past.claimed())
    assert after.state is not None
    assert after.state.epoch == CLAIMER
    after.when(ask.start(PREPARER)).refused(LostClaim)
    after.when(ask.start(CLAIMER)).then(past.started())


def test_a_claim_that_lost_its_holder_is_taken_over_even_in_a_full_lane() -> None:
    full = {"lane_running": 8, "lane_width": 8}
    story = given(*past.a_claimed_run())
    story.when(ask.claim()).refused(LostClaim)
    story.when(ask.claim(lost_epoch=PREPARER)).refused(LostClaim)
    again = ask.claim(holder="server-2", lost_epoch=CLAIMER, **full)
    after = story.when(again).then(RunClaimed(holder="server-2", attempt=2))
    after.when(ask.end(CLAIMER)).refused(LostClaim)


def test_nobody_passes_a_full_lane_by_naming_a_claim_that_never_was() -> None:
    command = ask.claim(lost_epoch=PREPARER, lane_running=8, lane_width=8)
    given(*past.a_queued_run()).when(command).refused(NotYet)


def test_an_end_is_recorded_with_all_that_the_runtime_said() -> None:
    seal = TranscriptSeal(count=3, bytes=99, hmac="ab", path="t.jsonl")
    after = (
        given(*past.a_started_run())
        .when(ask.end(CLAIMER, outcome="error", reason="signal", signal=9, transcript=seal))
        .then(past.ended(outcome="error", reason="signal", signal=9, transcript=seal))
    )
    run = after.state
    assert run is not None
    assert (run.outcome, run.holder, run.transcript_path) == ("error", None, "t.jsonl")


def test_a_run_took_as_long_as_its_runtime_executed() -> None:
    assert run_of(*past.an_ended_run()).runtime_ms == 1000
    assert run_of(*past.a_queued_run(), past.ended(outcome="stopped")).runtime_ms is None


def test_a_run_is_not_announced_while_a_descendant_is_under_way() -> None:
    story = given(*past.an_ended_run_with_pending_descendants(2))
    story.when(ask.announce(pending_descendants=2)).refused(NotYet, "2 descendants")


def test_an_announcement_is_known_by_its_key_and_acknowledged_once() -> None:
    after = given(*past.an_ended_run()).when(ask.announce()).then(past.announced())
    after = after.when(ask.acknowledge()).then(past.acknowledged())
    after.when(ask.acknowledge()).then()


@pytest.mark.parametrize("disposition", ["skipped", "not_required"])
def test_what_was_not_put_into_the_inbox_is_not_acknowledged(disposition: str) -> None:
    command = ask.announce(disposition=disposition, text=None)
    after = given(*past.an_ended_run()).when(command).then(RunAnnounced)
    after.when(ask.acknowledge()).refused(CannotDeliver)


@pytest.mark.parametrize(
    ("cleanup", "minutes", "announced_after", "archived_after"),
    [
        ("keep", 60, timedelta(0), timedelta(minutes=60)),
        ("keep", 60, timedelta(hours=5), timedelta(hours=5)),
        ("keep", 0, timedelta(hours=5), None),
        ("delete", 60, timedelta(minutes=5), timedelta(minutes=5)),
        ("delete", 0, timedelta(minutes=5), timedelta(minutes=5)),
    ],
)
def test_a_run_is_archived_so_long_after_its_end_but_never_before_it_is_announced(
    cleanup: Cleanup, minutes: int, announced_after: timedelta, archived_after: timedelta | None
) -> None:
    run = _ended(SpawnOptions(cleanup=cleanup), archive_after_minutes=minutes)
    assert run.ended_at is not None
    due = None if archived_after is None else run.ended_at + archived_after
    assert archive_due(run, run.ended_at + announced_after) == due


@pytest.mark.parametrize(("outcome", "is_archived"), [("stopped", True), ("success", False)])
def test_a_session_that_lives_on_is_archived_only_when_stopped(
    outcome: RunOutcome, is_archived: bool
) -> None:
    run = _ended(SpawnOptions(mode="session"), outcome=outcome, archive_after_minutes=1)
    now = stamp(20).recorded_at
    assert archive_due(run, now) == (now if is_archived else None)


def test_the_archive_is_due_from_the_announcement_on_and_over_with_the_archiving() -> None:
    announced = run_of(*past.an_announced_run())
    assert announced.archive_at == stamp(8).recorded_at + timedelta(minutes=60)
    archived = run_of(*past.an_announced_run(), past.archived(transcript_path="t.deleted"))
    assert (archived.stage, archived.transcript_path) == ("archived", "t.deleted")
    assert archived.archived_at == stamp(10).recorded_at


def _ended(
    options: SpawnOptions, *, archive_after_minutes: int, outcome: RunOutcome = "success"
) -> Run:
    return run_of(
        requested(options=options),
        *past.a_prepared_run()[1:],
        past.created(plan=plan(archive_after_minutes=archive_after_minutes)),
        *past.a_started_run()[4:],
        past.ended(outcome=outcome),
    )


# A run that nobody came for is ended without a holder, and no other run is.


def test_only_a_run_without_a_holder_ends_because_nobody_came() -> None:
    log = FamilyLog()
    for name in ("scout", "late"):
        log.spawn(name)
        log.create(name)
    waiting = log.run("scout")
    unclaimed = ask.end(waiting.epoch, outcome="error", reason=NOT_CLAIMED)
    with pytest.raises(WrongStage, match="not claimed"):
        log.tell("scout", ask.end(waiting.epoch))
    read_before = ask.end(log.run("late").epoch, outcome="error", reason=NOT_CLAIMED)
    log.tell("late", ask.claim())
    with pytest.raises(LostClaim):
        log.tell("late", read_before)
    with pytest.raises(WrongStage, match="claimed"):
        log.tell("late", ask.end(log.run("late").epoch, outcome="error", reason=NOT_CLAIMED))
    log.tell("scout", unclaimed)
    assert (log.run("scout").outcome, log.run("scout").started_at) == ("error", None)


# Stopping a run at any point of its life.


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


def test_a_stop_of_a_spawn_whose_caller_is_gone_waits_in_the_inbox() -> None:
    command = ask.stop(announcement=ref("it was stopped"))
    after = given(*past.a_resolved_run()).when(command).then(SpawnRefused)
    run = after.state
    assert run is not None
    assert run.inbox is not None
    assert (run.inbox.text, run.inbox.dedupe_key) == (ref("it was stopped"), dedupe_key(run))


# The drawing of a run's life is the table itself: `make docs` puts it into the README.

README = Path(__file__).parents[3] / "README.md"
BEFORE, AFTER = "<!-- lifecycle -->", "<!-- /lifecycle -->"


def test_the_readme_shows_exactly_the_lifecycle_of_the_code() -> None:
    text = README.read_text()
    assert (text.count(BEFORE), text.count(AFTER)) == (1, 1)
    shown = text.split(BEFORE)[1].split(AFTER)[0].strip()
    assert shown == f"```mermaid\n{mermaid()}\n```", "run: make docs"


def test_every_cell_of_the_table_is_an_arrow() -> None:
    arrows = [line for line in mermaid().splitlines() if "-->" in line]
    cells = [(stage, event) for stage, cells in LIFECYCLE.items() for event in cells]
    ends = ["    archived --> [*]", "    refused --> [*]"]
    assert len(arrows) == len(cells) + len(ends)
    assert arrows[-2:] == ends
    assert "    [*] --> requested: SpawnRequested" in arrows
    assert "    session_created --> queued: RunQueued" in arrows


# Whatever is asked of a tree of runs, in whatever order: what holds all along its log.


KINDS = (*COMMANDS, "claim", "take over")
GOING_ON = tuple(kind for kind in KINDS if kind not in ("archive", "close"))
LIMITS = st.none() | st.tuples(st.integers(1, 4), st.integers(2, 3))


class Lives(BatchedLives):
    """Drives a tree through its log, beside a model of it."""

    @initialize(
        children=st.integers(1, 4),
        width=st.integers(1, 3),
        chain=st.integers(1, 3),
        manner=st.sampled_from([*MANNERS]),
    )
    def begin(self, children: int, width: int, chain: int, manner: str) -> None:
        self.tree = Tree(max_children=children, max_depth=3, lane_width=width)
        self.log = FamilyLog(max_children=children, max_spawn_depth=3)
        self.seen: list[States] = []
        self.replaced: dict[str, list[int]] = {}
        self.read: dict[str, Run] = {}
        for _ in range(chain):
            self.spawn(0, None, manner)
            self.advance(0, 5)

    @rule(pick=PICK, limits=LIMITS, manner=st.sampled_from(["plain", *MANNERS]))
    def spawn(self, pick: int, limits: tuple[int, int] | None, manner: str = "plain") -> None:
        if limits is not None:
            self.tree.max_children, self.tree.max_depth = limits
            self.log.policy = policy(max_children=limits[0], max_spawn_depth=limits[1])
        sessions = self.tree.sessions()
        by = sessions[-1 - pick % len(sessions)]
        name = f"r{len(self.log.names) + 1}"
        if not self.tree.spawns(by):
            self.refused(lambda: self.log.spawn(name, by), SessionIsClosed)
            return
        against = self.tree.rule_against(by)
        count = len(self.tree.counted(by))
        self.log.spawn(name, by, options=MANNERS[manner], thread=manner == "lasting")
        depth = self.tree.lives[by].depth + 1 if by in self.tree.lives else 1
        stage = "refused" if against else "requested"
        agent_id = self.tree.lives[by].agent_id if by in self.tree.lives else "main"
        life = Life(name, by, depth, stage, agent_id, is_admitted=against is None, manner=manner)
        above = self.tree.last(by)
        life.above = above.name if above is not None else None
        self.tree.lives[name] = life
        last = self.log.recorded[-1].event
        if against:
            assert isinstance(last, SpawnRefused)
            assert last.rule == against
        else:
            assert isinstance(last, ChildAdmitted)
            assert (last.active_children, last.max_children) == (count, self.tree.max_children)
            assert last.active_children < last.max_children
        self.appended()

    @precondition(lambda self: self.tree.lives)
    @rule(pick=PICK, steps=st.integers(1, 8))
    def advance(self, pick: int, steps: int) -> None:
        life = self._life(pick)
        for _ in range(steps):
            kind = next_step(life)
            if kind not in (None, "archive"):
                self.tell(life, kind)

    @precondition(lambda self: self.tree.lives)
    @rule(pick=PICK, kind=st.sampled_from(KINDS))
    def ask(self, pick: int, kind: str) -> None:
        self.tell(self._life(pick), kind)

    @precondition(lambda self: self.tree.lives)
    @rule(pick=PICK, which=PICK)
    def ask_what_fits(self, pick: int, which: int) -> None:
        life = self._life(pick)
        fits = [kind for kind in GOING_ON if self.tree.permits(life, kind)]
        self.tell(life, fits[which % len(fits)])

    @precondition(lambda self: self.tree.lives)
    @rule(pick=PICK, kind=st.sampled_from(HELD), which=PICK)
    def ask_as_one_who_does_not_hold_it(self, pick: int, kind: str, which: int) -> None:
        name = self._life(pick).name
        run = self.log.run(name)
        epochs = [run.epoch + 1, *self.replaced.get(name, ())]
        command = COMMANDS[kind](run, epochs[which % len(epochs)])
        self.refused(lambda: self.log.tell(name, command))

    def tell(self, life: Life, kind: str) -> None:
        """Ask, and compare what comes of it with the model."""
        command = asked(self.log, life, kind, self.tree.lane_width)
        expected = self.tree.ask(life, kind)
        if expected == REFUSED:
            self.refused(lambda: self.log.tell(life.name, command))
            return
        before, epoch = len(self.log.recorded), self.log.run(life.name).epoch
        self.log.tell(life.name, command)
        assert (len(self.log.recorded) > before) == (expected == RECORDED)
        if kind in ("resume", "claim", "take over"):
            self.replaced.setdefault(life.name, []).append(epoch)
        self.appended()

    def refused(self, act: Callable[[], Any], error: type[Rejected] = Rejected) -> None:
        """It is turned down, and everything is as before."""
        before = (len(self.log.recorded), dict(self.log.fold.runs), dict(self.log.fold.sessions))
        with pytest.raises(error):
            act()
        fold = self.log.fold
        assert (len(self.log.recorded), fold.runs, fold.sessions) == before

    def appended(self) -> None:
        """Keep the states as they are at this position."""
        fold = self.log.fold
        self.seen.append((len(self.log.recorded), dict(fold.runs), dict(fold.sessions)))

    @invariant()
    def the_log_and_the_model_agree(self) -> None:
        runs_agree(self.log, self.tree)

    @invariant()
    def places_and_lanes_are_as_the_whole_tree_says(self) -> None:
        places_agree(self.log, self.tree)

    def teardown(self) -> None:
        if not hasattr(self, "log"):
            return
        replays(self.log.recorded, self.seen)
        is_over_once(self.log.recorded)
        is_put_away_in_turn(self.log)

    def _life(self, pick: int) -> Life:
        lives = list(self.tree.lives.values())
        return lives[-1 - pick % len(lives)]


TestLives = Lives.TestCase
TestLives.settings = examples(60, stateful_step_count=40)


@pytest.mark.parametrize("manner", [*MANNERS])
@pytest.mark.parametrize("is_held", [True, False])
def test_a_message_behind_a_stop_is_judged_as_the_model_has_it(manner: str, is_held: bool) -> None:
    lives = Lives()
    lives.begin(children=2, width=1, chain=1, manner=manner)
    lives.spawn(1, None, manner)
    lives.advance(0, 3)
    first, second = lives.tree.lives.values()
    stopped = first if is_held else second
    assert (stopped.stage, stopped.is_held) == ("started" if is_held else "queued", is_held)
    lives.tell(stopped, "stop")
    for kind in (None, *(("end",) if is_held else ()), "announce"):
        if kind is not None:
            lives.tell(stopped, kind)
        for pick in range(2):
            lives.message(pick=pick, as_read=False, waits=False)
        lives.the_log_and_the_model_agree()
        lives.places_and_lanes_are_as_the_whole_tree_says()
    lives.teardown()


ASKED_FROM = requester(origin=ref("asked"))


@pytest.mark.parametrize(
    ("asks", "thread", "hook", "expected"),
    [
        (ASKED_FROM, None, None, ref("asked")),
        (ASKED_FROM, ref("thread"), None, ref("thread")),
        (ASKED_FROM, ref("thread"), ref("hook"), ref("hook")),
        (requester(origin=ref("asked"), depth=1), None, ref("hook"), None),
    ],
)
def test_announcement_goes_to_hook_thread_or_requester(
    asks: Requester,
    thread: ContentRef | None,
    hook: ContentRef | None,
    expected: ContentRef | None,
) -> None:
    begun = (requested(requester=asks), *past.a_started_run()[1:], past.ended())
    run = run_of(*begun, past.announced(origin=hook)).changed({"delivery_origin": thread})
    assert run.inbox_target == expected
