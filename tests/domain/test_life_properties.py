"""Whatever is asked of a tree of runs, in whatever order: what holds all along its log."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from application.projections.fold import Fold
from domain.event_types import EVENT_TYPES, TYPE_OF, AnyEvent
from domain.refusals import Rejected, SessionIsClosed
from domain.run.commands import RunCommand
from domain.run.events import AnnouncementAcknowledged, RunArchived, SpawnRefused
from domain.run.state import Run
from domain.session.events import ChildAdmitted, ChildReleased, ChildSettled
from domain.session.state import Session
from tests.support import run_commands as ask
from tests.support.family_log import FamilyLog, Recorded, child_key, policy
from tests.support.family_model import (
    ENDED,
    HELD,
    OTHER_AGENT,
    RECORDED,
    REFUSED,
    Life,
    Tree,
    next_step,
)

COMMANDS: dict[str, Callable[[Run, int], RunCommand]] = {
    "resume": lambda run, epoch: ask.resume(epoch),
    "resolve": lambda run, epoch: ask.resolve(epoch),
    "override": lambda run, epoch: ask.resolve(epoch, override_to=OTHER_AGENT),
    "prepare": lambda run, epoch: ask.prepare(epoch, child_session_key=child_key(run.run_id)),
    "create": lambda run, epoch: ask.create(epoch, depth=run.depth),
    "refuse": lambda run, epoch: ask.refuse(epoch),
    "start": lambda run, epoch: ask.start(epoch),
    "end": lambda run, epoch: ask.end(epoch),
    "stop": lambda run, epoch: ask.stop(),
    "announce": lambda run, epoch: ask.announce(),
    "skip": lambda run, epoch: ask.announce(disposition="skipped", text=None),
    "acknowledge": lambda run, epoch: ask.acknowledge(),
    "archive": lambda run, epoch: ask.archive(),
}
KINDS = (*COMMANDS, "claim", "take over")
PICK = st.integers(min_value=0, max_value=99)
LIMITS = st.none() | st.tuples(st.integers(1, 4), st.integers(2, 3))
States = tuple[int, dict[UUID, Run], dict[str, Session]]


class Lives(RuleBasedStateMachine):
    """Drives a tree through its log, beside a model of it."""

    @initialize(children=st.integers(1, 4), width=st.integers(1, 3), chain=st.integers(1, 3))
    def begin(self, children: int, width: int, chain: int) -> None:
        self.tree = Tree(max_children=children, max_depth=3, lane_width=width)
        self.log = FamilyLog(max_children=children, max_spawn_depth=3)
        self.seen: list[States] = []
        self.replaced: dict[str, list[int]] = {}
        for _ in range(chain):
            self.spawn(0, None)
            self.advance(0, 5)

    @rule(pick=PICK, limits=LIMITS)
    def spawn(self, pick: int, limits: tuple[int, int] | None) -> None:
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
        self.log.spawn(name, by)
        depth = self.tree.lives[by].depth + 1 if by in self.tree.lives else 1
        stage = "refused" if against else "requested"
        agent_id = self.tree.lives[by].agent_id if by in self.tree.lives else "main"
        self.tree.lives[name] = Life(name, by, depth, stage, agent_id, is_admitted=against is None)
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
            if kind is not None:
                self.tell(life, kind)

    @precondition(lambda self: self.tree.lives)
    @rule(pick=PICK, kind=st.sampled_from(KINDS))
    def ask(self, pick: int, kind: str) -> None:
        self.tell(self._life(pick), kind)

    @precondition(lambda self: self.tree.lives)
    @rule(pick=PICK, which=PICK)
    def ask_what_fits(self, pick: int, which: int) -> None:
        life = self._life(pick)
        fits = [kind for kind in KINDS if self.tree.permits(life, kind)]
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
        command = self._command(life, kind)
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
        for life in self.tree.lives.values():
            run = self.log.run(life.name)
            assert run.stage == life.stage
            assert run.agent_id == life.agent_id
            assert (run.outcome is not None) == (life.stage in ENDED)
            assert (run.refusal is not None) == (life.stage == "refused")
            if life.stage == "ended":
                assert (run.pending_descendants == 0) == self.tree.below_is_done(life.name)

    @invariant()
    def places_and_lanes_are_as_the_whole_tree_says(self) -> None:
        for name in self.tree.sessions():
            if self.log.key(name) not in self.log.fold.sessions:
                assert name == "main"
                continue
            assert self.log.counted(name) == self.tree.counted(name)
            if name != "main":
                archived = self.tree.lives[name].stage == "archived"
                assert (self.log.session(name).stage == "closed") == archived
                waits = [self.log.names[run] for run in self.log.session(name).unsettled]
                assert waits == self.tree.unsettled(name)
        for depth in (1, 2, 3):
            assert self.tree.running(depth) <= self.tree.lane_width

    def teardown(self) -> None:
        if not hasattr(self, "log"):
            return
        _replays(self.log.recorded, self.seen)
        _is_over_once(self.log.recorded)

    def _life(self, pick: int) -> Life:
        lives = list(self.tree.lives.values())
        return lives[-1 - pick % len(lives)]

    def _command(self, life: Life, kind: str) -> RunCommand:
        run = self.log.run(life.name)
        if kind not in ("claim", "take over"):
            return COMMANDS[kind](run, run.epoch)
        held = sum(
            1
            for one in self.log.fold.runs.values()
            if one.depth == run.depth and one.stage in ("queued", "started") and one.holder
        )
        return ask.claim(
            lane_width=self.tree.lane_width,
            lane_running=held,
            lost_epoch=run.epoch if kind == "take over" else None,
        )


def _replays(recorded: list[Recorded], seen: list[States]) -> None:
    """What was stored, read again from nothing, passes through every state that was seen."""
    fold = Fold((), ())
    states = {position: (runs, sessions) for position, runs, sessions in seen}
    for one in recorded:
        fold.apply(one.stream, _stored_and_read(one.event), one.stamp)
        if one.stamp.position in states:
            assert (fold.runs, fold.sessions) == states[one.stamp.position]


def _stored_and_read(event: AnyEvent) -> AnyEvent:
    read = EVENT_TYPES[TYPE_OF[type(event)]].model_validate_json(event.model_dump_json())
    assert read == event
    return read


def _is_over_once(recorded: list[Recorded]) -> None:
    """Nothing but its acknowledgement follows an archive; nobody is released or settled twice."""
    archived: set[str] = set()
    over: list[tuple[str, type[AnyEvent], UUID]] = []
    for one in recorded:
        assert one.stream not in archived or isinstance(one.event, AnnouncementAcknowledged)
        if isinstance(one.event, RunArchived):
            archived.add(one.stream)
        if isinstance(one.event, ChildReleased | ChildSettled):
            over.append((one.stream, type(one.event), one.event.run_id))
    assert len(over) == len(set(over))


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
