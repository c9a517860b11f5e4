"""Every change of a log is found, with the first bad position."""

from typing import NamedTuple

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as some

from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER
from infrastructure.outbound.log.codec.columns import SPAN_COLUMNS, columns_of
from infrastructure.outbound.log.verify import contents, ranges, transcripts, verify
from infrastructure.outbound.log.verify.rows import open_read_connection
from tests.support.builders.damaged_log import RepairableLog
from tests.support.tiers import examples, nightly_but, stride

pytestmark = pytest.mark.server
HERE = 40
CHANGES = {
    "text": "coalesce({0}, '') || 'x'",
    "smallint": "coalesce({0}, 0) + {1}",
    "integer": "coalesce({0}, 0) + {1}",
    "bigint": "coalesce({0}, 0) + {1}",
    "timestamp with time zone": "coalesce({0}, now()) + interval '1 microsecond'",
    "uuid": "gen_random_uuid()",
    "bytea": "substr({0}, 2)",
}
"""Another value for a column, by its type."""
CHANGED_ELSEWHERE = {
    "events": ["position", "state"],
    "runs": ["run_id", "from_position", "to_position", "state"],
    "sessions": ["session_key", "from_position", "to_position", "state"],
}
"""Columns of each table whose changes are found in another way."""

MIDDLE = {
    table: f"SELECT from_position FROM {table} WHERE to_position < {FOREVER} ORDER BY 1 LIMIT 1"
    f" OFFSET (SELECT count(*) / 2 FROM {table} WHERE to_position < {FOREVER})"
    for table in ("runs", "sessions")
}
"""Query of a row that began in the middle and is not current anymore."""
FIRST_TRUE = f"SELECT min(from_position) FROM runs WHERE to_position = {FOREVER}"
LAST = "SELECT max(position) FROM events"
LAST_QUEUED = f"{LAST} WHERE type = 'RunQueued'"
RESULT = "(SELECT min(content_id::text)::uuid FROM contents WHERE kind = 'result')"
AT_RESULT = (
    "SELECT min(position) FROM events"
    f" WHERE position({RESULT}::text IN convert_from(state, 'utf8')) > 0"
)
SECOND_END = "SELECT position FROM events WHERE type = 'RunEnded' ORDER BY 1 LIMIT 1 OFFSET 1"
ITS_RUN = "run_id = (SELECT run_id FROM events WHERE position = :here)"


class Damage(NamedTuple):
    """A statement about `:here`, and the difference that is found there."""

    kind: str
    statement: str
    at: int | str = HERE
    """The position, or the query of it."""
    says: str = ""


def event(kind: str, change: str, at: int | str = HERE, says: str = "") -> Damage:
    return Damage(kind, f"UPDATE events SET {change} WHERE position = :here", at, says)


def row(table: str, change: str, at: str, says: str) -> Damage:
    statement = f"UPDATE {table} SET {change} WHERE from_position = :here"
    return Damage("projection", statement, at, f"differs from its events: {says}")


def row_end(by: str, at: str) -> Damage:
    change = f"UPDATE runs SET to_position = to_position {by} WHERE from_position ="
    says = " and must end at"
    return Damage("projection", f"{change} ({MIDDLE['runs']})", at.format(MIDDLE["runs"]), says)


def text(change: str, says: str) -> Damage:
    statement = f"UPDATE contents SET {change} WHERE content_id = {RESULT}"
    return Damage("content", statement, AT_RESULT, says)


def transcript(statement: str, says: str) -> Damage:
    return Damage("transcript", statement.format(ITS_RUN), SECOND_END, says)


DAMAGES = {
    "bytes": Damage(
        "changed",
        "UPDATE events SET state = set_byte(state, 1, 0) WHERE position >= :here",
        says=": its bytes differ from the recorded ones (chain)",
    ),
    "the first event": event("changed", "actor_token = 'me'", 1),
    "the last event": event("changed", "actor_token = 'me'", LAST),
    "an absent text made empty": event(
        "changed",
        "traceparent = ''",
        "SELECT min(position) FROM events WHERE traceparent IS NULL",
    ),
    "an instant beyond all time": event("changed", "occurred_at = 'infinity'"),
    "a hash": event("hash", "chain_hash = sha256(chain_hash)", says="its chain hash was changed"),
    "the last hash": event("hash", "chain_hash = sha256(chain_hash)", LAST),
    "an event deleted": Damage(
        "missing", "DELETE FROM events WHERE position = :here", says=f"position {HERE} is missing"
    ),
    "events deleted": Damage(
        "missing",
        "DELETE FROM events WHERE position BETWEEN :here AND :here + 2",
        says=f"positions {HERE} to {HERE + 2} are missing",
    ),
    "the first events deleted": Damage(
        "missing",
        "DELETE FROM events WHERE position < 3",
        at=1,
        says="positions 1 to 2 are missing",
    ),
    "the last events deleted": Damage(
        "truncated", "DELETE FROM events WHERE position >= :here", says=f"{HERE - 1}, but its head"
    ),
    "the hash of the head": Damage(
        "head", "UPDATE log_head SET chain_hash = sha256(chain_hash)", LAST
    ),
    "the instant of the head": Damage(
        "head", "UPDATE log_head SET recorded_at = recorded_at + interval '1 second'", LAST
    ),
    "the position of the head": Damage(
        "head",
        "UPDATE log_head SET position = position - 2",
        "SELECT max(position) - 1 FROM events",
    ),
    "the instant of a commit": Damage(
        "commit",
        "UPDATE commits SET recorded_at = recorded_at + interval '1 microsecond'",
        "SELECT min(last_position) FROM commits",
    ),
    "a commit deleted": Damage(
        "commit",
        "DELETE FROM commits WHERE last_position = :here",
        f"SELECT min(last_position) FROM commits WHERE last_position > {HERE}",
    ),
    "a state missing": row("runs", "state = NULL", FIRST_TRUE, "state"),
    "a field of a state": row(
        "runs",
        "state = jsonb_set(state::jsonb, '{depth}', '7')::text",
        FIRST_TRUE,
        "state (depth)",
    ),
    "a state that is none": row("sessions", "state = '{}'", MIDDLE["sessions"], "state"),
    "a past state that others are folded from": Damage(
        "projection",
        "UPDATE sessions SET state = NULL WHERE from_position = :here",
        "SELECT min(from_position) FROM sessions"
        f" WHERE to_position < {FOREVER} AND state IS NOT NULL",
        says=" must hold a state for later rows: state",
    ),
    "a row deleted": Damage(
        "projection",
        "DELETE FROM runs WHERE from_position = :here",
        MIDDLE["runs"],
        says="that begins here is missing",
    ),
    "all rows deleted": Damage(
        "projection",
        "TRUNCATE runs",
        "SELECT min(position) FROM events WHERE type = 'SpawnRequested'",
    ),
    "a row ends early": row_end(
        "- 1", "SELECT to_position - 1 FROM runs WHERE from_position = ({})"
    ),
    "a row ends late": row_end("+ 1", "SELECT to_position FROM runs WHERE from_position = ({})"),
    "a true row ends": Damage(
        "projection",
        "UPDATE runs SET to_position = :here WHERE from_position = :here - 1",
        f"SELECT max(from_position) + 1 FROM runs WHERE to_position = {FOREVER}",
        says="must end at no position (it is current)",
    ),
    "a longer text": text("body = body || ' '", "was changed: it has "),
    "another text": text("body = upper(body)", "it differs from the recorded text"),
    "the size of a text": text("bytes = bytes + 1", "its other columns were changed"),
    "the session of a text": text(
        "session_id = gen_random_uuid()", "its other columns were changed"
    ),
    "the keys": Damage("content", "UPDATE content_keys SET key = sha256(key)", at=1),
    "an entry": transcript(
        "UPDATE transcript_entries SET body = replace(body, 'middle', 'muddle') WHERE {}",
        "differ from the sealed ones",
    ),
    "the instants of entries": transcript(
        "UPDATE transcript_entries SET recorded_at = recorded_at + interval '1 s' WHERE {}",
        "differ from the sealed ones",
    ),
    "the numbers of entries": transcript(
        "UPDATE transcript_entries SET sequence = sequence + 10 WHERE {}", "it has 3 entries of"
    ),
    "an entry deleted": transcript(
        "DELETE FROM transcript_entries WHERE {} AND sequence = 2", "it has 2 entries of"
    ),
    "all entries deleted": transcript(
        "DELETE FROM transcript_entries WHERE {}", "it has 0 entries of 0 bytes instead of 3 of"
    ),
}
CHAINED_ANEW = {
    "another stream": event("projection", "stream = 'log:config', version = 3", LAST_QUEUED),
    "an unknown stream": event(
        "projection",
        "stream = 'run:00000000-0000-4000-8000-00000000ffff'",
        f"{LAST} WHERE type = 'SpawnRequested'",
    ),
    "an event out of turn": event(
        "projection",
        """type = 'RunArchived', state = '{"reason":"due","transcriptPath":null}'""",
        LAST_QUEUED,
    ),
    "an older instant": event("order", "recorded_at = recorded_at - interval '1 day'"),
    "an unknown type": event("unreadable", "type = 'os.system'"),
    "another type": event("unreadable", "type = 'RunAnnounced'", 5),
    "an interrupted append": event(
        "append",
        "command_id = gen_random_uuid()",
        "SELECT min(position) + 1 FROM events WHERE append_last > position + 1",
    ),
    "an append that ends early": event(
        "append", "append_last = position - 1", f"{LAST} WHERE append_last = position"
    ),
    "a version left out": event("version", "version = version + 1", f"{LAST} WHERE version > 3"),
    "a version of the configuration": event(
        "version", "version = version + 1", f"{LAST} WHERE stream = 'log:config'"
    ),
    "a version before its time": event(
        "version",
        "version = 900",
        "SELECT min(position) FROM events WHERE stream = 'session:agent:main:main'",
    ),
}


def do(told_log: RepairableLog, damage: Damage) -> int:
    """Return where the damage is done."""
    here = int(told_log.one(damage.at)) if isinstance(damage.at, str) else damage.at
    assert told_log.do(damage.statement.replace(":here", str(here))) != 0
    return here


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_with_its_position(intact_log: RepairableLog, name: str) -> None:
    damage = DAMAGES[name]
    here = do(intact_log, damage)
    found = intact_log.verify().difference
    assert found is not None
    assert (found.position, found.kind) == (here, damage.kind)
    assert str(found).startswith(f"position {here}: ")
    assert damage.says in str(found)


@pytest.mark.parametrize("name", CHAINED_ANEW)
def test_impossible_event_is_found_though_chained_anew(
    intact_log: RepairableLog, name: str
) -> None:
    here = do(intact_log, CHAINED_ANEW[name])
    intact_log.rechain()
    assert intact_log.found() == (here, CHAINED_ANEW[name].kind)


@pytest.mark.parametrize("table", CHANGED_ELSEWHERE)
def test_changed_column_is_named(intact_log: RepairableLog, table: str) -> None:
    columns = intact_log.ask(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s"
        " AND NOT column_name = ANY(%s) ORDER BY ordinal_position",
        table,
        CHANGED_ELSEWHERE[table],
    )
    at = "position" if table == "events" else "from_position"
    here = HERE if table == "events" else intact_log.one(MIDDLE[table])
    # No two events of a stream have one version, and rows keep states by version.
    more = 1000 if table == "events" else 1
    for column, kind in columns[:: stride(4)]:
        change = CHANGES[kind].format(column, more)
        intact_log.do(f"UPDATE {table} SET {column} = {change} WHERE {at} = %s", here)
        found = intact_log.verify().difference
        assert found is not None, column
        assert found.position == here
        if table != "events":
            assert found.kind == "projection"
            assert str(found).startswith(f"position {here}: the row of {table.removesuffix('s')} ")
            assert str(found).endswith(f"differs from its events: {column}")
        else:
            assert found.kind == ("hash" if column == "chain_hash" else "changed")
        intact_log.mend()


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=some.integers(0, 10**6), byte=some.integers(0, 10**6), flip=some.integers(1, 255))
def test_any_flipped_byte_of_any_event_is_found(
    intact_log: RepairableLog, place: int, byte: int, flip: int
) -> None:
    position = place % intact_log.last + 1
    for column, kind in (("state", "changed"), ("chain_hash", "hash")):
        size = intact_log.one(
            f"SELECT octet_length({column}) FROM events WHERE position = %s", position
        )
        at = byte % size
        change = f"set_byte({column}, {at}, get_byte({column}, {at}) # {flip})"
        intact_log.do(f"UPDATE events SET {column} = {change} WHERE position = %s", position)
        assert intact_log.found() == (position, kind)
        intact_log.mend()


def test_deleted_events_are_found_though_the_gap_was_closed(intact_log: RepairableLog) -> None:
    intact_log.do("DELETE FROM events WHERE position BETWEEN %s AND %s", HERE, HERE + 1)
    intact_log.do("DELETE FROM commits WHERE last_position BETWEEN %s AND %s", HERE, HERE + 1)
    intact_log.move(HERE + 2, -2)
    assert intact_log.found() == (HERE, "missing")
    assert f"positions {HERE} to {HERE + 1} are missing: later" in intact_log.says()


@pytest.mark.parametrize("other", [HERE + 1, HERE + 17])
def test_swapped_events_are_named(intact_log: RepairableLog, other: int) -> None:
    intact_log.do("UPDATE events SET position = -1 WHERE position = %s", HERE)
    intact_log.do("UPDATE events SET position = %s WHERE position = %s", HERE, other)
    intact_log.do("UPDATE events SET position = %s WHERE position = -1", other)
    text = f"position {HERE}: it was swapped with the event at position {other}"
    assert intact_log.says() == text
    for here in (HERE, other):
        hash_there = "(SELECT chain_hash FROM saved_events WHERE position = %s)"
        intact_log.do(
            f"UPDATE events SET chain_hash = {hash_there} WHERE position = %s", here, here
        )
    assert intact_log.says() == text


FORGED = (
    "INSERT INTO events SELECT %s, 'session:agent:main:forged', 1, type, type_version, recorded_at,"
    " occurred_at, gen_random_uuid(), command_id, actor_kind, actor_token, actor_session,"
    " causation, correlation, run_id, traceparent, config_revision, writer_version, append_last,"
    " chain_hash, replace(convert_from(state, 'utf8'), 'agent:main:main', 'agent:main:forged')"
    "::bytea FROM saved_events WHERE type = 'SessionObserved' LIMIT 1"
)


def test_inserted_event_is_named_though_linked_well(intact_log: RepairableLog) -> None:
    intact_log.move(HERE, 1)
    intact_log.do(FORGED, HERE)
    assert intact_log.found() == (HERE, "inserted")
    assert f"the event that was recorded at position {HERE} is now at" in intact_log.says()
    intact_log.do(
        "UPDATE events SET append_last = position, recorded_at = (SELECT recorded_at FROM events"
        " WHERE position = %s) WHERE position = %s",
        HERE - 1,
        HERE,
    )
    hashes = intact_log.ask(
        "SELECT chain_hash FROM events WHERE position > %s ORDER BY position", HERE
    )
    intact_log.rechain()
    for position, (digest,) in enumerate(hashes, start=HERE + 1):
        intact_log.do("UPDATE events SET chain_hash = %s WHERE position = %s", digest, position)
    assert intact_log.found() == (HERE, "inserted")


def cut(told_log: RepairableLog, *, commits: bool = True, rows: bool = True) -> int:
    """Remove everything after a commit, as in an older backup."""
    query = "SELECT max(last_position) FROM commits WHERE last_position <= %s"
    end = int(told_log.one(query, HERE)) if rows and commits else HERE
    told_log.do("DELETE FROM events WHERE position > %s", end)
    if commits:
        told_log.do("DELETE FROM commits WHERE last_position > %s", end)
    if rows:
        for table in MIDDLE:
            told_log.do(f"DELETE FROM {table} WHERE from_position > %s", end)
            told_log.do(f"UPDATE {table} SET to_position = {FOREVER} WHERE to_position > %s", end)
        told_log.restore_states()
    told_log.do(
        "UPDATE log_head SET (position, recorded_at, chain_hash) = (SELECT position,"
        " recorded_at, chain_hash FROM events ORDER BY position DESC LIMIT 1)"
    )
    return end


@pytest.mark.parametrize(("left", "kind"), [("commits", "truncated"), ("rows", "projection")])
def test_truncated_tail_is_found_by_what_is_left(
    intact_log: RepairableLog, left: str, kind: str
) -> None:
    cut(intact_log, **{left: False})
    assert intact_log.found() == (HERE + 1, kind)


def test_restored_backup_is_found_by_a_noted_head(intact_log: RepairableLog) -> None:
    noted = intact_log.head()
    assert intact_log.verify(head=noted).difference is None
    end = cut(intact_log)
    assert intact_log.verify().difference is None
    assert intact_log.found(head=noted) == (end + 1, "truncated")
    assert f"but the head given reached {noted.position}" in intact_log.says(head=noted)


def test_log_chained_anew_is_found_by_a_noted_head(intact_log: RepairableLog) -> None:
    noted = intact_log.head()
    intact_log.do("UPDATE events SET actor_token = 'me' WHERE position = %s", HERE)
    intact_log.rechain()
    assert intact_log.verify().difference is None
    assert intact_log.found(head=noted) == (noted.position, "rewritten")
    assert intact_log.says(head=noted).endswith("not that of the head given: the log was rewritten")


def insert_copy(told_log: RepairableLog, row: int, **changes: object) -> None:
    """Insert the session row that began at a position once more, with some values changed."""
    (columns,) = (
        columns_of(projection) for projection in PROJECTIONS if projection.name == "sessions"
    )
    names = [*columns, *SPAN_COLUMNS]
    values = ", ".join("%s" if name in changes else name for name in names)
    told_log.do(
        f"INSERT INTO sessions ({', '.join(names)}) SELECT {values} FROM saved_sessions"
        " WHERE from_position = %s",
        *(changes[name] for name in names if name in changes),
        row,
    )


def test_row_that_no_event_made_is_named(intact_log: RepairableLog) -> None:
    row = intact_log.one(MIDDLE["sessions"])
    assert (
        intact_log.one("SELECT to_position FROM sessions WHERE from_position = %s", row) > row + 1
    )
    insert_copy(intact_log, row, from_position=row + 1)
    intact_log.do("UPDATE sessions SET to_position = %s WHERE from_position = %s", row + 1, row)
    assert intact_log.found() == (row + 1, "projection")
    assert intact_log.says().endswith("begins here without an event")
    nobody = "agent:main:nobody"
    insert_copy(intact_log, row, session_key=nobody, from_position=30, to_position=FOREVER)
    intact_log.do("UPDATE runs SET version = 0 WHERE from_position > 30")
    assert (
        intact_log.says() == f"position 30: a row of session {nobody} begins here without an event"
    )


def test_state_may_be_written_in_another_way(intact_log: RepairableLog) -> None:
    intact_log.do("UPDATE runs SET state = jsonb_pretty(state::jsonb)")
    assert intact_log.verify().difference is None


@pytest.mark.parametrize(
    ("size", "page"), nightly_but([(10, 4), (25, 1_000), (40_000, 7)], [(25, 1_000), (40_000, 7)])
)
def test_first_damage_of_all_ranges_and_pages_is_named(
    intact_log: RepairableLog, monkeypatch: pytest.MonkeyPatch, size: int, page: int
) -> None:
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", size)
    monkeypatch.setattr(ranges, "PAGE_EVENTS", page)
    whole = intact_log.verify()
    assert whole.difference is None
    assert (whole.checked.position, whole.began) == (intact_log.last, 0)
    here = intact_log.one(MIDDLE["runs"])
    intact_log.do("UPDATE runs SET state = '{}' WHERE from_position = %s", here)
    intact_log.do("UPDATE sessions SET version = 0 WHERE from_position > %s", here)
    intact_log.do("UPDATE events SET actor_token = 'me' WHERE position > %s", here)
    assert intact_log.found() == (here, "projection")


def erase(told_log: RepairableLog, session_id: object) -> int:
    """Return how many texts are gone with their key."""
    told_log.do("DELETE FROM content_keys WHERE session_id = %s", session_id)
    return told_log.do("DELETE FROM contents WHERE session_id = %s", session_id)


def test_text_is_missing_unless_its_key_is_too(intact_log: RepairableLog) -> None:
    here = intact_log.one(AT_RESULT)
    session_id = intact_log.one(f"SELECT session_id FROM contents WHERE content_id = {RESULT}")
    intact_log.do(f"DELETE FROM contents WHERE content_id = {RESULT}")
    assert intact_log.found() == (here, "content")
    assert intact_log.says().endswith("is missing, but the key of its session exists")
    intact_log.do("DELETE FROM content_keys WHERE session_id = %s", session_id)
    assert "the text exists, but the key of its session is gone" in intact_log.says()
    erased = erase(intact_log, session_id)
    verified = intact_log.verify()
    assert verified.difference is None
    assert verified.checked.counts.erased == erased + 1 + 1, "the transcript is erased too"


def test_provided_transcript_is_erased_with_its_session(intact_log: RepairableLog) -> None:
    found = "SELECT content_id, session_id FROM contents WHERE kind = 'transcript'"
    ((content_id, owner),) = intact_log.ask(found)
    key = intact_log.one("SELECT session_key FROM sessions WHERE session_id = %s LIMIT 1", owner)
    intact_log.do("DELETE FROM contents WHERE content_id = %s", content_id)
    assert f"the content of session:{key} (content {content_id}) is missing" in intact_log.says()
    others = erase(intact_log, owner)
    verified = intact_log.verify()
    assert verified.difference is None
    assert verified.checked.counts.erased == 1 + others


def test_texts_are_compared_in_bounded_batches(
    intact_log: RepairableLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = intact_log.verify().checked
    monkeypatch.setattr(contents, "READ_BYTES_MAX", 400)
    monkeypatch.setattr(transcripts, "READ_BYTES_MAX", 400)
    assert intact_log.verify().checked == whole
    mentioned = (
        "SELECT count(*) FROM contents WHERE EXISTS (SELECT FROM events"
        " WHERE position(content_id::text IN convert_from(state, 'utf8')) > 0)"
    )
    of_runs = "SELECT count(DISTINCT run_id) FROM transcript_entries"
    counts = (whole.counts.contents, whole.counts.transcripts, whole.counts.erased)
    assert counts == (intact_log.one(mentioned), intact_log.one(of_runs), 0)


def test_verification_cannot_write(intact_log: RepairableLog) -> None:
    with open_read_connection(intact_log.url) as connection:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("DELETE FROM events")
