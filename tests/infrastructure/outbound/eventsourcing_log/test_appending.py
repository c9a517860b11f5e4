"""Appending from many sides at once, and over connections that are lost."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import psycopg
import pytest
from eventsourcing.persistence import (
    DataError,
    IntegrityError,
    OperationalError,
    StoredEvent,
)

from infrastructure.outbound.eventsourcing_log import append
from infrastructure.outbound.eventsourcing_log import recorder as recorders
from infrastructure.outbound.eventsourcing_log.factory import LogFactory
from infrastructure.outbound.eventsourcing_log.recorder import LogApplicationRecorder
from infrastructure.outbound.log.append.load import LOCK
from tests.support.builders.application_logs import ask, whole_log
from tests.support.builders.eventsourcing_environments import environment_of, own_schema
from tests.support.servers.embedded_servers import wait_until


class OneLog:
    """A recorder on a schema of its own, and the way around it."""

    def __init__(self, database_url: str, **variables: str) -> None:
        self.url, self.schema = database_url, own_schema()
        self.factory = LogFactory(environment_of(database_url, self.schema, **variables))
        made = self.factory.application_recorder()
        assert isinstance(made, LogApplicationRecorder)
        self.recorder = made

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        return ask(self.url, self.schema, query, *values)

    def positions(self) -> int:
        return len(whole_log(self.url, self.schema))


@pytest.fixture
def log(shared_database_url: str) -> Iterator[OneLog]:
    made = OneLog(shared_database_url)
    yield made
    made.factory.close()


def stored(stream: UUID | str, version: int, state: bytes = b"{}", topic: str = "t") -> StoredEvent:
    return StoredEvent(stream, version, topic, state)


@pytest.mark.parametrize("versions", [[1], [2], [4], [5], [3, 3], [3, 5], [3, 2], [-1]])
def test_only_the_next_version_of_a_stream_is_taken(log: OneLog, versions: list[int]) -> None:
    stream, other = uuid4(), uuid4()
    log.recorder.insert_events([stored(stream, 1), stored(stream, 2)])
    with pytest.raises(IntegrityError, match="its next version is"):
        log.recorder.insert_events([stored(other, 1), *(stored(stream, one) for one in versions)])
    assert log.positions() == 2
    assert log.recorder.insert_events([stored(other, 0), stored(stream, 3)]) == [3, 4]
    assert log.positions() == 4


def test_the_index_of_the_table_stands_behind_the_look_at_the_versions(
    log: OneLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = uuid4()
    log.recorder.insert_events([stored(stream, 1)])
    monkeypatch.setattr(append, "_must_continue", lambda *_: None)
    with pytest.raises(IntegrityError, match="duplicate key"):
        log.recorder.insert_events([stored(uuid4(), 1), stored(stream, 1)])
    assert log.positions() == 1
    assert log.recorder.insert_events([stored(stream, 2)]) == [2]


def test_a_plan_made_for_an_empty_log_does_not_read_all_of_a_long_one(log: OneLog) -> None:
    with psycopg.connect(log.url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {log.schema}")
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute(f"PREPARE versions AS {append.VERSIONS.replace('%b', '$1')}")
        plan = connection.execute("EXPLAIN EXECUTE versions ('{a,b}')").fetchall()
    text = "\n".join(str(row[0]) for row in plan)
    assert "using events_stream_version_key" in text
    assert "Seq Scan" not in text


def test_of_threads_that_want_the_same_version_one_gets_it(log: OneLog) -> None:
    stream = uuid4()

    def insert(number: int) -> bool:
        try:
            log.recorder.insert_events([stored(uuid4(), 1), stored(stream, 1 + number // 8)])
        except IntegrityError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(insert, range(80)))
    versions = log.ask("SELECT version FROM events WHERE stream = %s", str(stream))
    assert 2 * taken.count(True) == log.positions()
    assert len(versions) == taken.count(True) >= 1


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (stored("not a uuid", 1), "set ORIGINATOR_ID_TYPE=text"),
        (stored(uuid4(), 2**31), "is beyond"),
        (stored(uuid4(), 1, topic="x" * 1_001), "a topic has 1001 bytes, at most 1000"),
        (stored(uuid4(), 1, topic="a\0b"), "a topic has a NUL character"),
        (stored(uuid4(), 1, topic="\ud800"), "is not valid text"),
    ],
)
def test_what_the_columns_do_not_hold_is_refused(
    log: OneLog, event: StoredEvent, complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        log.recorder.insert_events([stored(uuid4(), 1), event])
    assert log.positions() == 0


def test_an_append_has_a_limit(log: OneLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "APPEND_EVENTS_MAX", 2)
    with pytest.raises(DataError, match="3 events are too many for one append, which takes 2"):
        log.recorder.insert_events([stored(uuid4(), 1) for _ in range(3)])


def test_text_ids_are_streams_as_they_are(shared_database_url: str) -> None:
    log = OneLog(shared_database_url, ORIGINATOR_ID_TYPE="text")
    try:
        names = ["log:config", "run:x", "Große Häfen", "", str(uuid4()).upper()]
        log.recorder.insert_events([stored(name, 1) for name in names])
        assert [one.originator_id for one in log.recorder.select_notifications(1, 9)] == names
        assert [log.recorder.select_events(name)[0].originator_id for name in names] == names
        with pytest.raises(DataError, match="an originator id has 1001 bytes"):
            log.recorder.insert_events([stored("x" * 1_001, 1)])
    finally:
        log.factory.close()


def test_whoever_finds_the_log_held_gives_up_in_time(shared_database_url: str) -> None:
    log = OneLog(shared_database_url, POSTGRES_LOCK_TIMEOUT="1")
    try:
        with psycopg.connect(shared_database_url) as holder:
            holder.execute(f"SET search_path TO {log.schema}")
            holder.execute(LOCK.encode())
            with pytest.raises(OperationalError, match="lock timeout"):
                log.recorder.insert_events([stored(uuid4(), 1)])
        assert log.recorder.insert_events([stored(uuid4(), 1)]) == [1]
    finally:
        log.factory.close()


def test_an_append_whose_connection_is_ended_before_its_commit_is_made_on_another(
    log: OneLog,
) -> None:
    with ThreadPoolExecutor(1) as threads, psycopg.connect(log.url) as holder:
        holder.execute(f"SET search_path TO {log.schema}")
        holder.execute(LOCK.encode())
        inserted = threads.submit(log.recorder.insert_events, [stored(uuid4(), 1)])
        for _ in range(2):
            wait_until(lambda: bool(_waiting(log)), "the append waits for the lock")
            (pid,) = _waiting(log)
            log.ask("SELECT pg_terminate_backend(%s, 5000)", pid)
        holder.rollback()
        assert inserted.result(30) == [1]
    assert log.positions() == 1


def _waiting(log: OneLog) -> list[int]:
    rows = log.ask(
        "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'"
        " AND NOT granted AND datname = current_database()"
    )
    return [int(str(row[0])) for row in rows]


def test_a_commit_that_was_confirmed_to_nobody_is_found_and_not_repeated(
    log: OneLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = append.append, list[list[int]]()

    def losing(
        connection: recorders.RecorderConnection, *args: object, **kwargs: object
    ) -> list[int]:
        positions = real(connection, *args, **kwargs)  # type: ignore[arg-type]
        if not lost:
            lost.append(positions)
            connection.close()
            raise psycopg.OperationalError("the line was cut behind the commit")
        return positions

    monkeypatch.setattr(recorders, "append", losing)
    stream = uuid4()
    log.recorder.insert_events([stored(uuid4(), 1)])
    assert lost == [[1]]
    lost.clear()
    assert log.recorder.insert_events([stored(stream, 1), stored(stream, 2)]) == [2, 3]
    assert (lost, log.positions()) == ([[2, 3]], 3)
    with pytest.raises(IntegrityError):
        log.recorder.insert_events([stored(stream, 2)])


@pytest.mark.server
def test_a_process_that_freezes_with_the_log_in_its_hands_loses_it(
    shared_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = OneLog(shared_database_url, POSTGRES_IDLE_IN_TRANSACTION_SESSION_TIMEOUT="1")
    frozen, thawed = threading.Event(), threading.Event()

    def freeze(*_: object, **__: object) -> None:
        monkeypatch.setattr(LogApplicationRecorder, "insert_beside", real)
        frozen.set()
        assert thawed.wait(30)

    real = LogApplicationRecorder.insert_beside
    monkeypatch.setattr(LogApplicationRecorder, "insert_beside", freeze)
    try:
        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(log.recorder.insert_events, [stored(uuid4(), 1)])
            assert frozen.wait(30)
            assert log.recorder.insert_events([stored(uuid4(), 1)]) == [1]
            thawed.set()
            assert first.result(30) == [2]
        assert log.positions() == 2
    finally:
        thawed.set()
        log.factory.close()
