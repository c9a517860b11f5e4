"""A log that ends where it must not, or was chained anew, is found as far as it can be."""

import pytest

from application.projections.fold import FOREVER
from tests.support.builders.damaged_log import ToldLog

pytestmark = pytest.mark.server

HERE = 40


def _cut(told: ToldLog, *, commits: bool = True, rows: bool = True) -> int:
    """Take everything behind a commit away, as an older backup would have it."""
    query = "SELECT max(last_position) FROM commits WHERE last_position <= %s"
    end = int(told.one(query, HERE)) if rows and commits else HERE
    told.do("DELETE FROM events WHERE position > %s", end)
    if commits:
        told.do("DELETE FROM commits WHERE last_position > %s", end)
    if rows:
        for table in ("runs", "sessions"):
            told.do(f"DELETE FROM {table} WHERE from_position > %s", end)
            told.do(f"UPDATE {table} SET to_position = {FOREVER} WHERE to_position > %s", end)
        told.restore_states()
    told.do(
        "UPDATE log_head SET (position, recorded_at, chain_hash) = (SELECT position,"
        " recorded_at, chain_hash FROM events ORDER BY position DESC LIMIT 1)"
    )
    return end


def test_truncated_tail_is_found_by_the_head(told: ToldLog) -> None:
    told.do("DELETE FROM events WHERE position > %s", HERE)
    assert told.found() == (HERE + 1, "truncated")
    assert told.says().endswith(
        f"the log ends at position {HERE} and its head says {told.head().position}"
    )


@pytest.mark.parametrize(
    ("left", "kind"), [("commits", "truncated"), ("rows", "projection")], ids=["commits", "rows"]
)
def test_truncated_tail_is_found_by_what_is_left(told: ToldLog, left: str, kind: str) -> None:
    _cut(told, **{left: False})
    assert told.found() == (HERE + 1, kind)


def test_restored_backup_is_found_by_a_noted_head(told: ToldLog) -> None:
    noted = told.head()
    assert told.verify(head=noted).difference is None
    end = _cut(told)
    assert told.verify().difference is None
    assert told.found(head=noted) == (end + 1, "truncated")
    assert f"and the head given went to {noted.position}" in told.says(head=noted)


def test_log_chained_anew_is_found_by_a_noted_head(told: ToldLog) -> None:
    noted = told.head()
    told.do("UPDATE events SET actor_token = 'me' WHERE position = %s", HERE)
    told.rechain()
    assert told.verify().difference is None
    assert told.found(head=noted) == (noted.position, "rewritten")
    assert told.says(head=noted).endswith("not that of the head given: the log was rewritten")


@pytest.mark.parametrize(
    ("change", "behind"),
    [
        ("chain_hash = sha256(chain_hash)", 0),
        ("recorded_at = recorded_at + interval '1 second'", 0),
        ("position = position - 2", 1),
    ],
)
def test_changed_head_is_found(told: ToldLog, change: str, behind: int) -> None:
    told.do(f"UPDATE log_head SET {change}")
    assert told.found() == (told.last - behind, "head")


LAST_QUEUED = "SELECT max(position) FROM events WHERE type = 'RunQueued'"
AT_HERE = f"SELECT {HERE}"
IMPOSSIBLE = {
    "another stream": (LAST_QUEUED, "stream = 'log:config', version = 3", "projection"),
    "an unknown stream": (
        "SELECT max(position) FROM events WHERE type = 'SpawnRequested'",
        "stream = 'run:00000000-0000-4000-8000-00000000ffff'",
        "projection",
    ),
    "an event out of turn": (
        LAST_QUEUED,
        """type = 'RunArchived', state = '{"reason":"due","transcriptPath":null}'""",
        "projection",
    ),
    "an older instant": (AT_HERE, "recorded_at = recorded_at - interval '1 day'", "order"),
    "an unknown type": (AT_HERE, "type = 'os.system'", "unreadable"),
    "another type": ("SELECT 5", "type = 'RunAnnounced'", "unreadable"),
    "an interrupted append": (
        "SELECT min(position) + 1 FROM events WHERE append_last > position + 1",
        "command_id = gen_random_uuid()",
        "append",
    ),
    "a version left out": (
        "SELECT max(position) FROM events WHERE version > 3",
        "version = version + 1",
        "version",
    ),
    "a version of the configuration": (
        "SELECT max(position) FROM events WHERE stream = 'log:config'",
        "version = version + 1",
        "version",
    ),
    "a version before its time": (
        "SELECT min(position) FROM events WHERE stream = 'session:agent:main:main'",
        "version = 900",
        "version",
    ),
}
"""The query of a position, what is changed there, and the kind of the difference."""


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_event_is_found_though_chained_anew(told: ToldLog, name: str) -> None:
    query, change, kind = IMPOSSIBLE[name]
    here = told.one(query)
    told.do(f"UPDATE events SET {change} WHERE position = %s", here)
    told.rechain()
    assert told.found() == (here, kind)


def test_append_that_ends_early_is_found_though_chained_anew(told: ToldLog) -> None:
    here = told.one("SELECT max(position) FROM events WHERE append_last = position")
    told.do("UPDATE events SET append_last = position - 1 WHERE position = %s", here)
    before = told.one("SELECT max(position) FROM events WHERE append_last = %s", here)
    told.rechain()
    assert told.found() == (before + 1 if before else here, "append")


def test_lost_and_changed_commits_are_found(told: ToldLog) -> None:
    end = int(told.one("SELECT min(last_position) FROM commits WHERE last_position > %s", HERE))
    told.do("UPDATE commits SET recorded_at = recorded_at + interval '1 microsecond'")
    assert told.found() == (told.one("SELECT min(last_position) FROM commits"), "commit")
    told.mend()
    told.do("DELETE FROM commits WHERE last_position = %s", end)
    assert told.found() == (end, "commit")
