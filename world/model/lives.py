"""State machine that drives a random tree of sessions through its log, and compares it with a
model.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from domain.run.commands import RunCommand
from domain.run.events import MessageReceived, SpawnRefused
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from domain.session.events import ChildAdmitted
from domain.spawn.continuation import RunIsActive
from domain.values.refusals import ReadAgain, Rejected, SessionIsClosed
from tests.support.builders import run_commands as ask
from tests.support.builders.continued_runs import close
from tests.support.builders.family_log import (
    FamilyLog,
    ask_for_all,
    child_key,
    policy,
    tell_all,
)
from world.model import messages
from world.model.log_invariants import (
    States,
    is_over_once,
    is_put_away_in_turn,
    places_agree,
    replays,
    runs_agree,
)
from world.model.tree import HELD, OTHER_AGENT, RECORDED, REFUSED, Life, Tree, next_step

STEPS_MAX = 8
PICK = st.integers(min_value=0, max_value=99)
FATES = ("create", "refuse", "stop")
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
    "close": lambda run, epoch: close(),
}
MANNERS = {
    "plain": SpawnOptions(),
    "delete": SpawnOptions(cleanup="delete"),
    "lasting": SpawnOptions(mode="session"),
}
ERRORS: dict[str, type[Rejected]] = {
    messages.CLOSED: SessionIsClosed,
    messages.ACTIVE: RunIsActive,
}


def asked(log: FamilyLog, life: Life, kind: str, lane_width: int) -> RunCommand:
    """Return a command of this kind, given by the holder of the run."""
    run = log.run(life.name)
    if kind not in ("claim", "take over"):
        return COMMANDS[kind](run, run.epoch)
    held = sum(
        1
        for item in log.fold.runs.values()
        if item.depth == run.depth and item.stage in ("queued", "started") and item.holder
    )
    return ask.claim(
        lane_width=lane_width,
        lane_running=held,
        lost_epoch=run.epoch if kind == "take over" else None,
    )


KINDS = (*COMMANDS, "claim", "take over")
GOING_ON = tuple(kind for kind in KINDS if kind not in ("archive", "close"))
LIMITS = st.none() | st.tuples(st.integers(1, 4), st.integers(2, 3))


class Lives(RuleBasedStateMachine):
    """State machine that drives a tree through its log, and compares it with a model."""

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
        self.tree.add(name, by, against, manner=manner)
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
        """Give a command, and compare its effect with the model."""
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
        """Assert that an act is refused and changes nothing."""
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

    @precondition(lambda self: len(self.tree.sessions()) > 1)
    @rule(pick=PICK, as_read=st.booleans(), waits=st.sampled_from([True, True, False]))
    def message(self, pick: int, as_read: bool, waits: bool) -> None:
        """Send a message, also based on an old read of the session. Mostly wait first until the
        session is announced, as callers should.
        """
        session = self._session(pick)
        if waits:
            self._finish(session)
        self._send(session, as_read=as_read)

    def _send(self, session: str, *, as_read: bool = False) -> None:
        name = f"r{len(self.log.names) + 1}"
        read = self.read.get(session) if as_read else None
        self.read[session] = self.log.last(session)
        if read is not None and read.run_id != self.log.session(session).run_id:
            self.refused(lambda: self.log.message(name, session, last=read), ReadAgain)
            return
        last = self.tree.last(session)
        assert last is not None
        count = len(self.tree.counted(last.by))
        answer = messages.send(self.tree, name, session)
        if answer in ERRORS:
            self.refused(lambda: self.log.message(name, session, last=read), ERRORS[answer])
            return
        self.log.message(name, session, last=read)
        received = next(
            event for event in reversed(self.log.recorded) if event.stamp.version == 1
        ).event
        assert isinstance(received, MessageReceived)
        facts = received.facts
        assert (facts.active_children, facts.max_children) == (count, self.tree.max_children)
        self.appended()

    def _finish(self, session: str) -> None:
        """Announce the runs that the session waits for, then its own, unless a lane is full."""
        for name in self.tree.unsettled(session):
            self._finish(self.tree.lives[name].session)
        self._bring(self.tree.last(session), "announced")

    def _bring(self, life: Life | None, stage: str) -> None:
        """Advance a run to this stage, unless something prevents it."""
        for _ in range(STEPS_MAX):
            kind = next_step(life) if life is not None else None
            if life is not None and kind not in (None, "archive") and life.stage != stage:
                self.tell(life, kind)

    @precondition(lambda self: len(self.tree.sessions()) > 1)
    @rule(pick=PICK, steps=st.integers(0, 4))
    def converse(self, pick: int, steps: int) -> None:
        """Send two messages and advance the session after each."""
        for _ in range(2):
            self.message(pick, as_read=False, waits=True)
            self.advance(0, steps)

    @precondition(lambda self: len(self.tree.sessions()) > 1)
    @rule(pick=PICK, which=st.sampled_from([1, 2, 3]))
    def stop_session(self, pick: int, which: int) -> None:
        """Close a session, then stop its newest run, then all below it; rarely, so that sessions
        continue.
        """
        if which > 1:
            return
        session = self._session(pick)
        last = self.tree.last(session)
        assert last is not None
        self.tell(last, "close")
        stopping, below = [last], [session]
        while below:
            children = self.tree.children(below.pop())
            stopping += children
            below += {life.session for life in children}
        for life in stopping:
            self.tell(life, "stop")

    @precondition(lambda self: self.tree.lives)
    @rule(pick=PICK)
    def put_away_some_that_is_due(self, pick: int) -> None:
        lives = [run for run in self.tree.lives.values() if run.stage == "announced"]
        due = [life for life in lives if messages.is_due(life)]
        if due:
            self.tell(due[-1 - pick % len(due)], "archive")

    @precondition(lambda self: len(self.tree.sessions()) > 2)
    @rule(pick=PICK, waits=st.booleans(), steps=st.integers(0, 4))
    def message_below_an_orchestrator_that_has_ended(
        self, pick: int, waits: bool, steps: int
    ) -> None:
        """Send a message to a child whose requester waits for another child, is about to be
        announced, or was announced.
        """
        below = [
            session for session in self.tree.sessions()[1:] if self.tree.lives[session].by != "main"
        ]
        if not below:
            return
        session = below[pick % len(below)]
        self._finish(session)
        above = self.tree.lives[session].by
        last = self.tree.last(above)
        if steps > 0:
            self.spawn(-1 - self.tree.sessions().index(above), None)
            self.advance(0, steps)
        self._bring(last, "announced" if waits else "ended")
        self._send(session)
        self._send(above)
        if steps > 2:
            self._finish(above)

    def _session(self, pick: int) -> str:
        sessions = self.tree.sessions()[1:]
        return sessions[-1 - pick % len(sessions)]

    @rule(pick=PICK, count=st.integers(1, 4), fate=st.sampled_from(FATES))
    def batch(self, pick: int, count: int, fate: str) -> None:
        """Request a batch: all its runs are admitted or none, and created, refused or stopped in
        one append.
        """
        sessions = self.tree.sessions()
        by = sessions[-1 - pick % len(sessions)]
        first = len(self.log.names) + 1
        names = [f"r{first + index}" for index in range(count)]
        if not self.tree.spawns(by):
            self.refused(lambda: ask_for_all(self.log, names, by), SessionIsClosed)
            return
        against = self.tree.rule_against(by, places=count)
        taken = len(self.tree.counted(by))
        ask_for_all(self.log, names, by)
        ends = [event.event for event in self.log.recorded[-count:]]
        if against:
            assert [end.rule for end in ends if isinstance(end, SpawnRefused)] == [against] * count
        else:
            places = [end.active_children for end in ends if isinstance(end, ChildAdmitted)]
            assert places == [*range(taken, taken + count)]
        lives = [self.tree.add(name, by, against) for name in names]
        self.appended()
        if against is None:
            self._decided(lives, fate)

    def _decided(self, lives: Sequence[Life], fate: str) -> None:
        for life in lives:
            self.tell(life, "resolve")
            if fate == "create":
                self.tell(life, "prepare")
        width = self.tree.lane_width
        commands = {life.name: (asked(self.log, life, fate, width),) for life in lives}
        for life in lives:
            assert self.tree.ask(life, fate) == RECORDED
        tell_all(self.log, commands)
        self.appended()
