"""The log as a read-only upstream of the library eventsourcing."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from eventsourcing.application import ProcessingEvent
from eventsourcing.domain import Aggregate
from eventsourcing.persistence import (
    InfrastructureFactory,
    Notification,
    NotSupportedError,
    ProgrammingError,
    StoredEvent,
    Tracking,
)
from eventsourcing.popo import POPOTrackingRecorder
from eventsourcing.projection import Projection, ProjectionRunner
from eventsourcing.system import Follower

import infrastructure.eventsourcing as upstream
from application.log.envelope import RecordedEvent
from domain.event_types import EVENT_TYPES
from domain.run.events import SpawnRequested
from domain.values.record import run_stream
from domain.values.refusals import CorruptHistoryError
from infrastructure.contract.errors import UserError
from infrastructure.eventsourcing import LoggedEvent, LogReader, Spawnlog, SpawnlogFactory
from tests.support.builders.damaged_log import tell_all
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.submissions import key, observe, observing
from tests.support.servers.running_log import RunningLog

WAIT_SECONDS_MAX = 20.0


@pytest.fixture
def spawnlog(database_url: str) -> Iterator[Spawnlog]:
    application = Spawnlog({"SPAWNLOG_DATABASE_URL": database_url})
    yield application
    application.close()


def as_stored(events: Sequence[RecordedEvent]) -> list[tuple[Any, ...]]:
    return [
        (
            event.position,
            event.stream,
            event.version,
            f"{event.type}:{event.type_version}",
            event.recorded_at,
        )
        for event in (recorded.envelope for recorded in events)
    ]


def as_read(found: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [
        (item.id, item.originator_id, item.originator_version, item.topic, item.timestamp)
        for item in found
    ]


# Arguments and expected positions of the library's
# `ApplicationRecorderTestCase.test_insert_select`, for a log whose last position is 3. That test
# itself cannot run, since it inserts with the recorder.
SELECTIONS: list[tuple[dict[str, Any], tuple[int, ...]]] = [
    ({"start": None, "limit": 10}, (1, 2, 3)),
    ({"start": 0, "limit": 10, "inclusive_of_start": False}, (1, 2, 3)),
    ({"start": 1, "limit": 10}, (1, 2, 3)),
    ({"start": None, "stop": 2, "limit": 10}, (1, 2)),
    ({"start": 1, "limit": 10, "inclusive_of_start": False}, (2, 3)),
    ({"start": 2, "limit": 10, "inclusive_of_start": False}, (3,)),
    (
        {
            "start": None,
            "limit": 10,
            "topics": ["SessionObserved", "SpawnRequested", "ChildAdmitted"],
        },
        (1, 2, 3),
    ),
    ({"start": 1, "limit": 10, "topics": ["SpawnRequested"]}, (2,)),
    ({"start": 1, "limit": 1, "topics": ["SpawnRequested"]}, (2,)),
    ({"start": 1, "limit": 3, "topics": ["ChildAdmitted"]}, (3,)),
    ({"start": 1, "limit": 3, "topics": ["SessionObserved", "ChildAdmitted"]}, (1, 3)),
    ({"start": 1, "limit": 3, "topics": ["RunEnded"]}, ()),
    ({"start": None, "limit": 1}, (1,)),
    ({"start": None, "limit": 0}, ()),
    ({"start": 2, "limit": 1}, (2,)),
    ({"start": 1, "limit": 1, "inclusive_of_start": False}, (2,)),
    ({"start": 2, "limit": 2}, (2, 3)),
    ({"start": 3, "limit": 1}, (3,)),
    ({"start": 3, "limit": 1, "inclusive_of_start": False}, ()),
    ({"start": 2, "limit": 10, "stop": 2}, (2,)),
    ({"start": 1, "limit": 10, "stop": 2}, (1, 2)),
    ({"start": 1, "limit": 10, "stop": 2, "inclusive_of_start": False}, (2,)),
]


async def test_notifications_are_as_library_expects(
    running: RunningLog, family: LoggedFamily, spawnlog: Spawnlog
) -> None:
    recorder = spawnlog.recorder
    assert recorder.max_notification_id() is None
    assert recorder.select_notifications(start=None, limit=3) == []
    assert recorder.select_notifications(start=None, limit=3, topics=["RunEnded"]) == []
    await family.spawn("child")
    events = await running.events()
    assert await running.types() == ["SessionObserved", "SpawnRequested", "ChildAdmitted"]
    assert recorder.max_notification_id() == 3
    for arguments, positions in SELECTIONS:
        expected = as_stored([events[position - 1] for position in positions])
        assert as_read(recorder.select_notifications(**arguments)) == expected, arguments


# The same of `AggregateRecorderTestCase.test_insert_and_select`, for a stream of three events.
STREAMS: list[tuple[dict[str, Any], tuple[int, ...]]] = [
    ({}, (1, 2, 3)),
    ({"desc": True}, (3, 2, 1)),
    ({"desc": True, "limit": 1}, (3,)),
    ({"limit": 2}, (1, 2)),
    ({"gt": 1}, (2, 3)),
    ({"gt": 3}, ()),
    ({"lte": 2}, (1, 2)),
    ({"lte": 2, "desc": True}, (2, 1)),
    ({"gt": 1, "lte": 2}, (2,)),
    ({"gt": 1, "limit": 1}, (2,)),
    ({"gt": 1, "desc": True, "limit": 1}, (3,)),
    ({"gt": 2**40}, ()),
]


async def test_streams_are_as_library_expects(
    running: RunningLog, family: LoggedFamily, spawnlog: Spawnlog
) -> None:
    recorder = spawnlog.recorder
    assert recorder.select_events(uuid4()) == []
    await family.live("child")
    stream = run_stream(family.id("child"))
    events = [event for event in await running.events() if event.envelope.stream == stream]
    for arguments, versions in STREAMS:
        arguments = {"lte": 3, **arguments}
        expected = as_stored([events[version - 1] for version in versions])
        assert as_read(recorder.select_events(stream, **arguments)) == expected, arguments
    assert as_read(recorder.select_events(stream)) == as_stored(events)


# Expectations of `ApplicationRecorderTestCase.optional_test_insert_subscribe`.


async def next_events(subscription: Iterator[Notification], count: int) -> list[int]:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        return await asyncio.to_thread(lambda: [next(subscription).id for _ in range(count)])


async def test_subscription_waits_for_new_events(running: RunningLog, spawnlog: Spawnlog) -> None:
    await observe(running.log, [key(1), key(2)])
    with spawnlog.recorder.subscribe(gt=0) as subscription:
        assert await next_events(subscription, 2) == [1, 2]
        later = asyncio.create_task(next_events(subscription, 1))
        await observe(running.log, [key(3)])
        assert await later == [3]
    with spawnlog.recorder.subscribe(gt=2) as subscription:
        assert await next_events(subscription, 1) == [3]
    with spawnlog.recorder.subscribe() as subscription:
        assert await next_events(subscription, 3) == [1, 2, 3]


async def test_subscription_ends_when_stopped(running: RunningLog, spawnlog: Spawnlog) -> None:
    await observe(running.log, [key(1), key(2)])
    with spawnlog.recorder.subscribe(gt=0) as subscription:
        for _ in subscription:
            subscription.stop()
    with spawnlog.recorder.subscribe() as subscription:
        subscription.stop()
        assert list(subscription) == []
    subscription = spawnlog.recorder.subscribe()
    subscription.stop()
    with subscription:
        assert list(subscription) == []
    with spawnlog.recorder.subscribe(gt=2) as subscription:
        waiting = asyncio.create_task(asyncio.to_thread(list, subscription))
        await running.ask("SELECT 1")
        subscription.stop()
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            assert await waiting == []


async def test_subscription_finds_rare_topics(
    family: LoggedFamily,
    running: RunningLog,
    spawnlog: Spawnlog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upstream, "SCAN_POSITIONS_MAX", 2)
    monkeypatch.setattr(upstream, "PAGE_EVENTS", 1)
    for name in ("a", "b"):
        await family.live(name)
    for types in (["RunEnded"], ["SpawnRequested", "RunEnded"], []):
        wanted = [
            event.envelope.position
            for event in await running.events()
            if not types or event.envelope.type in types
        ]
        with spawnlog.recorder.subscribe(topics=types) as subscription:
            assert await next_events(subscription, len(wanted)) == wanted


async def test_subscription_sees_each_position_once_and_in_order(
    running: RunningLog, spawnlog: Spawnlog
) -> None:
    async def append(log: RunningLog, writer: int) -> None:
        for number in range(40):
            await log.log.submit(
                observing(*(key(f"{writer}-{number}-{item}") for item in range(3)))
            )

    async with running.other() as second_log:
        with spawnlog.recorder.subscribe() as subscription:
            seen = asyncio.create_task(next_events(subscription, 240))
            await asyncio.gather(append(running, 1), append(second_log, 2))
            assert await seen == list(range(1, 241))


async def test_subscription_continues_on_another_connection(
    running: RunningLog, spawnlog: Spawnlog
) -> None:
    async def cut() -> None:
        rows = await running.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
            " current_database() AND application_name = 'spawnlog eventsourcing'"
        )
        assert len(rows) == 2

    await observe(running.log, [key(1)])
    with spawnlog.recorder.subscribe() as subscription:
        assert await next_events(subscription, 1) == [1]
        assert spawnlog.recorder.max_notification_id() == 1
        await cut()
        await observe(running.log, [key(2)])
        assert await next_events(subscription, 1) == [2]
        assert spawnlog.recorder.max_notification_id() == 2


async def test_subscription_after_the_end_of_log_is_refused(
    running: RunningLog, spawnlog: Spawnlog
) -> None:
    await observe(running.log, [key(1)])
    with spawnlog.recorder.subscribe(gt=2) as subscription:
        with pytest.raises(ProgrammingError, match="it is another log or was put back"):
            next(subscription)


async def test_every_event_is_of_its_domain_class(
    running: RunningLog, spawnlog: Spawnlog, tmp_path: Any
) -> None:
    await tell_all(running, tmp_path)
    events = await running.events()
    read = spawnlog.recorder.select_notifications(start=None, limit=len(events))
    for recorded, notification in zip(events, read, strict=True):
        event: Any = spawnlog.mapper.to_domain_event(notification)
        assert {LoggedEvent, type(recorded.event)} <= set(type(event).__mro__)
        for name in recorded.event.__struct_fields__:
            assert getattr(event, name) == getattr(recorded.event, name)
        envelope = recorded.envelope
        assert (event.originator_id, event.originator_version, event.timestamp) == (
            envelope.stream,
            envelope.version,
            envelope.recorded_at,
        )


def test_attributes_of_logged_events_replace_no_field() -> None:
    taken = set(LoggedEvent.__annotations__)
    assert not [kind for kind in EVENT_TYPES.values() if taken & set(kind.__struct_fields__)]


async def test_log_is_read_only(running: RunningLog, spawnlog: Spawnlog) -> None:
    await observe(running.log, [key(1)])
    for write in (
        lambda: spawnlog.recorder.insert_events([StoredEvent("run:1", 1, "RunEnded:1", b"{}")]),
        lambda: spawnlog.save(Aggregate()),  # type: ignore[arg-type]
        lambda: spawnlog.factory.process_recorder(),
        lambda: spawnlog.factory.tracking_recorder(),
        lambda: spawnlog.factory.aggregate_recorder(),
    ):
        with pytest.raises(NotSupportedError, match="log is read-only for the library"):
            write()
    with LogReader(running.url).read(lambda connection: connection) as connection:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("DELETE FROM events")
    assert await running.types() == ["SessionObserved"]


async def test_unknown_topics_and_long_pages_are_refused(
    running: RunningLog, spawnlog: Spawnlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = spawnlog.recorder
    for ask in (
        lambda: recorder.subscribe(topics=["SpawnRequested:1"]),
        lambda: recorder.select_notifications(1, 1, topics=["domain.run.events:RunEnded"]),
    ):
        with pytest.raises(ProgrammingError, match="topics are names such as 'SpawnRequested'"):
            ask()
    monkeypatch.setattr(upstream, "EVENTS_MAX", 2)
    with pytest.raises(ProgrammingError, match="limit must be 2 or less"):
        recorder.select_notifications(1, 3)
    with pytest.raises(ProgrammingError, match="LIMIT must not be negative"):
        recorder.select_notifications(1, -1)
    family = LoggedFamily(running.log)
    await family.live("child")
    with pytest.raises(ProgrammingError, match="more than 2 events; give a limit"):
        recorder.select_events(run_stream(family.id("child")))


class Seen(POPOTrackingRecorder):
    """Agents of spawns, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.agents: list[str | None] = []


class SeeSpawns(Projection[Seen]):
    topics = ("SpawnRequested",)

    def process_event(self, domain_event: SpawnRequested, tracking: Tracking) -> None:
        self.view.agents.append(domain_event.requested_agent_id)
        self.view.insert_tracking(tracking)


@pytest.fixture
async def read_only_url(running: RunningLog) -> AsyncIterator[str]:
    """Yield the log for a role that may read three tables."""
    role = "reader_of_three_tables"
    await running.ask(f"CREATE ROLE {role} LOGIN")
    await running.ask(f"GRANT SELECT ON events, log_head, alembic_version TO {role}")
    yield f"{running.url}&user={role}"
    await running.ask(f"DROP OWNED BY {role}")
    await running.ask(f"DROP ROLE {role}")


async def test_projection_runs_as_read_only_role(
    family: LoggedFamily, read_only_url: str, running: RunningLog
) -> None:
    await family.spawn("a")
    position = (await family.spawn("b")).position
    env = {"SPAWNLOG_DATABASE_URL": read_only_url}

    def run() -> list[str | None]:
        with ProjectionRunner(
            application_class=Spawnlog, projection_class=SeeSpawns, view_class=Seen, env=env
        ) as runner:
            runner.wait(position - 1, timeout=WAIT_SECONDS_MAX)
            return runner.view.agents

    spawned = [event.event for event in await running.events()]
    expected = [run.requested_agent_id for run in spawned if isinstance(run, SpawnRequested)]
    assert await asyncio.to_thread(run) == expected
    assert len(expected) == 2


class Followed(Follower[str]):
    """Follower that notes the events."""

    heard: list[object]

    def policy(self, domain_event: object, processing_event: ProcessingEvent[str]) -> None:
        self.heard.append(domain_event)


async def test_follower_pulls_log(
    family: LoggedFamily, running: RunningLog, spawnlog: Spawnlog
) -> None:
    await family.live("child")
    follower = Followed({"SPAWNLOG_PERSISTENCE_MODULE": "infrastructure.eventsourcing"})
    follower.heard = []
    follower.follow("Spawnlog", spawnlog.notification_log)
    for _ in range(2):
        follower.pull_and_process("Spawnlog")
    assert [item.timestamp for item in follower.heard if isinstance(item, LoggedEvent)] == [
        event.envelope.recorded_at for event in await running.events()
    ]


def test_database_is_named_by_environment(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPAWNLOG_DATABASE_URL", raising=False)
    with pytest.raises(OSError, match="set SPAWNLOG_DATABASE_URL to the URL"):
        Spawnlog()
    with pytest.raises(UserError, match="run `spawnlog migrate`"):
        Spawnlog({"SPAWNLOG_DATABASE_URL": empty_database_url})
    named = InfrastructureFactory.construct({"PERSISTENCE_MODULE": "infrastructure.eventsourcing"})
    assert type(named) is SpawnlogFactory


async def test_stored_type_names_no_code(running: RunningLog, spawnlog: Spawnlog) -> None:
    await observe(running.log, [key(1)])
    await running.ask("UPDATE events SET type = 'os.system'")
    (notification,) = spawnlog.recorder.select_notifications(1, 1)
    with pytest.raises(CorruptHistoryError, match=r"event type os\.system:1 is unknown"):
        spawnlog.mapper.to_domain_event(notification)
