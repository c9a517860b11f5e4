"""Which runs of a lane are claimed."""

from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

from application.coordination.holder import Holder
from application.execution.dispatch import Claim, ClaimedRoom, Dispatcher, decide_claims
from application.log.envelope import Provenance
from application.log.event_log import LaneFacts, LaneQuery
from application.ports.registry import WaitingLane
from domain.run.events import RunClaimed
from domain.run.state import Run
from domain.spawn.batch import speculative
from domain.values.record import run_id_of
from infrastructure.outbound.log.append.batch import ChangedRuns, lane_after
from tests.support.builders.family_log import FamilyLog

WIDTH = 3
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Lane:
    """Three runs that wait in a lane."""

    def __init__(self) -> None:
        self.log = FamilyLog()
        for name in ("first", "second", "third"):
            self.log.spawn(name)
            self.log.create(name)
        self.runs = [self.log.run(name) for name in ("first", "second", "third")]

    def claimed(self, running: int) -> list[str]:
        """Who is claimed when so many are running."""
        facts = LaneFacts(running, tuple(self.runs))
        return [self.log.names[one] for one in decide_claims(facts, "server-1", WIDTH).result]

    def claimed_as_queued(self, running: int, waiting: list[Run]) -> list[str | None]:
        """Who of the three is claimed in the transaction that queues them."""
        return self.claimed_in(LaneFacts(running, tuple(waiting)))

    def claimed_in(self, facts: LaneFacts, take: int = WIDTH) -> list[str | None]:
        """Who of the three is claimed as they are queued, `take` at most, if this is so of their
        lane."""
        claim = Claim("server-1", WIDTH, uuid4(), Provenance())
        room = ClaimedRoom(
            executing=cast("Any", None),
            holder=Holder(lambda: "server-1"),
            claim=claim,
            query=LaneQuery("subagent", 1, take),
            children={},
            starts={},
        )
        parts = room.claims(facts, NOW, self.runs, is_as_prepared=False)
        ids = [run_id_of(stream) for part in parts for stream, _ in part.decision.changes]
        return [self.log.names[one] for one in ids if one is not None]


def test_as_many_are_claimed_as_there_is_room_for() -> None:
    lane = Lane()
    assert [lane.claimed(running) for running in (0, 2, 3)] == [
        ["first", "second", "third"],
        ["first"],
        [],
    ]
    assert [lane.claimed_as_queued(running, []) for running in (0, 2, 3)] == [
        ["first", "second", "third"],
        ["first"],
        [],
    ]


def test_one_decision_claims_no_more_runs_than_its_query_takes() -> None:
    assert Lane().claimed_in(LaneFacts(0, ()), take=2) == ["first", "second"]


def test_of_those_that_are_queued_nobody_is_claimed_before_who_waits_longer() -> None:
    lane, other = Lane(), FamilyLog()
    other.spawn("earlier")
    other.create("earlier")
    earlier = other.run("earlier")
    assert lane.claimed_as_queued(0, [earlier]) == []
    # All that were read of those who wait were claimed since, in the same transaction.
    read = LaneFacts(0, (earlier,), may_have_more=True)
    claimed = speculative(earlier, RunClaimed(holder="server-1", attempt=1))
    changes = ChangedRuns({earlier.run_id: earlier}, {earlier.run_id: claimed})
    facts = lane_after(("subagent", 1), read, changes)
    assert (facts.running, facts.next) == (1, ())
    assert lane.claimed_in(facts) == []


class AskedLanes:
    """The unit of work and the registry of a dispatcher: its lanes are these."""

    def __init__(self, *lanes: WaitingLane) -> None:
        self.lanes = lanes
        self.registry = self.configurations = self.configuration = self.subagent_defaults = self
        self.max_concurrent = WIDTH

    def current(self) -> "AskedLanes":
        return self

    async def waiting_lanes(self, *, width: int) -> tuple[WaitingLane, ...]:
        assert width == WIDTH
        return self.lanes


async def test_no_run_waits_once_the_database_names_no_lane() -> None:
    asked = AskedLanes(WaitingLane("subagent", 1, is_full=True))
    dispatcher = Dispatcher(cast("Any", asked), cast("Any", None), Holder(lambda: "server-1"))
    assert await dispatcher.dispatch() == 0
    assert dispatcher.waiting.may_wait
    asked.lanes = ()
    assert await dispatcher.dispatch() == 0
    assert not dispatcher.waiting.may_wait
