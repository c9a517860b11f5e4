"""Dependencies of a spawn."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.run.commands import SettleDependencies
from domain.run.facts import Dependency, DependencyNeeds, DependencyVia, RunOutcome
from domain.run.state import Run
from domain.spawn.dependencies import (
    DependencyFailed,
    DependencyRequest,
    dependency_verdict,
    evaluate_dependencies,
    failed_dependency_text,
    linked_runs,
)
from domain.spawn.dependency_rules import NAMES, RUNS_SHOWN_MAX, NamedRuns
from domain.spawn.request import merge_dependencies
from domain.values.refusals import ReadAgain
from domain.values.rules import first_refusal
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.storytelling import ref, requested, run_id, run_of
from tests.support.builders.waiting_runs import TARGET, dependency
from tests.support.tiers import examples
from world.model import messages
from world.model.tree import DONE, WAITING, Life, Tree, Wish

pytestmark = pytest.mark.long

# A run that waits for others: it is queued when they are done, and ends when one failed.


def on(log: FamilyLog, *names: str, require: DependencyNeeds = "success") -> tuple[Dependency, ...]:
    return tuple(
        Dependency(run_id=log.run(name).run_id, name=name, via="dependsOn", require=require)
        for name in names
    )


def settle(log: FamilyLog, name: str, culprit: str | None = None) -> list[str]:
    found = log.run(culprit).run_id if culprit is not None else None
    error = ref("it was not started") if culprit is not None else None
    return log.tell(name, SettleDependencies(lane="subagent", culprit=found, error=error))


def test_run_waits_for_all_dependencies() -> None:
    log = FamilyLog()
    log.begin("a")
    log.begin("b")
    log.spawn("after", dependencies=on(log, "a", "b"))
    assert log.create("after")[-1] == "run after RunWaits"
    assert (log.run("after").holder, log.run("after").stage) == (None, "session-created")
    assert settle(log, "after") == []
    log.end("a")
    assert settle(log, "after") == ["run after DependencyMet"]
    assert log.run("after").waits_for == (log.run("b").run_id,)
    assert linked_runs([log.run("after")]) == {log.run("b").run_id}
    log.end("b")
    assert settle(log, "after") == ["run after DependencyMet", "run after RunQueued"]
    assert (log.run("after").stage, log.run("after").waits_for) == ("queued", None)
    assert settle(log, "after") == []


def test_run_whose_dependencies_are_done_is_queued_at_once() -> None:
    log = FamilyLog()
    log.begin("a")
    log.end("a")
    log.spawn("after", dependencies=on(log, "a"))
    assert log.create("after")[-2:] == ["run after DependencyMet", "run after RunQueued"]
    assert log.run("after").waits_for is None


def test_waiting_run_holds_a_place_until_it_fails() -> None:
    log = FamilyLog()
    log.begin("a")
    log.spawn("after", dependencies=on(log, "a"))
    log.create("after")
    assert log.counted("main") == ["a", "after"]
    log.tell("a", ask.end(log.run("a").epoch, outcome="error"))
    with pytest.raises(ReadAgain):
        settle(log, "after")
    assert settle(log, "after", "a") == ["run after RunEnded", "session main ChildReleased"]
    after = log.run("after")
    assert (after.outcome, after.end_reason, after.started_at) == (
        "error",
        "dependency_failed",
        None,
    )
    assert log.announce("after") == ["run after RunAnnounced"]


def test_failed_dependency_prevents_creation() -> None:
    log = FamilyLog()
    log.begin("a")
    log.spawn("after", dependencies=on(log, "a"))
    log.spawn("anyway", dependencies=on(log, "a", require="ended"))
    log.tell("a", ask.end(log.run("a").epoch, outcome="timeout"))
    with pytest.raises(DependencyFailed, match="ended as timeout") as caught:
        log.create("after")
    assert caught.value.dependency.name == "a"
    assert log.create("anyway")[-1] == "run anyway RunQueued"


@pytest.mark.parametrize(
    ("history", "with_success", "with_any_end"),
    [
        (past.a_queued_run(), "waits", "waits"),
        (past.a_started_run(), "waits", "waits"),
        (past.an_ended_run_with_pending_descendants(), "waits", "waits"),
        (past.an_ended_run(), "met", "met"),
        (past.an_announced_run(), "met", "met"),
        (past.an_archived_run(), "met", "met"),
        ((*past.a_started_run(), past.ended(outcome="stopped")), "failed", "met"),
        (past.a_refused_run(), "failed", "failed"),
    ],
)
def test_what_a_target_is_good_for(
    history: past.History, with_success: str, with_any_end: str
) -> None:
    target = run_of(*history)
    assert dependency_verdict(dependency(), target) == with_success
    assert dependency_verdict(dependency(require="ended"), target) == with_any_end


@pytest.mark.parametrize(
    ("history", "via", "text"),
    [
        (past.a_refused_run(), "dependsOn", "was refused; spawn it again and name the new run"),
        (
            (*past.a_started_run(), past.ended(outcome="stopped")),
            "dependsOn",
            'was stopped; spawn it again, or use {"run": "scout", "require": "ended"} to'
            " continue anyway",
        ),
        (
            (*past.a_started_run(), past.ended(outcome="error")),
            "reference",
            "ended as error; spawn it again and name the new run",
        ),
    ],
)
def test_failed_dependency_is_refused_with_advice(
    history: past.History, via: str, text: str
) -> None:
    result = failed_dependency_text(dependency(via=via), run_of(*history))
    field = "sharedContext.$scout" if via == "reference" else via
    assert result == f'{field} names "scout" (run {TARGET}), which {text}'


def called(*labels: str | None) -> list[Run]:
    """Return runs with these labels, numbered from 1."""
    return [
        run_of(requested(run_id=run_id(number), label=label))
        for number, label in enumerate(labels, start=1)
    ]


A, LISTED = f'"a" (run {run_id(1)})', f'"a" (run {run_id(1)}), run {run_id(2)}'
NAMED: dict[str, tuple[DependencyVia, list[Run], list[Run], str | None]] = {
    "one run": ("dependsOn", called("a"), [], None),
    "one reference": ("reference", called("a"), [], None),
    "no run, none there": ("dependsOn", [], [], "No run of this tree can be waited for yet."),
    "no run, others there": ("dependsOn", [], called("a", None), f"Known: {LISTED}"),
    "no reference, none there": ("reference", [], [], "It has not spawned any run yet."),
    "no reference, others there": ("reference", [], called("a", None), f"Known: {LISTED}"),
    "one label of two runs": (
        "dependsOn",
        called("a", "a"),
        [],
        f'dependsOn names "a", which is the label of 2 sessions: run {run_id(1)}, run'
        f" {run_id(2)}; give a run id",
    ),
    "one label of two references": (
        "reference",
        called("a", "a"),
        [],
        f'sharedContext.$a: "a" is the label of 2 sessions: run {run_id(1)}, run {run_id(2)};'
        " give a run id",
    ),
    "beginning of two labels": (
        "reference",
        called("a", "ab"),
        [],
        f'sharedContext.$a: "a" is a prefix of 2 labels: {A}, "ab" (run {run_id(2)}); give a'
        " whole label or a run id",
    ),
    "many others": ("dependsOn", [], called(*["a"] * (RUNS_SHOWN_MAX + 1)), ", and more"),
}


@pytest.mark.parametrize("name", NAMED)
def test_unknown_or_ambiguous_name_is_refused(name: str) -> None:
    via, runs, others, text = NAMED[name]
    request = DependencyRequest("a", via)
    refusal = first_refusal(NAMES, NamedRuns(request=request, runs=runs, others=others))
    assert (refusal is None) == (text is None)
    assert refusal is None or refusal.text.endswith(str(text))


# Permitted dependencies of a spawn: cycles, failures, and the paths between runs.


def refused(log: FamilyLog, name: str, by: str, *names: str) -> tuple[str, str] | None:
    """Return the rule and the text, with names of runs in place of their ids."""
    answered = log.answer(name, by, dependencies=on(log, *names))
    log.record(answered.changes)
    if answered.refusal is None:
        return None
    text = answered.refusal.text
    for known, called in log.names.items():
        text = text.replace(str(known), called)
    return answered.refusal.rule, text


def test_spawn_judged_below_an_older_run_is_read_again() -> None:
    log = FamilyLog()
    log.begin("a")
    log.finish("a")
    log.go_on("newest", "a")
    with pytest.raises(ReadAgain, match="changed meanwhile"):
        log.answer("b", "a", dependencies=on(log, "newest"), ancestors=(log.run("a").run_id,))
    result = refused(log, "b", "a", "newest")
    assert result is not None
    assert result[0] == "dependency_cycle"


def test_cycle_is_refused_with_its_path() -> None:
    log = FamilyLog()
    for name in "abc":
        log.begin(name)
    log.spawn("w", dependencies=on(log, "b"))
    assert refused(log, "in a", "a", "w") is None
    assert refused(log, "in b", "b", "a") == (
        "dependency_cycle",
        'dependsOn names "a" (run a), which waits, by run in a → run w, for run b above this'
        " spawn: this would be a dependency cycle",
    )
    assert refused(log, "in b too", "b", "c") is None


def yield_and_go_on(log: FamilyLog, name: str, newest: str) -> None:
    """Yield the turn of a run, and continue its session while its children are active."""
    log.tell(name, continued.yield_run())
    log.end(name)
    log.go_on(newest, name)


def test_continued_session_waits_for_earlier_children() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("b")
    log.spawn("x", "s", dependencies=on(log, "b"))
    yield_and_go_on(log, "s", "newest")
    assert refused(log, "y", "b", "newest") == (
        "dependency_cycle",
        'dependsOn names "newest" (run newest), which waits, by run x, for run b above this'
        " spawn: this would be a dependency cycle",
    )


def test_nobody_waits_for_the_newest_run_of_a_session_above() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("c", "s")
    yield_and_go_on(log, "s", "newest")
    result = refused(log, "z", "c", "newest")
    assert result is not None
    assert result[0] == "dependency_cycle"
    assert result[1].endswith("own run or an ancestor, which ends only after its children")


def test_run_above_is_waited_for_once_it_is_over() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("c", "s")
    assert refused(log, "too early", "c", "s") is not None
    yield_and_go_on(log, "s", "newest")
    assert refused(log, "after s", "c", "s") is None


def test_merged_dependencies_keep_the_strictest_need() -> None:
    first = Dependency(run_id=run_id(1), name="x", via="dependsOn", require="ended")
    same = Dependency(run_id=run_id(1), name="x", via="chainAfter")
    second = Dependency(run_id=run_id(2), name="y", via="chainAfter", require="ended")
    assert merge_dependencies([first, same, second]) == (same, second)


def test_run_that_was_not_read_is_not_judged() -> None:
    log = FamilyLog()
    missing = Dependency(run_id=run_id(77), name="x", via="dependsOn")
    with pytest.raises(ReadAgain):
        log.answer("after", "main", dependencies=(missing,))


# Random dependencies that end in random order: the log agrees with a simple model, and at the end
# no run waits.


RUNS_MAX = 24
OUTCOMES: tuple[RunOutcome, ...] = ("success", "success", "success", "error", "timeout")

ACTS = 70
WEIGHTS = {
    "spawn": 10,
    "look": 6,
    "start": 8,
    "end": 3,
    "announce": 3,
    "stop": 1,
    "refuse": 1,
    "yield_turn": 2,
    "message": 3,
}
STAGES: dict[str, tuple[str, ...]] = {
    "look": ("requested", WAITING),
    "start": ("queued",),
    "end": ("started",),
    "announce": ("ended",),
    "stop": ("requested", WAITING, "queued"),
    "refuse": ("requested",),
    "yield_turn": ("started",),
    "message": ("announced", "ended"),
}


class Waiting:
    """State machine with the log and the model of its tree."""

    def __init__(self) -> None:
        self.log = FamilyLog(max_children=100, max_spawn_depth=4)
        self.tree = Tree(max_children=100, max_depth=4, lane_width=RUNS_MAX)
        self.refusals: list[str] = []

    def of(self, *stages: str) -> list[Life]:
        return [run for run in self.tree.lives.values() if run.stage in stages]

    def spawn(self, chance: Random) -> None:
        lives = self.tree.lives
        if len(lives) >= RUNS_MAX:
            return
        by = chance.choice(
            ["main", *(item.session for item in self.of("started") if item.depth < 4)]
        )
        wishes: dict[str, bool] = {}
        # Mostly runs that are not over: a dependency on an ended run is resolved at once.
        open_ones = [life.name for life in lives.values() if not life.is_released]
        for _ in range(chance.choice((0, 1, 1, 2, 3)) if lives else 0):
            among = open_ones if open_ones and chance.random() < 0.9 else [*lives]
            wishes.setdefault(chance.choice(among), chance.random() < 0.7)
        name, wished = f"r{len(lives)}", [*wishes.items()]
        answered = self.log.answer(name, by, dependencies=self._bound(wished))
        self.log.record(answered.changes)
        expected = self.tree.rule_against_waiting(by, wished)
        assert (answered.refusal.rule if answered.refusal else None) == expected
        self.tree.add(name, by, expected, wishes=wished)
        if expected is not None:
            self.refusals.append(expected)

    def _bound(self, wishes: Sequence[Wish]) -> tuple[Dependency, ...]:
        return tuple(
            Dependency(
                run_id=self.log.run(name).run_id,
                name=name,
                via="dependsOn",
                require="success" if must else "ended",
            )
            for name, must in wishes
        )

    def look(self, life: Life) -> None:
        run = self.log.run(life.name)
        if life.stage == "requested":
            try:
                self.log.create(life.name)
            except DependencyFailed:
                self.log.refuse(life.name)
        else:
            failed = evaluate_dependencies(run, self.log.fold.runs).failed
            culprit = failed.run_id if failed is not None else None
            error = ref("why") if failed is not None else None
            command = SettleDependencies(lane="subagent", culprit=culprit, error=error)
            self.log.tell(life.name, command)
        self.tree.look(life)
        self.agrees(life)

    def agrees(self, life: Life) -> None:
        run = self.log.run(life.name)
        assert (run.stage, run.outcome) == (life.stage, life.outcome), life
        if life.stage == WAITING:
            assert {self.log.names[wait] for wait in run.waits_for or ()} == life.unmet
            assert run.holder is None
        if life.stage == "queued":
            assert run.waits_for is None

    def start(self, life: Life) -> None:
        self.log.tell(life.name, ask.claim())
        self.log.tell(life.name, ask.start(self.log.run(life.name).epoch))
        self.tree.ask(life, "claim")
        self.tree.ask(life, "start")

    def end(self, life: Life, outcome: RunOutcome) -> None:
        self.log.tell(life.name, ask.end(self.log.run(life.name).epoch, outcome=outcome))
        self.tree.ask(life, "end")
        life.outcome = outcome

    def announce(self, life: Life) -> None:
        if not life.is_yielded and self.tree.permits(life, "announce"):
            self.log.announce(life.name)
            self.tree.ask(life, "announce")

    def yield_turn(self, life: Life) -> None:
        """Yield the turn of a run, and continue its session."""
        if self.tree.unsettled(life.session):
            self.log.tell(life.name, continued.yield_run())
            self.end(life, "success")
            life.is_yielded = True

    def stop(self, life: Life) -> None:
        self.log.tell(life.name, ask.stop())
        self.tree.ask(life, "stop")
        self.agrees(life)

    def refuse(self, life: Life) -> None:
        self.log.refuse(life.name)
        self.tree.ask(life, "refuse")

    def message(self, life: Life) -> None:
        """Send a message, also to a session that has yielded."""
        result = messages.judged(self.tree, life.session)
        may = result == messages.GOES_ON and self.tree.last(life.session) is life
        if may and len(self.tree.lives) < RUNS_MAX and self.log.run(life.name).started_at:
            self.go_on(life)

    def go_on(self, life: Life) -> None:
        name = f"r{len(self.tree.lives)}"
        self.log.message(name, life.name)
        assert messages.send(self.tree, name, life.session) == messages.GOES_ON

    def act(self, act_name: str, chance: Random) -> None:
        if act_name == "spawn":
            self.spawn(chance)
        elif found := self.of(*STAGES[act_name]):
            more = [chance.choice(OUTCOMES)] if act_name == "end" else []
            getattr(self, act_name)(chance.choice(found), *more)

    def come_to_rest(self) -> None:
        """Continue everything that can continue, until nothing changes."""
        before: list[object] = []
        lives = self.tree.lives
        while before != (now := [(run.stage, {*run.unmet}) for run in lives.values()]):
            before = [*now]
            for life in self.of("requested", WAITING):
                self.look(life)
            for life in self.of("queued"):
                self.start(life)
            for life in self.of("started"):
                self.end(life, "success")
            for life in self.of("ended"):
                if life.is_yielded and not self.tree.unsettled(life.session):
                    self.go_on(life)
                self.announce(life)


@examples(80)
@given(st.integers(0, 2**64))
def test_log_agrees_with_the_model_of_dependencies(seed: int) -> None:
    # Hypothesis would draw mostly the first choice, so that few runs wait. `Random` draws evenly.
    chance, waiting = Random(seed), Waiting()
    for act_name in chance.choices([*WEIGHTS], weights=[*WEIGHTS.values()], k=ACTS):
        waiting.act(act_name, chance)
    lives = waiting.tree.lives
    for life in lives.values():
        waiting.agrees(life)
    waiting.come_to_rest()
    assert [run.name for run in lives.values() if run.stage not in DONE] == []
    for life in lives.values():
        waiting.agrees(life)
    assert not lives or waiting.log.counted("main") == []
