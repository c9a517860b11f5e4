"""Claims of a lane's runs, by servers and executors, and use of a known key."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from application.coordination.lease_owner import LeaseOwner
from application.execution import execute
from application.execution.dispatch import Claim, ClaimedRoom, Dispatcher, decide_claims
from application.execution.end import UnwrittenOutput
from application.execution.execute import PreparedStart, _Execution
from application.execution.external import HOLDER_PREFIX, ExternalRuns, NotOffered
from application.log.envelope import Actor, Provenance
from application.log.event_log import Decision, LaneFacts, LaneQuery, LogUnavailableError
from application.log.texts import TextStore
from application.ports.registry import WaitingLane
from application.ports.runtimes import LaunchError, RuntimeEnd
from domain.run.events import RunClaimed
from domain.run.facts import EXTERNAL_LANE
from domain.run.state import Run
from domain.spawn.batch import speculative
from domain.values.record import run_id_of
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.log.append.batch import ChangedRuns, lane_after
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.run_histories import (
    a_started_run,
    claimed,
    created,
    prepared,
    queued,
    resolved,
    started,
)
from tests.support.builders.storytelling import plan, requested, run_id, run_of

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
        """Return the claimed runs when this many are running."""
        facts = LaneFacts(running, tuple(self.runs))
        return [self.log.names[item] for item in decide_claims(facts, "server-1", WIDTH).result]

    def claimed_as_queued(self, running: int, waiting: list[Run]) -> list[str | None]:
        """Return which of the three runs are claimed in the transaction that queues them."""
        return self.claimed_in(LaneFacts(running, tuple(waiting)))

    def claimed_in(self, facts: LaneFacts, take: int = WIDTH) -> list[str | None]:
        """Return which of the three runs, at most `take`, are claimed when queued with these
        facts.
        """
        claim = Claim("server-1", WIDTH, uuid4(), Provenance())
        room = ClaimedRoom(
            executing=cast("Any", None),
            holder=LeaseOwner(lambda: "server-1"),
            claim=claim,
            query=LaneQuery("subagent", 1, take),
            children={},
            starts={},
        )
        parts = room.claims(facts, NOW, self.runs, is_as_prepared=False)
        ids = [run_id_of(stream) for part in parts for stream, _ in part.decision.changes]
        return [self.log.names[item] for item in ids if item is not None]


def test_claims_fill_the_lane() -> None:
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


def test_decision_claims_what_its_query_takes() -> None:
    assert Lane().claimed_in(LaneFacts(0, ()), take=2) == ["first", "second"]


def test_queued_runs_are_claimed_in_order() -> None:
    lane, other_family = Lane(), FamilyLog()
    other_family.spawn("earlier")
    other_family.create("earlier")
    earlier = other_family.run("earlier")
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
    asked_lanes = AskedLanes(WaitingLane("subagent", 1, is_full=True))
    dispatcher = Dispatcher(
        cast("Any", asked_lanes), cast("Any", None), LeaseOwner(lambda: "server-1")
    )
    assert await dispatcher.dispatch() == 0
    assert dispatcher.waiting.may_wait
    asked_lanes.lanes = ()
    assert await dispatcher.dispatch() == 0
    assert not dispatcher.waiting.may_wait


EXECUTOR = Actor(kind="token", token="pulls")


@dataclass
class Collaborators:
    """Services for external runs: the requested run, and the ended ones."""

    run: Run | None = None
    unclaimed: tuple[UUID, ...] = ()
    failing: tuple[UUID, ...] = ()
    ended: list[UUID] = field(default_factory=list)
    lease_seconds: list[float] = field(default_factory=list)

    async def unclaimed_runs(self, *, seconds: float, limit: int) -> Sequence[UUID]:
        return self.unclaimed

    async def renew(self, holder: str, *, lease_seconds: float, **_: object) -> bool:
        self.lease_seconds.append(lease_seconds)
        return True

    async def end(self, run: Run, end: RuntimeEnd, **_: object) -> Run:
        if run.run_id in self.failing:
            raise RuntimeError("it cannot be ended")
        self.ended.append(run.run_id)
        return run

    async def prepare_with_texts(self, run: Run) -> Any:
        raise LaunchError("not_executable", "its folder is gone")

    def outside(self) -> ExternalRuns:
        settings = SimpleNamespace(
            spawnlog=SimpleNamespace(external_claim_seconds=5),
            subagent_defaults=SimpleNamespace(max_concurrent=WIDTH),
        )
        pinned = SimpleNamespace(configuration=settings)

        async def run(run_id: UUID) -> Any:
            return self.run or SimpleNamespace(run_id=run_id)

        async def event_of(stream: str, version: int) -> Any:
            return SimpleNamespace(
                envelope=SimpleNamespace(provenance=SimpleNamespace(actor=EXECUTOR))
            )

        async def submit(*_: object, **__: object) -> Any:
            raise LogUnavailableError("the database is away")

        work = SimpleNamespace(
            run=run,
            submit=submit,
            identities=RandomIdentities(),
            log=SimpleNamespace(event_of=event_of),
            configurations=SimpleNamespace(current=lambda: pinned),
        )
        all_of_them = cast("Any", self)
        return ExternalRuns(
            cast("Any", work), all_of_them, all_of_them, all_of_them, all_of_them, all_of_them
        )


async def test_run_that_cannot_end_holds_up_no_other() -> None:
    ids = (run_id(1), run_id(2), run_id(3))
    others = Collaborators(unclaimed=ids, failing=(ids[0], ids[1]))
    assert await others.outside().end_unclaimed() == 1
    assert others.ended == [ids[2]]


@pytest.mark.parametrize(("timeout", "lease"), [(20, 20), (90, 60), (0, 60)])
async def test_lease_of_claim_is_capped_by_run_timeout(timeout: int, lease: int) -> None:
    run = run_of(
        requested(),
        resolved(),
        prepared(),
        created(plan=plan(runtime="external", run_timeout_seconds=timeout)),
        queued(lane=EXTERNAL_LANE),
    )
    others = Collaborators(run=run)
    with pytest.raises(LogUnavailableError):
        await others.outside().claim(run.run_id, "mine", 60, EXECUTOR)
    assert others.lease_seconds == [lease]


async def test_repeated_claim_that_fails_ends_nothing() -> None:
    run = run_of(
        requested(),
        resolved(),
        prepared(),
        created(plan=plan(runtime="external")),
        queued(lane=EXTERNAL_LANE),
        claimed(holder=f"{HOLDER_PREFIX}mine:1"),
        started(),
    )
    others = Collaborators(run=run)
    with pytest.raises(NotOffered, match="its folder is gone; report its end"):
        await others.outside().claim(run.run_id, "mine", 60, EXECUTOR)
    assert others.ended == []


STORE = TextStore(uuid4(), b"key", uuid4)

ANSWERED = UnwrittenOutput(cast("Any", None), ())


def execution(unwritten: UnwrittenOutput | None = ANSWERED) -> _Execution:
    run = run_of(*a_started_run())
    start = PreparedStart(
        cast("Any", None), STORE, run, Decision(None), cast("Any", None), run.run_id
    )
    return _Execution(run, start=start, unwritten=unwritten)


async def test_key_in_hand_is_used_for_one_attempt() -> None:
    begun = execution()
    assert [begun.take_text_store(), begun.take_text_store()] == [STORE, None]


async def test_key_is_read_if_entries_were_written_before_the_end() -> None:
    assert execution(unwritten=None).take_text_store() is None


async def test_key_is_read_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "KEY_SECONDS_MAX", 0.0)
    assert execution().take_text_store() is None
