"""Whatever is asked of a tree of runs, in whatever order: what holds all along its log."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from domain.run.events import SpawnRefused
from domain.run.state import Run
from domain.session.events import ChildAdmitted
from domain.values.refusals import Rejected, SessionIsClosed
from tests.support.builders.family_log import FamilyLog, policy
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
