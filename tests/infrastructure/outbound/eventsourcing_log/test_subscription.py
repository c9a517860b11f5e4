"""Whoever subscribes misses nothing, and can always stop."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from uuid import uuid4

import psycopg
import pytest
from eventsourcing.persistence import (
    ApplicationRecorder,
    Notification,
    OperationalError,
    PersistenceError,
    ProgrammingError,
    StoredEvent,
    Subscription,
)

from infrastructure.outbound.eventsourcing_log import read, subscription
from infrastructure.outbound.eventsourcing_log.factory import LogFactory
from tests.support.builders.application_logs import ask
from tests.support.builders.eventsourcing_environments import environment_of, own_schema
from tests.support.builders.harbours import Harbours
from tests.support.servers.embedded_servers import wait_until

Log = tuple[ApplicationRecorder, Callable[..., list[tuple[object, ...]]]]
WRITERS = 4
APPENDS = 60


@pytest.fixture
def log(shared_database_url: str) -> Iterator[Log]:
    schema = own_schema()
    with closing(LogFactory(environment_of(shared_database_url, schema))) as factory:

        def asked(query: str, *values: object) -> list[tuple[object, ...]]:
            return ask(shared_database_url, schema, query, *values)

        yield factory.application_recorder(), asked


def append(recorder: ApplicationRecorder, *topics: str) -> None:
    recorder.insert_events([StoredEvent(uuid4(), 1, topic, b"{}") for topic in topics])


def append_often(recorder: ApplicationRecorder) -> None:
    for _ in range(APPENDS):
        append(recorder, "a", "b", "c")


def take(following: Subscription[ApplicationRecorder], count: int) -> list[int]:
    """The ids of the next notifications."""
    return [next(following).id for _ in range(count)]


@pytest.mark.server
def test_a_follower_sees_every_event_of_many_writers_once_and_in_order(log: Log) -> None:
    recorder, _ = log
    with recorder.subscribe() as following, ThreadPoolExecutor(WRITERS + 1) as threads:
        total = WRITERS * APPENDS * 3
        seen = threads.submit(take, following, total)
        writers = [threads.submit(append_often, recorder) for _ in range(WRITERS)]
        for writer in writers:
            writer.result(60)
        assert seen.result(60) == list(range(1, total + 1))


def test_an_event_recorded_just_before_it_listens_is_not_lost(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's own subscription looks first and listens later."""
    recorder, _ = log
    monkeypatch.setattr(subscription, "POLL_SECONDS", 3600.0)
    real = read.head_of

    def looking(connection: read.ReaderConnection) -> int:
        monkeypatch.setattr(subscription, "head_of", real)
        head = real(connection)
        append(recorder, "between the first look and the next")
        return head

    monkeypatch.setattr(subscription, "head_of", looking)
    with recorder.subscribe() as following:
        assert take(following, 1) == [1]


def test_an_event_that_was_announced_to_nobody_is_found(log: Log) -> None:
    recorder, _ = log
    with recorder.subscribe() as following:
        append(recorder, "announced")
        assert take(following, 1) == [1]
        recorder.datastore.channel = "elsewhere"  # type: ignore[attr-defined]
        append(recorder, "announced where nobody listens")
        assert take(following, 1) == [2]


@pytest.mark.server
def test_a_subscription_goes_on_when_its_connection_is_ended(log: Log) -> None:
    recorder, asked = log

    def gone(query: str, pids: list[object]) -> bool:
        return not asked(query, pids)

    with recorder.subscribe() as following:
        for number in range(1, 6):
            append(recorder, "a")
            assert take(following, 1) == [number]
            there = asked(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            pids = [pid for (pid,) in there]
            # One that ends by itself meanwhile is as good as one that was ended.
            asked("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", pids)
            alive = "SELECT FROM pg_stat_activity WHERE pid = ANY (%s)"
            wait_until(partial(gone, alive, pids), "the connections are gone")
            assert len(pids) >= 2


def test_a_subscription_waits_for_a_database_that_is_away(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, _ = log
    tried = threading.Event()
    store = recorder.datastore  # type: ignore[attr-defined]
    real = store.connect

    def failing() -> object:
        if not back.is_set():
            tried.set()
            raise psycopg.OperationalError("nobody there")
        return real()

    back = threading.Event()
    monkeypatch.setattr(store, "connect", failing)
    with recorder.subscribe() as following:
        append(recorder, "a")
        assert tried.wait(10)
        back.set()
        assert take(following, 1) == [1]


def test_only_the_wanted_topics_behind_the_wanted_position_come(log: Log) -> None:
    recorder, _ = log
    append(recorder, "a", "b", "a", "c", "b")
    with recorder.subscribe(gt=1, topics=["a", "c"]) as following:
        assert take(following, 2) == [3, 4]
        append(recorder, "b")
        append(recorder, "a")
        assert take(following, 1) == [7]


def test_a_slow_reader_holds_no_more_than_a_few_pages(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, _ = log
    monkeypatch.setattr(subscription, "PAGE_NOTIFICATIONS", 2)
    monkeypatch.setattr(subscription, "PAGES_MAX", 2)
    append(recorder, *("a" for _ in range(20)))
    with recorder.subscribe() as following:
        assert isinstance(following, subscription.LogSubscription)
        wait_until(lambda: len(following._pages) == 2, "two pages are there")
        assert following._position <= 4
        assert take(following, 20) == list(range(1, 21))


@pytest.mark.parametrize("page", [1, 2, 3, 5])
def test_pages_fit_together(log: Log, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    recorder, _ = log
    monkeypatch.setattr(subscription, "PAGE_NOTIFICATIONS", page)
    append(recorder, "a", "b", "a", "b", "a", "b")
    with recorder.subscribe(topics=["a"]) as following:
        assert take(following, 3) == [1, 3, 5]
        append(recorder, "b", "a")
        assert take(following, 1) == [8]


def test_stop_wakes_who_waits_and_leaves_no_thread_behind(log: Log) -> None:
    recorder, _ = log
    before = set(threading.enumerate())
    with ThreadPoolExecutor(1) as threads:
        following = recorder.subscribe()
        with following:
            waiting = threads.submit(lambda: list(following))
            wait_until(waiting.running, "somebody iterates")
            following.stop()
            assert waiting.result(10) == []
    names = {thread.name for thread in set(threading.enumerate()) - before}
    assert "log subscription" not in names


def test_a_subscription_that_is_never_used_starts_nothing(log: Log) -> None:
    recorder, _ = log
    following = recorder.subscribe()
    assert "log subscription" not in {thread.name for thread in threading.enumerate()}
    following.stop()
    assert list(following) == []


def test_it_may_be_iterated_without_a_block(log: Log) -> None:
    recorder, _ = log
    append(recorder, "a", "b")
    following = recorder.subscribe()
    seen: list[Notification] = []
    for notification in following:
        seen.append(notification)
        if len(seen) == 2:
            following.stop()
    assert [one.topic for one in seen] == ["a", "b"]


def test_a_subscription_can_be_entered_once(log: Log) -> None:
    following = log[0].subscribe()
    with following:
        pass
    with pytest.raises(ProgrammingError, match="Already entered"), following:
        pass


def test_who_closes_the_application_under_a_subscription_is_told(shared_database_url: str) -> None:
    harbours = Harbours(env=environment_of(shared_database_url, own_schema()))
    with harbours.recorder.subscribe() as following:
        harbours.close()
        with pytest.raises(OperationalError, match="stop the subscription first"):
            next(following)


def test_what_waiting_cannot_mend_is_told(log: Log) -> None:
    recorder, asked = log
    with recorder.subscribe() as following:
        append(recorder, "a")
        assert take(following, 1) == [1]
        asked("ALTER TABLE log_head RENAME TO away")
        with pytest.raises(PersistenceError, match=r"cannot be followed.*log_head"):
            next(following)
