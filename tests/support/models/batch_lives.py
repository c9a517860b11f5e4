"""Sessions of a random tree that ask for several children at once."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import rule

from domain.run.events import SpawnRefused
from domain.session.events import ChildAdmitted
from domain.values.refusals import SessionIsClosed
from tests.support.builders.family_log import ask_for_all, tell_all
from tests.support.models.family_model import RECORDED, Life
from tests.support.models.life_requests import asked
from tests.support.models.message_lives import PICK, ConversingLives

FATES = ("create", "refuse", "stop")


class BatchedLives(ConversingLives):
    """Batches in a tree that is driven through its log, beside a model of it."""

    @rule(pick=PICK, count=st.integers(1, 4), fate=st.sampled_from(FATES))
    def batch(self, pick: int, count: int, fate: str) -> None:
        """All are admitted or none; all are created, refused or stopped in one append."""
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
        ends = [one.event for one in self.log.recorded[-count:]]
        if against:
            assert [one.rule for one in ends if isinstance(one, SpawnRefused)] == [against] * count
        else:
            places = [one.active_children for one in ends if isinstance(one, ChildAdmitted)]
            assert places == [*range(taken, taken + count)]
        lives = [self._added(name, by, against) for name in names]
        self.appended()
        if against is None:
            self._decided(lives, fate)

    def _added(self, name: str, by: str, against: str | None) -> Life:
        lives = self.tree.lives
        depth = lives[by].depth + 1 if by in lives else 1
        agent_id = lives[by].agent_id if by in lives else "main"
        stage = "refused" if against else "requested"
        life = Life(name, by, depth, stage, agent_id, is_admitted=against is None)
        above = self.tree.last(by)
        life.above = above.name if above is not None else None
        lives[name] = life
        return life

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
