"""What was done to the events of a log is found, and the first bad position is named."""

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as some

from tests.support.builders.damaged_log import ToldLog
from tests.support.tiers import examples, nightly_but

pytestmark = pytest.mark.server

HERE = 40
COLUMNS = {
    "stream": "stream || 'x'",
    "version": "version + 1000",
    "type": "CASE type WHEN 'RunClaimed' THEN 'RunQueued' ELSE 'RunClaimed' END",
    "type_version": "type_version + 1",
    "recorded_at": "recorded_at + interval '1 microsecond'",
    "occurred_at": "occurred_at - interval '1 microsecond'",
    "event_id": "gen_random_uuid()",
    "command_id": "gen_random_uuid()",
    "actor_kind": "actor_kind || ' '",
    "actor_token": "coalesce(actor_token, '') || 'x'",
    "actor_session": "coalesce(actor_session, '') || 'x'",
    "causation": "gen_random_uuid()",
    "correlation": "CASE WHEN correlation IS NULL THEN '' ELSE NULL END",
    "run_id": "CASE WHEN run_id IS NULL THEN gen_random_uuid() ELSE NULL END",
    "traceparent": "coalesce(traceparent, '') || 'x'",
    "config_revision": "config_revision + 1",
    "writer_version": "'0.1.1'",
    "append_last": "append_last + 1",
    "chain_hash": "substr(chain_hash, 2)",
}


@pytest.mark.parametrize("column", nightly_but(COLUMNS, list(COLUMNS)[::4]))
def test_a_changed_column_is_found(told: ToldLog, column: str) -> None:
    told.do(f"UPDATE events SET {column} = {COLUMNS[column]} WHERE position = %s", HERE)
    assert told.found() == (HERE, "hash" if column == "chain_hash" else "changed")


def test_no_column_was_forgotten_here(told: ToldLog) -> None:
    query = "SELECT column_name FROM information_schema.columns WHERE table_name = 'events'"
    assert {name for (name,) in told.ask(query)} - {"position", "state"} == {*COLUMNS}


def test_a_flipped_byte_is_found_and_said_in_words(told: ToldLog) -> None:
    told.do("UPDATE events SET state = set_byte(state, 7, 0) WHERE position = %s", HERE)
    told.do("UPDATE events SET state = set_byte(state, 1, 0) WHERE position > %s", HERE + 9)
    assert told.says() == (
        f"position {HERE}: its bytes are not the ones that were recorded (chain)"
    )


def test_the_first_and_the_last_event_are_in_the_chain_too(told: ToldLog) -> None:
    last = told.last
    told.do("UPDATE events SET actor_token = 'me' WHERE position = %s", last)
    assert told.found() == (last, "changed")
    told.do("UPDATE events SET actor_token = 'me' WHERE position = 1")
    assert told.found() == (1, "changed")


def test_a_changed_hash_is_told_from_a_changed_event(told: ToldLog) -> None:
    change = "UPDATE events SET chain_hash = sha256(chain_hash) WHERE position = %s"
    told.do(change, told.last)
    assert told.found() == (told.last, "hash")
    told.do(change, HERE)
    assert told.found() == (HERE, "hash")
    assert "but its chain hash was changed" in told.says()


def test_deleted_events_are_named(told: ToldLog) -> None:
    told.do("DELETE FROM events WHERE position = %s", HERE)
    assert told.says() == f"position {HERE}: position {HERE} is missing"
    told.do("DELETE FROM events WHERE position BETWEEN %s AND %s", HERE, HERE + 2)
    assert told.says() == f"position {HERE}: positions {HERE} to {HERE + 2} are missing"
    told.do("DELETE FROM events WHERE position < 3")
    assert told.says() == "position 1: positions 1 to 2 are missing"


def test_a_deleted_event_is_found_when_the_gap_was_closed(told: ToldLog) -> None:
    told.do("DELETE FROM events WHERE position BETWEEN %s AND %s", HERE, HERE + 1)
    told.do("DELETE FROM commits WHERE last_position BETWEEN %s AND %s", HERE, HERE + 1)
    told.move(HERE + 2, -2)
    assert told.found() == (HERE, "missing")
    assert f"positions {HERE} to {HERE + 1} are missing: what" in told.says()


@pytest.mark.parametrize("other", [HERE + 1, HERE + 2, HERE + 17])
def test_swapped_events_are_named(told: ToldLog, other: int) -> None:
    told.do("UPDATE events SET position = -1 WHERE position = %s", HERE)
    told.do("UPDATE events SET position = %s WHERE position = %s", HERE, other)
    told.do("UPDATE events SET position = %s WHERE position = -1", other)
    said = f"position {HERE}: it was swapped with the event at position {other}"
    assert told.says() == said
    ours, theirs = (
        told.one("SELECT chain_hash FROM saved_events WHERE position = %s", one)
        for one in (HERE, other)
    )
    told.do("UPDATE events SET chain_hash = %s WHERE position = %s", ours, HERE)
    told.do("UPDATE events SET chain_hash = %s WHERE position = %s", theirs, other)
    assert told.says() == said


FORGED = (
    "INSERT INTO events SELECT %s, 'session:agent:main:forged', 1, type, type_version, recorded_at,"
    " occurred_at, gen_random_uuid(), command_id, actor_kind, actor_token, actor_session,"
    " causation, correlation, run_id, traceparent, config_revision, writer_version, append_last,"
    " chain_hash, replace(convert_from(state, 'utf8'), 'agent:main:main', 'agent:main:forged')"
    "::bytea FROM saved_events WHERE type = 'SessionObserved' LIMIT 1"
)


def test_an_inserted_event_is_named(told: ToldLog) -> None:
    told.move(HERE, 1)
    told.do(FORGED, HERE)
    assert told.found() == (HERE, "inserted")
    assert f"the event that was recorded at position {HERE} now stands at" in told.says()


def test_an_inserted_event_is_named_when_it_was_linked_well(told: ToldLog) -> None:
    told.move(HERE, 1)
    told.do(FORGED, HERE)
    told.do(
        "UPDATE events SET append_last = position, recorded_at = (SELECT recorded_at FROM events"
        " WHERE position = %s) WHERE position = %s",
        HERE - 1,
        HERE,
    )
    hashes = told.ask("SELECT chain_hash FROM events WHERE position > %s ORDER BY position", HERE)
    told.rechain()
    for position, (digest,) in enumerate(hashes, start=HERE + 1):
        told.do("UPDATE events SET chain_hash = %s WHERE position = %s", digest, position)
    assert told.found() == (HERE, "inserted")


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=some.integers(0, 10**6), byte=some.integers(0, 10**6), flip=some.integers(1, 255))
def test_any_flipped_byte_of_any_event_is_found_where_it_is(
    told: ToldLog, place: int, byte: int, flip: int
) -> None:
    position = place % told.last + 1
    for column in ("state", "chain_hash"):
        size = told.one(f"SELECT octet_length({column}) FROM events WHERE position = %s", position)
        at = byte % size
        change = f"set_byte({column}, {at}, get_byte({column}, {at}) # {flip})"
        told.do(f"UPDATE events SET {column} = {change} WHERE position = %s", position)
        assert told.found() == (position, "hash" if column == "chain_hash" else "changed")
        told.mend()


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=some.integers(0, 10**6), column=some.sampled_from(sorted(COLUMNS)))
def test_any_changed_column_of_any_event_is_found_where_it_is(
    told: ToldLog, place: int, column: str
) -> None:
    position = place % told.last + 1
    told.do(f"UPDATE events SET {column} = {COLUMNS[column]} WHERE position = %s", position)
    assert told.found()[0] == position
    told.mend()


def test_an_instant_beyond_all_time_is_only_a_wrong_one(told: ToldLog) -> None:
    told.do("UPDATE events SET occurred_at = 'infinity' WHERE position = %s", HERE)
    assert told.found() == (HERE, "changed")


def test_a_verification_cannot_write(told: ToldLog) -> None:
    from infrastructure.outbound.log.verify.rows import open_read_connection

    with open_read_connection(told.url) as connection:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("DELETE FROM events")
