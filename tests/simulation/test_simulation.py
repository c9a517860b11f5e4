"""The whole application on virtual time: no seed breaks a rule, and a missing guarantee shows."""

from collections import Counter

import pytest

from tests.support.memory.store import LOCK_STEPS, Fault
from tests.support.tiers import nightly_but
from world.simulate import is_found, play
from world.simulation import virtual_time

SEEDS_MAX = 700
"""Number of seeds that find each missing guarantee: the rarest shows in one life of 240."""


def test_a_seed_is_the_same_life_every_time() -> None:
    seeds = range(1, 11)
    assert [play(seed) for seed in seeds] == [play(seed) for seed in seeds]


def test_servers_that_die_and_freeze_break_no_rule() -> None:
    lives = [play(seed) for seed in range(1, 61)]
    assert {life.seed: life.wrong for life in lives if life.wrong} == {}
    happened = sum((life.happened + life.killed_after for life in lives), Counter[str]())
    for step in LOCK_STEPS:
        assert happened[f"lock:{step}"] > 0, step
        assert happened[f"frozen after lock:{step}"] > 0, step


def test_a_life_that_comes_to_no_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "TURNS_MAX", 100)
    assert play(1).wrong == ("there is no end of it",)


@pytest.mark.long
@pytest.mark.parametrize("fault", nightly_but(Fault, [Fault.NO_EPOCH_FENCE]))
def test_a_guarantee_that_is_left_out_is_found(fault: Fault) -> None:
    found = any(is_found(fault, seed) for seed in range(1, SEEDS_MAX + 1))
    assert found, f"{fault.name} was not found in {SEEDS_MAX} seeds"
