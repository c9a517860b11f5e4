"""A batch is stored by a statement of its own shape, and the number of shapes is limited."""

from typing import Any

import pytest

from infrastructure.outbound.log.append import store
from infrastructure.outbound.log.append.store import FULLEST, Part, store_query
from tests.support.builders.logged_family import LoggedFamily
from tests.support.servers.running_log import RunningLog

_FILLED = (
    "SELECT (SELECT array_agg(key ORDER BY key) FROM json_each_text(row_to_json(one))"
    " WHERE value IS NOT NULL)"
)
RUNS = f"{_FILLED}, version, stage, outcome, lane, due_kind FROM runs AS one WHERE run_id = %s"
SESSIONS = f"{_FILLED}, version FROM sessions AS one WHERE run_id = %s"
EVENTS = f"{_FILLED}, type FROM events AS one WHERE run_id = %s"
TEXTS = "SELECT count(*), sum(length(body)) FROM contents WHERE session_id = %s"


def test_query_of_single_rows_has_no_arrays() -> None:
    row = (Part("runs", ("run_id", "version"), True), Part("events", ("position", "state"), True))
    query = store_query((Part("head"), Part("commit"), *row))
    assert "unnest" not in query
    assert "SELECT $6::uuid, $7::int)" in query


async def test_batch_beyond_the_shapes_is_stored_alike(
    postgres: RunningLog, family: LoggedFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first life is the only one in which the requester's session is observed.
    for name in ("first", "own"):
        await family.live(name)
    monkeypatch.setattr(store, "_shapes", {FULLEST})
    monkeypatch.setattr(store, "SHAPES_MAX", 1)
    await family.live("fullest")
    assert store._shapes == {FULLEST}
    own, fullest = [await _stored(postgres, family, name) for name in ("own", "fullest")]
    assert own == fullest
    assert all(own)


async def _stored(postgres: RunningLog, family: LoggedFamily, name: str) -> list[Any]:
    """Return the rows of a life: which columns are filled, and with what if it is the same."""
    run_id, session_id = family.id(name), family.session_id(name)
    return [
        await postgres.ask(f"{RUNS} ORDER BY from_position", run_id),
        await postgres.ask(f"{SESSIONS} ORDER BY from_position", run_id),
        await postgres.ask(f"{EVENTS} ORDER BY position", run_id),
        await postgres.ask(TEXTS, session_id),
    ]
