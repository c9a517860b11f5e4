"""However children are asked for and agents are configured, at whatever depth and after whatever
was changed, stopped or lost meanwhile: each child's plan, or the rule that refuses it, is what a
plain model says, to the letter."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.domain.spawn.test_spawn_properties import PICK, Spawns
from tests.support.builders.configured_spawns import Rules
from tests.support.models.planned_places import SHAKEN, STATES
from tests.support.models.random_plans import PLANNING, WISHES
from tests.support.models.random_spawns import LENIENT, PLAIN
from tests.support.models.spawn_model import Asked
from tests.support.tiers import examples

# What fails is made small for up to five minutes, and an alarm meanwhile would be told instead.
pytestmark = [pytest.mark.timeout(400), pytest.mark.long]

NEAR = st.sampled_from([0, 1, 2, 3, -1, -1]) | PICK
STEPS = st.sampled_from([2, 2, 2, 4, 0])


class Plans(Spawns):
    """The same trees. Admission lets nearly all pass, and most are prepared at once."""

    @initialize(first=PLANNING)
    def begin(self, first: Rules) -> None:
        self._begin(LENIENT)
        self.reload(first)

    @rule(rules=PLANNING)
    def reload(self, rules: Rules) -> None:
        self._reload(rules)

    @rule(pick=NEAR, asked=WISHES, steps=STEPS)
    def spawn(self, pick: int, asked: Asked, steps: int) -> None:
        self._ask(self.model.requesters(), pick, asked, steps)

    def _ask(self, names: list[str], pick: int, asked: Asked, steps: int) -> None:
        self._spawn(names[-1 - pick % len(names)], asked)
        if self.model.tree.lives:
            self.advance(0, steps)

    @rule(more=st.lists(st.tuples(NEAR, WISHES, STEPS), min_size=2, max_size=6))
    def spawn_many(self, more: list[tuple[int, Asked, int]]) -> None:
        for pick, asked, steps in more:
            self.spawn(pick, asked, steps)

    @rule(state=st.sampled_from(STATES), pick=NEAR, asked=st.just(PLAIN) | WISHES)
    def move_folders(self, state: str, pick: int, asked: Asked) -> None:
        """Somebody who works in one of them asks for a child then."""
        self.model.places.put(state)
        self.disk.put(state)
        names = [name for name in self.model.requesters() if self._works_there(name)]
        self._ask(names or self.model.requesters(), pick, asked, 2)

    def _works_there(self, name: str) -> bool:
        folder = self.model.seen[name].folder if name in self.model.seen else None
        return SHAKEN in (folder or "") and self.model.closed(name) is None


TestPlans = Plans.TestCase
TestPlans.settings = examples(40, stateful_step_count=40)
