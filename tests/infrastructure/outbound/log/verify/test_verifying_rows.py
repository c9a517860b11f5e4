"""What was done to the rows of projections is found beside a right log."""

import pytest

from application.projections.catalog import PROJECTIONS
from infrastructure.outbound.log.codec.columns import SPAN_COLUMNS, columns_of
from infrastructure.outbound.log.verify import ranges, verify
from tests.support.builders.damaged_log import ToldLog
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server

FOREVER = 2**62
CHANGES_OF = {
    "runs": {
        "version": "version + 1",
        "created_position": "created_position + 1",
        "created_at": "created_at + interval '1 microsecond'",
        "stage": "'archived'",
        "outcome": "coalesce(outcome, '') || 'x'",
        "session_id": "gen_random_uuid()",
        "requester": "requester || 'x'",
        "root": "root || 'x'",
        "child_session_key": "coalesce(child_session_key, '') || 'x'",
        "agent_id": "coalesce(agent_id, '') || 'x'",
        "label": "coalesce(label, '') || 'x'",
        "lane": "coalesce(lane, '') || 'x'",
        "lane_depth": "coalesce(lane_depth, 0) + 1",
        "queued_position": "coalesce(queued_position, 0) + 1",
        "holder": "coalesce(holder, '') || 'x'",
        "epoch": "epoch + 1",
        "due_kind": "coalesce(due_kind, '') || 'x'",
        "due_at": "coalesce(due_at, now()) + interval '1 microsecond'",
        "effects_at": "coalesce(effects_at, now()) + interval '1 microsecond'",
        "inbox_position": "coalesce(inbox_position, 0) + 1",
        "parked_position": "coalesce(parked_position, 0) + 1",
        "rule": "coalesce(rule, '') || 'x'",
        "respawned_from": "coalesce(respawned_from, session_id)",
        "depth": "coalesce(depth, 0) + 1",
    },
    "sessions": {
        "version": "version + 1",
        "created_position": "created_position + 1",
        "created_at": "created_at + interval '1 microsecond'",
        "session_id": "gen_random_uuid()",
        "root": "root || 'x'",
        "run_id": "gen_random_uuid()",
    },
}
CHANGES = [
    (table, column, change)
    for table, changes in CHANGES_OF.items()
    for column, change in changes.items()
]


def _middle(told: ToldLog, table: str) -> int:
    """A row that began in the middle and is not true any more."""
    query = f"SELECT from_position FROM {table} WHERE to_position < {FOREVER} ORDER BY 1"
    found = told.ask(query)
    return int(found[len(found) // 2][0])


@pytest.mark.parametrize(("table", "column", "change"), nightly_but(CHANGES, CHANGES[::4]))
def test_a_changed_column_of_a_row_is_named(
    told: ToldLog, table: str, column: str, change: str
) -> None:
    here = _middle(told, table)
    told.do(f"UPDATE {table} SET {column} = {change} WHERE from_position = %s", here)
    assert told.found() == (here, "projection")
    assert told.says().endswith(f"differs from what the events say: {column}")


def test_no_column_of_a_row_was_forgotten_here() -> None:
    changed = {table: {*changes} for table, changes in CHANGES_OF.items()}
    assert changed == {one.name: {*columns_of(one)} - {one.key, "state"} for one in PROJECTIONS}


def _true(told: ToldLog, table: str) -> int:
    """The row that is still true and began first."""
    query = f"SELECT min(from_position) FROM {table} WHERE to_position = {FOREVER}"
    return int(told.one(query))


def test_a_state_that_is_missing_from_a_row_that_is_true_is_named(told: ToldLog) -> None:
    here = _true(told, "runs")
    told.do("UPDATE runs SET state = NULL WHERE from_position = %s", here)
    assert told.found() == (here, "projection")
    assert told.says().endswith("differs from what the events say: state")


def test_a_changed_state_is_named_with_its_field(told: ToldLog) -> None:
    here = _true(told, "runs")
    change = "jsonb_set(state::jsonb, '{depth}', '7')::text"
    assert told.do(f"UPDATE runs SET state = {change} WHERE from_position = %s", here) == 1
    run_id = told.one("SELECT run_id FROM runs WHERE from_position = %s", here)
    assert told.says() == (
        f"position {here}: the row of run {run_id} differs from what the events say: state (depth)"
    )


def test_a_state_that_is_none_is_named(told: ToldLog) -> None:
    here = _middle(told, "sessions")
    told.do("UPDATE sessions SET state = '{}' WHERE from_position = %s", here)
    assert told.says().endswith("differs from what the events say: state")


def test_a_past_state_that_others_are_folded_from_is_missed(told: ToldLog) -> None:
    query = f"SELECT from_position, session_key FROM sessions WHERE to_position < {FOREVER}"
    here, key = told.ask(f"{query} AND state IS NOT NULL ORDER BY 1")[0]
    told.do("UPDATE sessions SET state = NULL WHERE from_position = %s", here)
    assert told.found() == (here, "projection")
    assert told.says().endswith(
        f"row of session {key} must hold a state for those behind it: state"
    )


def test_a_state_may_be_written_in_another_way(told: ToldLog) -> None:
    told.do("UPDATE runs SET state = jsonb_pretty(state::jsonb)")
    assert told.verify().difference is None


@pytest.mark.parametrize("page", [1, 7, 1_000])
def test_the_size_of_the_pages_does_not_matter(
    told: ToldLog, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(ranges, "PAGE_EVENTS", page)
    assert told.verify().difference is None
    here = _middle(told, "runs")
    told.do("UPDATE runs SET state = '{}' WHERE from_position = %s", here)
    told.do("UPDATE sessions SET state = '{}' WHERE from_position > %s", here)
    assert told.found() == (here, "projection")


@pytest.mark.parametrize("size", nightly_but([10, 25], [25]))
def test_ranges_are_looked_over_by_several_processes(
    told: ToldLog, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", size)
    whole = told.verify()
    assert whole.difference is None
    assert (whole.checked.position, whole.began) == (told.last, 0)
    here = _middle(told, "runs")
    told.do("UPDATE runs SET state = '{}' WHERE from_position = %s", here)
    told.do("UPDATE sessions SET version = 0 WHERE from_position > %s", here)
    told.do("UPDATE events SET actor_token = 'me' WHERE position > %s", here)
    assert told.found() == (here, "projection")


def test_a_missing_row_is_named(told: ToldLog) -> None:
    here = _middle(told, "runs")
    told.do("DELETE FROM runs WHERE from_position = %s", here)
    assert told.found() == (here, "projection")
    assert told.says().endswith("that begins here is missing")
    told.do("TRUNCATE runs")
    first = told.one("SELECT min(position) FROM events WHERE type = 'SpawnRequested'")
    assert told.found() == (first, "projection")


def _copied(told: ToldLog, table: str, row: int, **changes: object) -> None:
    """A copy of the row that began at a position, with some values changed."""
    (columns,) = (columns_of(one) for one in PROJECTIONS if one.name == table)
    names = [*columns, *SPAN_COLUMNS]
    values = ", ".join("%s" if name in changes else name for name in names)
    given = [changes[name] for name in names if name in changes]
    told.do(
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM saved_{table}"
        " WHERE from_position = %s",
        *given,
        row,
    )


def test_a_row_that_no_event_made_is_named(told: ToldLog) -> None:
    row = _middle(told, "sessions")
    between = row + 1
    ended = told.one("SELECT to_position FROM sessions WHERE from_position = %s", row)
    assert ended > between
    _copied(told, "sessions", row, from_position=between)
    told.do("UPDATE sessions SET to_position = %s WHERE from_position = %s", between, row)
    assert told.found() == (between, "projection")
    assert told.says().endswith("begins here that no event made")


@pytest.mark.parametrize("position", [3, 30])
def test_a_row_of_nobody_is_named(told: ToldLog, position: int) -> None:
    row = _middle(told, "sessions")
    _copied(
        told,
        "sessions",
        row,
        session_key="agent:main:nobody",
        from_position=position,
        to_position=FOREVER,
    )
    assert told.says() == (
        f"position {position}: a row of session agent:main:nobody begins here that no event made"
    )
    later = _middle(told, "runs")
    told.do("UPDATE runs SET version = 0 WHERE from_position = %s", later)
    assert told.found() == (position, "projection")


@pytest.mark.parametrize("by", [-1, 1])
def test_a_row_that_ends_at_another_position_is_named(told: ToldLog, by: int) -> None:
    row = _middle(told, "runs")
    end = int(told.one("SELECT to_position FROM runs WHERE from_position = %s", row))
    told.do("UPDATE runs SET to_position = to_position + %s WHERE from_position = %s", by, row)
    assert told.found() == (max(row, min(end, end + by)), "projection")
    assert f"begins at position {row} ends at position {end + by} and must end at" in told.says()


def test_a_row_that_ended_and_is_true_is_named(told: ToldLog) -> None:
    row = int(told.one(f"SELECT max(from_position) FROM runs WHERE to_position = {FOREVER}"))
    told.do("UPDATE runs SET to_position = %s WHERE from_position = %s", row + 1, row)
    assert told.found() == (row + 1, "projection")
    assert "must end at no position (it is true still)" in told.says()
