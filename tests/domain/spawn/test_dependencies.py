"""The runs that a spawn waits for."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.run.commands import SettleDependencies
from domain.run.facts import Dependency, DependencyNeeds, RunOutcome
from domain.spawn.dependencies import (
    DependencyFailed,
    dependency_verdict,
    evaluate_dependencies,
    find_cycle,
    linked_runs,
)
from domain.spawn.request import merge_dependencies
from domain.values.refusals import ReadAgain
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.storytelling import ref, run_id, run_of
from tests.support.builders.waiting_runs import dependency
from tests.support.models.dependency_model import Model, Node, State, Wish
from tests.support.tiers import examples

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


def test_a_run_waits_until_all_that_it_depends_on_are_done() -> None:
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


def test_a_run_whose_dependencies_are_done_is_queued_at_once() -> None:
    log = FamilyLog()
    log.begin("a")
    log.end("a")
    log.spawn("after", dependencies=on(log, "a"))
    assert log.create("after")[-2:] == ["run after DependencyMet", "run after RunQueued"]
    assert log.run("after").waits_for is None


def test_a_run_that_waits_takes_a_place_and_gives_it_back_when_it_is_in_vain() -> None:
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


def test_a_run_cannot_be_created_when_one_that_it_depends_on_has_failed() -> None:
    log = FamilyLog()
    log.begin("a")
    log.spawn("after", dependencies=on(log, "a"))
    log.spawn("anyway", dependencies=on(log, "a", require="ended"))
    log.tell("a", ask.end(log.run("a").epoch, outcome="timeout"))
    with pytest.raises(DependencyFailed, match="ended as timeout") as caught:
        log.create("after")
    assert caught.value.dependency.name == "a"
    assert log.create("anyway")[-1] == "run anyway RunQueued"


def test_one_that_waits_can_be_stopped() -> None:
    log = FamilyLog()
    log.begin("a")
    log.spawn("after", dependencies=on(log, "a"))
    log.create("after")
    assert log.tell("after", ask.stop()) == ["run after RunEnded", "session main ChildReleased"]
    assert settle(log, "after") == []


@pytest.mark.parametrize(
    ("history", "with_success", "with_any_end"),
    [
        (past.a_queued_run(), "waits", "waits"),
        (past.a_started_run(), "waits", "waits"),
        (past.an_ended_run_with_pending_descendants(), "waits", "waits"),
        (
            (*past.a_started_run(), past.ended(outcome="error", pending_descendants=1)),
            "failed",
            "waits",
        ),
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


# Whether a spawn may wait for what it is asked to: rings, failures, and what stands between.


def refused(log: FamilyLog, name: str, by: str, *names: str) -> tuple[str, str] | None:
    """The rule and the text, with the names of the runs in place of their ids."""
    answered = log.answer(name, by, dependencies=on(log, *names))
    log.record(answered.changes)
    if answered.refusal is None:
        return None
    text = answered.refusal.text
    for known, called in log.names.items():
        text = text.replace(str(known), called)
    return answered.refusal.rule, text


def test_nobody_waits_for_its_own_run_or_one_above_it() -> None:
    log = FamilyLog()
    log.begin("a")
    log.begin("aa", "a")
    for name in ("a", "aa"):
        told = refused(log, f"after {name}", "aa", name)
        assert told is not None
        assert told[0] == "dependency_cycle"
        assert told[1].endswith("own run or one above it, and those end after what they spawn")
    assert log.counted("aa") == []


def test_spawn_judged_below_an_older_run_is_read_again() -> None:
    log = FamilyLog()
    log.begin("a")
    log.finish("a")
    log.go_on("newest", "a")
    with pytest.raises(ReadAgain, match="went on meanwhile"):
        log.answer("b", "a", dependencies=on(log, "newest"), ancestors=(log.run("a").run_id,))
    told = refused(log, "b", "a", "newest")
    assert told is not None
    assert told[0] == "dependency_cycle"


def test_a_ring_through_others_is_told_with_the_way() -> None:
    log = FamilyLog()
    for name in "abc":
        log.begin(name)
    log.spawn("w", dependencies=on(log, "b"))
    assert refused(log, "in a", "a", "w") is None
    assert refused(log, "in b", "b", "a") == (
        "dependency_cycle",
        'dependsOn names "a" (run a), which waits, by run in a → run w, for run b above this spawn:'
        " each would wait for the other for ever",
    )
    assert refused(log, "in b too", "b", "c") is None


def yield_and_go_on(log: FamilyLog, name: str, newest: str) -> None:
    """The session of a run goes on in its place, while its children are at work."""
    log.tell(name, continued.yield_run())
    log.end(name)
    log.go_on(newest, name)


def test_a_session_that_went_on_waits_for_what_it_spawned_before() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("b")
    log.spawn("x", "s", dependencies=on(log, "b"))
    yield_and_go_on(log, "s", "newest")
    assert refused(log, "y", "b", "newest") == (
        "dependency_cycle",
        'dependsOn names "newest" (run newest), which waits, by run x, for run b above this spawn:'
        " each would wait for the other for ever",
    )


def test_what_waits_for_an_older_run_waits_no_longer_once_its_session_went_on() -> None:
    log = FamilyLog()
    for name in "sb":
        log.begin(name)
    log.begin("child", "s")
    log.spawn("w", dependencies=on(log, "s"))
    assert refused(log, "in s", "s", "w") is not None
    yield_and_go_on(log, "s", "newest")
    assert refused(log, "in newest", "newest", "w") is None
    assert refused(log, "behind the older", "newest", "s") is None


def test_nobody_waits_for_the_newest_run_of_a_session_above() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("c", "s")
    yield_and_go_on(log, "s", "newest")
    told = refused(log, "z", "c", "newest")
    assert told is not None
    assert told[0] == "dependency_cycle"
    assert told[1].endswith("own run or one above it, and those end after what they spawn")


def test_run_above_is_waited_for_once_it_is_over() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("c", "s")
    assert refused(log, "too early", "c", "s") is not None
    yield_and_go_on(log, "s", "newest")
    assert refused(log, "after s", "c", "s") is None


def test_a_session_that_is_announced_waits_for_nothing_that_its_children_do_later() -> None:
    log = FamilyLog(max_spawn_depth=4)
    for name in "sb":
        log.begin(name)
    log.begin("c", "s")
    log.begin("d", "c")
    log.finish("d", "c")
    log.go_on("later", "d")
    log.spawn("x", "later", dependencies=on(log, "b"))
    assert refused(log, "y", "b", "s") is None
    assert refused(log, "z", "b", "later") is not None


def test_what_is_met_or_refused_closes_no_ring() -> None:
    log = FamilyLog()
    for name in "ab":
        log.begin(name)
    log.spawn("w", dependencies=on(log, "b"))
    log.spawn("x", dependencies=on(log, "b"))
    log.refuse("x")
    told = refused(log, "in b", "b", "x")
    assert told is not None
    assert told[0] == "dependency_failed"
    assert refused(log, "in b again", "b", "w") is not None
    log.end("b")
    log.create("w")
    assert refused(log, "behind", "a", "w") is None


def test_each_run_is_waited_for_once_and_as_strictly_as_anybody_asks() -> None:
    one = Dependency(run_id=run_id(1), name="x", via="dependsOn", require="ended")
    same = Dependency(run_id=run_id(1), name="x", via="chainAfter")
    other = Dependency(run_id=run_id(2), name="y", via="chainAfter", require="ended")
    assert merge_dependencies([one, same, other]) == (same, other)


def test_a_run_that_was_not_read_is_not_judged() -> None:
    log = FamilyLog()
    missing = Dependency(run_id=run_id(77), name="x", via="dependsOn")
    with pytest.raises(ReadAgain):
        log.answer("after", "main", dependencies=(missing,))


def test_a_way_is_found_once_through_many_that_wait_for_each_other() -> None:
    log = FamilyLog(max_children=100)
    log.begin("first")
    log.begin("other")
    before = ["first"]
    for number in range(8):
        names = [f"{number} {letter}" for letter in "abcd"]
        for name in names:
            log.spawn(name, dependencies=on(log, *before))
        before = names
    waiting = [one for one in log.fold.runs.values() if one.dependencies]
    target, runs = [log.run("7 a").run_id], log.fold.runs
    path = find_cycle([log.run("first").run_id], target, waiting, runs)
    assert path is not None
    assert [log.names[one] for one in path][::8] == ["7 a", "first"]
    assert len(path) == 9
    assert find_cycle([log.run("other").run_id], target, waiting, runs) is None


# Whatever waits for whatever, in whichever order it ends: the log says what a plain model says, and
# when all that can go on has gone on, nobody waits any more.


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
STATES: dict[str, tuple[State, ...]] = {
    "look": ("prepared", "waiting"),
    "start": ("queued",),
    "end": ("started",),
    "announce": ("ended",),
    "stop": ("prepared", "waiting", "queued"),
    "refuse": ("prepared",),
    "yield_turn": ("started",),
    "message": ("announced", "ended"),
}


class Tree:
    """The log and the model, told the same."""

    def __init__(self) -> None:
        self.log = FamilyLog(max_children=100, max_spawn_depth=4)
        self.model = Model()
        self.refusals: list[str] = []

    def of(self, *states: State) -> list[Node]:
        return [one for one in self.model.nodes.values() if one.state in states]

    def spawn(self, chance: Random) -> None:
        known = list(self.model.nodes)
        if len(known) >= RUNS_MAX:
            return
        parents = [None, *(one for one in self.of("started") if len([*one.above]) < 3)]
        parent = chance.choice(parents)
        wishes: dict[str, bool] = {}
        # Mostly of those that are not done: of the others there is little to be said.
        open_ones = [one.name for one in self.of_all() if not one.is_done]
        for _ in range(chance.choice((0, 1, 1, 2, 3)) if known else 0):
            among = open_ones if open_ones and chance.random() < 0.9 else known
            wishes.setdefault(chance.choice(among), chance.random() < 0.7)
        name = f"r{len(known)}"
        answered = self.log.answer(
            name, parent.name if parent else "main", dependencies=self._bound([*wishes.items()])
        )
        self.log.record(answered.changes)
        expected = self.model.judge(parent, [*wishes.items()])
        assert (answered.refusal.rule if answered.refusal else None) == expected
        self.model.add(name, parent, [*wishes.items()], refused=expected is not None)
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

    def look(self, node: Node) -> None:
        run = self.log.run(node.name)
        if node.state == "prepared":
            try:
                self.log.create(node.name)
            except DependencyFailed:
                self.log.refuse(node.name)
        else:
            failed = evaluate_dependencies(run, self.log.fold.runs).failed
            culprit = failed.run_id if failed is not None else None
            error = ref("why") if failed is not None else None
            command = SettleDependencies(lane="subagent", culprit=culprit, error=error)
            self.log.tell(node.name, command)
        self.model.look(node)
        self.agrees(node)

    def agrees(self, node: Node) -> None:
        run = self.log.run(node.name)
        stage = {"waiting": "session-created", "prepared": "requested"}.get(node.state, node.state)
        assert (run.stage, run.outcome) == (stage, node.outcome), node
        if node.state == "waiting":
            assert {self.log.names[one] for one in run.waits_for or ()} == node.unmet
            assert run.holder is None
        if node.state == "queued":
            assert run.waits_for is None

    def start(self, node: Node) -> None:
        self.log.tell(node.name, ask.claim())
        self.log.tell(node.name, ask.start(self.log.run(node.name).epoch))
        node.state = "started"

    def end(self, node: Node, outcome: RunOutcome) -> None:
        self.log.tell(node.name, ask.end(self.log.run(node.name).epoch, outcome=outcome))
        node.state, node.outcome = "ended", outcome

    def announce(self, node: Node) -> None:
        if not node.session.at_work and not node.is_yielded:
            self.log.announce(node.name)
            node.state = "announced"

    def yield_turn(self, node: Node) -> None:
        """It ends, and its session goes on in its place."""
        if node.session.at_work:
            self.log.tell(node.name, continued.yield_run())
            self.end(node, "success")
            node.is_yielded = True

    def stop(self, node: Node) -> None:
        self.log.tell(node.name, ask.stop())
        if node.state in ("waiting", "queued"):
            node.state, node.outcome = "ended", "stopped"
        else:
            node.state = "refused"
        self.agrees(node)

    def message(self, node: Node) -> None:
        """The session goes on, though its children are at work if it has yielded."""
        is_full = len(self.model.nodes) >= RUNS_MAX
        if is_full or not self.model.takes_message(node) or not self.log.run(node.name).started_at:
            return
        self.go_on(node)

    def go_on(self, node: Node) -> None:
        name = f"r{len(self.model.nodes)}"
        self.log.message(name, node.name)
        self.model.go_on(name, node)

    def act(self, what: str, chance: Random) -> None:
        if what == "spawn":
            return self.spawn(chance)
        found = self.of(*STATES[what])
        if not found:
            return None
        node = chance.choice(found)
        if what == "end":
            return self.end(node, chance.choice(OUTCOMES))
        if what != "refuse":
            return getattr(self, what)(node)  # type: ignore[no-any-return]
        self.log.refuse(node.name)
        node.state = "refused"
        return None

    def come_to_rest(self) -> None:
        """Everything goes on that can, until nothing does."""
        before: list[object] = []
        while before != (now := [(one.state, {*one.unmet}) for one in self.of_all()]):
            before = [*now]
            for node in self.of("prepared", "waiting"):
                self.look(node)
            for node in self.of("queued"):
                self.start(node)
            for node in self.of("started"):
                self.end(node, "success")
            for node in self.of("ended"):
                if node.is_yielded and not node.session.at_work:
                    self.go_on(node)
                self.announce(node)

    def of_all(self) -> list[Node]:
        return list(self.model.nodes.values())


@examples(80)
@given(st.integers(0, 2**64))
def test_the_log_agrees_with_the_model_and_nobody_waits_for_ever(seed: int) -> None:
    # Drawn one by one, most choices would be the first: then hardly anybody waits for anybody.
    chance, tree = Random(seed), Tree()
    for what in chance.choices([*WEIGHTS], weights=[*WEIGHTS.values()], k=ACTS):
        tree.act(what, chance)
    for node in tree.of_all():
        tree.agrees(node)
    tree.come_to_rest()
    assert [one.name for one in tree.of_all() if not one.is_settled] == []
    for node in tree.of_all():
        tree.agrees(node)
    assert tree.of_all() == [] or tree.log.counted("main") == []
