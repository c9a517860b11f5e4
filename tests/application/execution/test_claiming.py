"""Which runs of a lane are claimed."""

from collections.abc import Collection
from datetime import UTC, datetime

from application.execution.dispatch import decide_claims
from application.log.event_log import LaneFacts, World
from tests.support.builders.family_log import FamilyLog

WIDTH = 3


def claimed(running: int, *, among: Collection[str] | None = None) -> list[str]:
    """Who of three that wait is claimed when so many are running."""
    log = FamilyLog()
    for name in ("first", "second", "third"):
        log.spawn(name)
        log.create(name)
    waiting = tuple(log.run(name) for name in ("first", "second", "third"))
    world = World({}, {}, datetime(2026, 1, 1, tzinfo=UTC), LaneFacts(running, waiting))
    chosen = None if among is None else [log.run(name).run_id for name in among]
    return [log.names[one] for one in decide_claims(world, "server-1", WIDTH, chosen).result]


def test_as_many_are_claimed_as_there_is_room_for() -> None:
    assert [claimed(running) for running in (0, 2, 3)] == [
        ["first", "second", "third"],
        ["first"],
        [],
    ]


def test_of_chosen_ones_nobody_is_claimed_before_who_waits_longer() -> None:
    assert claimed(0, among=["first", "second"]) == ["first", "second"]
    assert claimed(0, among=["second", "third"]) == []
    assert claimed(2, among=["first", "second"]) == ["first"]
