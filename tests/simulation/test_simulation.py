"""The whole application on virtual time: no seed breaks a rule, and what is left out shows."""

import pytest

from tests.simulation.simulate import play
from tests.support.memory.store import Fault

SEEDS_OF_A_TEST = 100
SEEDS_MAX = 150
"""A guarantee that is left out is found within so many."""


def _wrong(seeds: range) -> dict[int, tuple[str, ...]]:
    played = (play(seed) for seed in seeds)
    return {one.seed: one.wrong for one in played if one.wrong}


def test_a_seed_is_the_same_life_every_time() -> None:
    assert play(7) == play(7)


def test_servers_that_die_and_freeze_break_no_rule() -> None:
    assert _wrong(range(1, 21)) == {}


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_two_thousand_lives_break_no_rule(part: int) -> None:
    first = part * SEEDS_OF_A_TEST + 1
    assert _wrong(range(first, first + SEEDS_OF_A_TEST)) == {}


@pytest.mark.long
@pytest.mark.parametrize("fault", Fault)
def test_a_guarantee_that_is_left_out_is_found(fault: Fault) -> None:
    played = (play(seed, fault=fault) for seed in range(1, SEEDS_MAX + 1))
    assert any(one.wrong for one in played), f"{fault.name} was not found in {SEEDS_MAX} seeds"
