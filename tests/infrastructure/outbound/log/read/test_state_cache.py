"""Size of the state cache."""

from typing import NamedTuple

import pytest

from infrastructure.outbound.log.read import state_cache
from infrastructure.outbound.log.read.state_cache import StateCache


class State(NamedTuple):
    version: int


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_cache, "STATES_BYTES_MAX", 100)


def remembered(cache: StateCache[str, State], keys: str) -> str:
    return "".join(cache.known(list(keys)))


def test_states_used_last_are_kept() -> None:
    cache = StateCache[str, State]()
    for key in "abc":
        cache.store(key, State(1), since=1, size_bytes=30)
    assert remembered(cache, "a") == "a"
    cache.store("d", State(1), since=2, size_bytes=50)
    assert remembered(cache, "abcd") == "ad"


def test_growing_state_takes_room_of_others() -> None:
    cache = StateCache[str, State]()
    for key in "abc":
        cache.store(key, State(1), since=1, size_bytes=30)
    cache.store("c", State(2), since=2, size_bytes=70)
    assert remembered(cache, "abc") == "bc"
    cache.store("c", State(3), since=3, size_bytes=20)
    cache.store("e", State(1), since=3, size_bytes=50)
    assert remembered(cache, "bce") == "bce"


def test_state_larger_than_all_room_is_not_kept() -> None:
    cache = StateCache[str, State]()
    cache.store("a", State(1), since=1, size_bytes=101)
    assert remembered(cache, "a") == ""
    cache.store("b", State(1), since=1, size_bytes=100)
    assert remembered(cache, "b") == "b"
