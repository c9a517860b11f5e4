"""A log that ends where it must not, or was chained anew, is found as far as it can be."""

from collections.abc import Callable

import pytest

from application.projections.fold import FOREVER
from tests.support.builders.damaged_log import ToldLog

pytestmark = pytest.mark.server

HERE = 40


def test_a_truncated_tail_is_found_by_the_head(told: ToldLog) -> None:
    told.do("DELETE FROM events WHERE position > %s", HERE)
    assert told.found() == (HERE + 1, "truncated")
    assert told.says().endswith(
        f"the log ends at position {HERE} and its head says {told.head().position}"
    )


def test_a_truncated_tail_is_found_by_the_commits(told: ToldLog) -> None:
    _cut(told, commits=False)
    assert told.found() == (HERE + 1, "truncated")


def test_a_truncated_tail_is_found_by_the_rows(told: ToldLog) -> None:
    _cut(told, rows=False)
    assert told.found() == (HERE + 1, "projection")


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


def test_a_log_that_was_put_back_is_found_by_a_noted_head(told: ToldLog) -> None:
    noted = told.head()
    assert told.verify(head=noted).difference is None
    end = _cut(told)
    assert told.verify().difference is None
    assert told.found(head=noted) == (end + 1, "truncated")
    assert f"and the head given went to {noted.position}" in told.says(head=noted)


def test_a_log_that_was_chained_anew_is_found_by_a_noted_head(told: ToldLog) -> None:
    noted = told.head()
    told.do("UPDATE events SET actor_token = 'me' WHERE position = %s", HERE)
    told.rechain()
    assert told.verify().difference is None
    assert told.found(head=noted) == (noted.position, "rewritten")
    assert told.says(head=noted).endswith("not that of the head given: the log was rewritten")


@pytest.mark.parametrize(
    "change",
    [
        "chain_hash = sha256(chain_hash)",
        "recorded_at = recorded_at + interval '1 second'",
    ],
)
def test_a_head_that_says_something_else_is_found(told: ToldLog, change: str) -> None:
    told.do(f"UPDATE log_head SET {change}")
    assert told.found() == (told.last, "head")


def test_a_log_that_goes_on_behind_its_head_is_found(told: ToldLog) -> None:
    told.do("UPDATE log_head SET position = position - 2")
    assert told.found() == (told.last - 1, "head")


Tamper = Callable[[ToldLog], tuple[int, str]]


def _older(told: ToldLog) -> tuple[int, str]:
    told.do("UPDATE events SET recorded_at = recorded_at - interval '1 day' WHERE position = 40")
    return 40, "order"


def _unknown_type(told: ToldLog) -> tuple[int, str]:
    told.do("UPDATE events SET type = 'os.system' WHERE position = 40")
    return 40, "unreadable"


def _other_type(told: ToldLog) -> tuple[int, str]:
    told.do("UPDATE events SET type = 'RunAnnounced' WHERE position = 5")
    return 5, "unreadable"


def _interrupted_append(told: ToldLog) -> tuple[int, str]:
    query = "SELECT min(position) FROM events WHERE append_last > position + 1"
    here = int(told.one(query)) + 1
    told.do("UPDATE events SET command_id = gen_random_uuid() WHERE position = %s", here)
    return here, "append"


def _ended_append(told: ToldLog) -> tuple[int, str]:
    query = "SELECT max(position) FROM events WHERE append_last = position"
    here = int(told.one(query))
    told.do("UPDATE events SET append_last = position - 1 WHERE position = %s", here)
    first = told.one("SELECT max(position) FROM events WHERE append_last = %s", here)
    return (int(first) + 1 if first else here), "append"


def _version_left_out(told: ToldLog) -> tuple[int, str]:
    here = int(told.one("SELECT max(position) FROM events WHERE version > 3"))
    told.do("UPDATE events SET version = version + 1 WHERE position = %s", here)
    return here, "version"


def _version_of_the_configuration(told: ToldLog) -> tuple[int, str]:
    here = int(told.one("SELECT max(position) FROM events WHERE stream = 'log:config'"))
    told.do("UPDATE events SET version = version + 1 WHERE position = %s", here)
    return here, "version"


def _version_before_its_time(told: ToldLog) -> tuple[int, str]:
    query = "SELECT min(position) FROM events WHERE stream = 'session:agent:main:main'"
    here = int(told.one(query))
    told.do("UPDATE events SET version = 900 WHERE position = %s", here)
    return here, "version"


def _other_stream(told: ToldLog) -> tuple[int, str]:
    query = "SELECT max(position) FROM events WHERE type = %s"
    here = int(told.one(query, "RunQueued"))
    told.do("UPDATE events SET stream = 'log:config', version = 3 WHERE position = %s", here)
    return here, "projection"


def _foreign_stream(told: ToldLog) -> tuple[int, str]:
    here = int(told.one("SELECT max(position) FROM events WHERE type = 'SpawnRequested'"))
    told.do(
        "UPDATE events SET stream = 'run:00000000-0000-4000-8000-00000000ffff' WHERE position = %s",
        here,
    )
    return here, "projection"


def _event_out_of_turn(told: ToldLog) -> tuple[int, str]:
    here = int(told.one("SELECT max(position) FROM events WHERE type = 'RunQueued'"))
    told.do("UPDATE events SET type = 'RunArchived', state = %s WHERE position = %s", OTHER, here)
    return here, "projection"


OTHER = b'{"reason":"due","transcriptPath":null}'


@pytest.mark.parametrize(
    "tamper",
    [
        _other_stream,
        _foreign_stream,
        _event_out_of_turn,
        _older,
        _unknown_type,
        _other_type,
        _interrupted_append,
        _ended_append,
        _version_left_out,
        _version_of_the_configuration,
        _version_before_its_time,
    ],
)
def test_what_no_log_can_say_is_found_though_it_was_chained_anew(
    told: ToldLog, tamper: Tamper
) -> None:
    expected = tamper(told)
    told.rechain()
    assert told.found() == expected


def test_a_lost_and_a_changed_commit_are_found(told: ToldLog) -> None:
    end = int(told.one("SELECT min(last_position) FROM commits WHERE last_position > %s", HERE))
    told.do("UPDATE commits SET recorded_at = recorded_at + interval '1 microsecond'")
    assert told.found() == (told.one("SELECT min(last_position) FROM commits"), "commit")
    told.mend()
    told.do("DELETE FROM commits WHERE last_position = %s", end)
    assert told.found() == (end, "commit")
