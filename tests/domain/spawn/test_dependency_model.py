"""Whatever waits for whatever, in whichever order it ends: the log says what a plain model says,
and when all that can go on has gone on, nobody waits any more."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.run.commands import SettleDependencies
from domain.run.facts import Dependency, RunOutcome
from domain.spawn.dependencies import DependencyFailed, evaluate_dependencies
from tests.support.builders import continued_runs as sent
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.storytelling import ref
from tests.support.models.dependency_model import Model, Node, State, Wish
from tests.support.tiers import examples

pytestmark = pytest.mark.long

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
            self.log.tell(node.name, sent.yield_run())
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
