"""Checks over the whole log: its head, the ends of rows, and rows without an event.

Everything is read in one snapshot, so that concurrent appends are not reported as differences.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from application.ports.verifications import Difference
from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER, STATE_VERSIONS_MAX
from application.projections.projection import Projection
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import RUN_PREFIX, SESSION_PREFIX
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.format import require_known_format
from infrastructure.outbound.log.schema.projection_versions import VERSIONS
from infrastructure.outbound.log.verify.difference import first_difference, format_positions
from infrastructure.outbound.log.verify.rows import (
    ReadConnection,
    one_row,
    whole_table_transaction,
)

_HEAD = (
    "SELECT h.log_id, h.format, h.position, h.chain_hash, h.recorded_at, e.position, e.chain_hash,"
    " e.recorded_at, (SELECT coalesce(max(last_position), 0) FROM commits) FROM log_head h"
    " LEFT JOIN (SELECT position, chain_hash, recorded_at FROM events"
    " ORDER BY position DESC LIMIT 1) AS e ON true"
)

# Rows of a key that do not meet: the lower one of the actual and the expected end is the first
# position where the table deviates from the log. Earlier releases left states in more past rows;
# those are accepted.
_ENDS = (
    "SELECT count(*) FILTER (WHERE from_position <= %(head)s), coalesce(max(from_position), 0),"
    " min(greatest(from_position, least(to_position, expected_end)))"
    " FILTER (WHERE to_position <> expected_end), min(from_position) FILTER (WHERE is_bare"
    f" AND version / {STATE_VERSIONS_MAX} < next_version / {STATE_VERSIONS_MAX})"
    " FROM (SELECT from_position, to_position, version, state IS NULL AS is_bare,"
    f" coalesce(lead(from_position) OVER next, {FOREVER}) AS expected_end,"
    " lead(version) OVER next AS next_version FROM {table}"
    " WINDOW next AS (PARTITION BY {key} ORDER BY from_position)) AS t"
)
_KEY_OF = "SELECT {key} FROM {table} WHERE from_position = %s AND state IS NULL LIMIT 1"
_WRONG_END = (
    "SELECT {key}, from_position, to_position, expected_end FROM (SELECT {key}, from_position,"
    f" to_position, coalesce(lead(from_position) OVER (PARTITION BY {{key}}"
    f" ORDER BY from_position), {FOREVER}) AS expected_end FROM {{table}}) AS t"
    " WHERE to_position <> expected_end"
    " AND greatest(from_position, least(to_position, expected_end)) = %s LIMIT 1"
)
_WITHOUT_EVENT = (
    "SELECT t.from_position, t.{key} FROM {table} t LEFT JOIN events e"
    " ON e.position = t.from_position AND e.stream = '{prefix}' || t.{key}"
    " WHERE t.from_position <= %s AND e.position IS NULL ORDER BY 1 LIMIT 1"
)
_PREFIXES: Mapping[type[Any], str] = {Run: RUN_PREFIX, Session: SESSION_PREFIX}


@dataclass(frozen=True, slots=True)
class StoredHead:
    """The last event as stored in its table. `head_hash` is its hash according to the head."""

    log_id: UUID
    position: int
    chain_hash: bytes
    head_hash: bytes

    def __str__(self) -> str:
        return f"{self.position}:{self.chain_hash.hex()}"


@dataclass(frozen=True, slots=True)
class LogOverview:
    """Result of the checks before the walk: the head to walk up to, the number of rows of each
    projection that began up to it, and the first difference."""

    head: StoredHead
    rows: Mapping[str, int]
    difference: Difference | None


@dataclass(frozen=True, slots=True)
class ExpectedHead:
    """A head noted earlier. `source` says where it was noted."""

    position: int
    chain_hash: bytes
    source: str


def open_log(connection: ReadConnection, noted: tuple[ExpectedHead, ...]) -> LogOverview:
    """Check the head and the ends of all rows.

    Raises:
        UserError: This program cannot judge the log.
    """
    with whole_table_transaction(connection):
        # Take the readers' lock before the snapshot: if a rebuild swapped the tables in between,
        # they would contain rows that the snapshot does not see.
        connection.execute(
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
            " SET LOCAL enable_hashjoin = on;"
            f" LOCK TABLE {', '.join(table.name for table in PROJECTIONS)} IN ACCESS SHARE MODE"
        )
        _require_verifiable(connection)
        head, wrong = _head(connection)
        found = [wrong, *(_compare_noted_head(connection, head, expected) for expected in noted)]
        rows: dict[str, int] = {}
        for projection in PROJECTIONS:
            rows[projection.name], wrong = _check_row_ends(connection, projection, head.position)
            found.append(wrong)
    return LogOverview(head, rows, first_difference(found))


def _require_verifiable(connection: ReadConnection) -> None:
    require_known_format(
        int(one_row(connection, "SELECT coalesce(max(format), 0) FROM log_head")[0])
    )
    rows = connection.execute("SELECT name, version FROM projections").fetchall()
    stale = [name for name, version in rows if VERSIONS.get(name, version) != version]
    if stale:
        raise UserError(
            f"the rows of {', '.join(stale)} are of another version than this program writes;"
            " run `spawnlog log rebuild` first"
        )


def _head(connection: ReadConnection) -> tuple[StoredHead, Difference | None]:
    row = connection.execute(_HEAD).fetchone()
    if row is None:
        raise UserError("the log has no head; restore it from a backup")
    log_id, _, position, chain_hash, recorded_at, last, last_hash, last_recorded_at, commit = row
    head = StoredHead(log_id, last or 0, bytes(last_hash or b""), bytes(chain_hash))
    if head.position < position:
        gap = f"{format_positions(head.position + 1, position)} missing"
        text = f"{gap}: the log ends at position {head.position}, but its head says {position}"
        return head, Difference(head.position + 1, "truncated", text)
    if head.position > position:
        text = f"the log continues to position {head.position}, but its head says {position}"
        return head, Difference(position + 1, "head", text)
    if head.position < commit:
        gap = f"{format_positions(head.position + 1, commit)} missing"
        text = f"{gap}: a commit ended at position {commit}"
        return head, Difference(head.position + 1, "truncated", text)
    if last and (head.head_hash, recorded_at) != (head.chain_hash, last_recorded_at):
        text = "the head of the log and the last event disagree"
        return head, Difference(head.position, "head", text)
    return head, None


def _compare_noted_head(
    connection: ReadConnection, head: StoredHead, noted: ExpectedHead
) -> Difference | None:
    if noted.position > head.position:
        text = (
            f"{format_positions(head.position + 1, noted.position)} missing: the log "
            "ends at position"
            f" {head.position}, but {noted.source} reached {noted.position}"
        )
        return Difference(head.position + 1, "truncated", text)
    query = "SELECT chain_hash FROM events WHERE position = %s"
    row = connection.execute(query, [noted.position]).fetchone()
    if row is not None and bytes(row[0]) != noted.chain_hash:
        text = f"its chain hash is not that of {noted.source}: the log was rewritten"
        return Difference(noted.position, "rewritten", text)
    return None


def _check_row_ends(
    connection: ReadConnection, table: Projection[Any, Any], head: int
) -> tuple[int, Difference | None]:
    """Count the rows that began up to the head, and report the first with a wrong end or a missing
    state."""
    names = {"table": table.name, "key": table.key}
    count, newest, wrong, bare = one_row(connection, _ENDS.format(**names), {"head": head})
    found = []
    if wrong is not None:
        key, begins, ends, expected_end = one_row(connection, _WRONG_END.format(**names), [wrong])
        text = (
            f"the row of {table.noun} {key} that begins at position {begins} ends at"
            f" {_end(ends)} and must end at {_end(expected_end)}: to_position"
        )
        found.append(Difference(wrong, "projection", text))
    if bare is not None:
        (key,) = one_row(connection, _KEY_OF.format(**names), [bare])
        text = f"the row of {table.noun} {key} must hold a state for later rows: state"
        found.append(Difference(bare, "projection", text))
    if newest > head:
        text = f"a row of {table.name} begins at position {newest}, after the end of the log"
        found.append(Difference(head + 1, "projection", text))
    return count, first_difference(found)


def _end(position: int) -> str:
    return "no position (it is current)" if position == FOREVER else f"position {position}"


def row_without_event(connection: ReadConnection, head: int) -> Difference | None:
    """Return the first row up to the head that begins at no event of its own stream, or None."""
    with whole_table_transaction(connection):
        connection.execute("SET LOCAL enable_hashjoin = on")
        found = []
        for table in PROJECTIONS:
            query = _WITHOUT_EVENT.format(
                table=table.name, key=table.key, prefix=_PREFIXES[table.state]
            )
            row = connection.execute(query, [head]).fetchone()
            if row is not None:
                text = f"a row of {table.noun} {row[1]} begins here without an event"
                found.append(Difference(max(1, row[0]), "projection", text))
    return first_difference(found)
