"""The first lives; `make simulate` plays any number of others. They are in a separate module, so
that one test process plays them while another does the rest.
"""

import pytest

from tests.support.tiers import nightly_but
from world.simulate import findings

SEEDS_OF_A_TEST = 100
FIRST, SEEDS, SEEDS_OF_THE_GATE = 21, 2_000, 300
"""The seeds before are played in `test_simulation`, where each guarantee that is left out is found
within so many."""


@pytest.mark.long
@pytest.mark.parametrize(
    "begin",
    nightly_but(
        range(FIRST, FIRST + SEEDS, SEEDS_OF_A_TEST), range(FIRST, FIRST + SEEDS_OF_THE_GATE)
    ),
)
def test_no_life_breaks_a_rule(begin: int) -> None:
    assert findings(range(begin, begin + SEEDS_OF_A_TEST)) == {}
