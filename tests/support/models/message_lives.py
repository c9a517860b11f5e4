"""Sessions of a random tree that are sent messages, stopped and put away."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from domain.run.events import MessageReceived
from domain.run.state import Run
from domain.values.refusals import ReadAgain, Rejected
from tests.support.builders.family_log import FamilyLog
from tests.support.models import message_model as messages
from tests.support.models.family_model import Life, Tree, next_step
from tests.support.models.life_requests import ERRORS

STEPS_MAX = 8
PICK = st.integers(min_value=0, max_value=99)


class ConversingLives(RuleBasedStateMachine):
    """Messages to a tree that is driven through its log, beside a model of it. `read` is what
    somebody read of sessions some time ago."""

    tree: Tree
    log: FamilyLog
    read: dict[str, Run]

    def tell(self, life: Life, kind: str) -> None:
        """Ask, and compare what comes of it with the model."""
        raise NotImplementedError

    def refused(self, act: Callable[[], Any], error: type[Rejected] = Rejected) -> None:
        """It is turned down, and everything is as before."""
        raise NotImplementedError

    def appended(self) -> None:
        """Something was recorded."""
        raise NotImplementedError

    def spawn(self, pick: int, limits: tuple[int, int] | None, manner: str = "plain") -> None:
        """A session asks for a child."""
        raise NotImplementedError

    def advance(self, pick: int, steps: int) -> None:
        """A run goes on by so many steps."""
        raise NotImplementedError

    @precondition(lambda self: len(self.tree.sessions()) > 1)
    @rule(pick=PICK, as_read=st.booleans(), waits=st.sampled_from([True, True, False]))
    def message(self, pick: int, as_read: bool, waits: bool) -> None:
        """Also made from what somebody read of the session some time ago; mostly somebody waits
        until the session is announced, as he is told to."""
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
        told = messages.send(self.tree, name, session)
        if told in ERRORS:
            self.refused(lambda: self.log.message(name, session, last=read), ERRORS[told])
            return
        self.log.message(name, session, last=read)
        received = next(one for one in reversed(self.log.recorded) if one.stamp.version == 1).event
        assert isinstance(received, MessageReceived)
        facts = received.facts
        assert (facts.active_children, facts.max_children) == (count, self.tree.max_children)
        self.appended()

    def _finish(self, session: str) -> None:
        """Those that it waits for are announced, and then it is; unless a lane is full."""
        for name in self.tree.unsettled(session):
            self._finish(self.tree.lives[name].session)
        self._bring(self.tree.last(session), "announced")

    def _bring(self, life: Life | None, stage: str) -> None:
        """As far as this stage, unless something is in the way."""
        for _ in range(STEPS_MAX):
            kind = next_step(life) if life is not None else None
            if life is not None and kind not in (None, "archive") and life.stage != stage:
                self.tell(life, kind)

    @precondition(lambda self: len(self.tree.sessions()) > 1)
    @rule(pick=PICK, steps=st.integers(0, 4))
    def converse(self, pick: int, steps: int) -> None:
        """A message, what comes of it, and another."""
        for _ in range(2):
            self.message(pick, as_read=False, waits=True)
            self.advance(0, steps)

    @precondition(lambda self: len(self.tree.sessions()) > 1)
    @rule(pick=PICK, which=st.sampled_from([1, 2, 3]))
    def stop_session(self, pick: int, which: int) -> None:
        """It is closed first, then its newest run is stopped, then all below it. Not too often, or
        no session would go on."""
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
        lives = [one for one in self.tree.lives.values() if one.stage == "announced"]
        due = [one for one in lives if messages.is_due(one)]
        if due:
            self.tell(due[-1 - pick % len(due)], "archive")

    @precondition(lambda self: len(self.tree.sessions()) > 2)
    @rule(pick=PICK, waits=st.booleans(), steps=st.integers(0, 4))
    def message_below_an_orchestrator_that_has_ended(
        self, pick: int, waits: bool, steps: int
    ) -> None:
        """It may wait for another child, or be about to be announced, or have been."""
        below = [one for one in self.tree.sessions()[1:] if self.tree.lives[one].by != "main"]
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
