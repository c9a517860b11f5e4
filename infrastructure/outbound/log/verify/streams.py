"""The order inside of streams, and the commits by which events came."""

from collections.abc import Mapping, Sequence

from application.ports.verifications import Difference
from infrastructure.outbound.log.codec.binary import encode_column
from infrastructure.outbound.log.verify.chain import Link
from infrastructure.outbound.log.verify.difference import first_difference
from infrastructure.outbound.log.verify.rows import ReadConnection, StoredEventRow, one_row

_PREDECESSORS = (
    "SELECT t.at, e.position FROM unnest(%b::text[], %b::int[], %b::bigint[])"
    " AS t (stream, version, at) LEFT JOIN events e"
    " ON e.stream = t.stream AND e.version = t.version - 1"
)
_COMMITS = (
    "SELECT last_position, (extract(epoch FROM recorded_at) * 1000000)::bigint FROM commits"
    " WHERE last_position BETWEEN %s AND %s"
)

_LAST_END = (
    "SELECT greatest((SELECT max(last_position) FROM commits WHERE last_position < %(position)s),"
    " (SELECT max(position) FROM events WHERE position < %(position)s AND recorded_at <>"
    " (SELECT recorded_at FROM events WHERE position = %(position)s)), 0)"
)


class StreamVersions:
    """Follows the versions of streams through a range of positions."""

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection
        self._versions: dict[str, int] = {}

    def check(self, rows: Sequence[StoredEventRow]) -> Difference | None:
        """Each event of a stream has the version behind the one before it; the first has 1."""
        firsts: list[StoredEventRow] = []
        versions = self._versions
        for row in rows:
            known = versions.get(row.stream)
            if known is None:
                firsts.append(row)
            elif row.version != known + 1:
                text = f"{_event_label(row)} follows version {known}"
                return first_difference((self._check_firsts(firsts), _stream_fault(row, text)))
            versions[row.stream] = row.version
        return self._check_firsts(firsts)

    def _check_firsts(self, firsts: Sequence[StoredEventRow]) -> Difference | None:
        """Those whose predecessor stands in front of the range."""
        older = {row.position: row for row in firsts if row.version != 1}
        if not older:
            return None
        found = self._connection.execute(
            _PREDECESSORS,
            [
                encode_column("text", [row.stream for row in older.values()]),
                encode_column("int", [row.version for row in older.values()]),
                encode_column("bigint", list(older)),
            ],
        ).fetchall()
        return first_difference(
            _stream_fault(older[here], f"{_event_label(older[here])} has no version before it")
            for here, predecessor in found
            if predecessor is None or predecessor >= here
        )


def _event_label(row: StoredEventRow) -> str:
    return f"version {row.version} of {row.stream[:600]}"


def _stream_fault(row: StoredEventRow, text: str) -> Difference:
    return Difference(row.position, "version", text)


def commits_between(connection: ReadConnection, first: int, last: int) -> dict[int, int]:
    """The last positions of the commits that ended there, with their instants in microseconds."""
    return dict(connection.execute(_COMMITS, [first, last]).fetchall())


def last_end_before(connection: ReadConnection, position: int) -> int:
    """The last position of the last transaction that ended in front of a position, by the commits
    or because the instant changes there; 0 when there is none."""
    (end,) = one_row(connection, _LAST_END, {"position": position})
    return int(end)


def check_commits(
    link: Link, rows: Sequence[StoredEventRow], found: Mapping[int, int]
) -> Difference | None:
    """Each commit ends where an append ends and has its instant; where the instant changes, there
    was a commit. `found` are those from the position of the link on."""
    before: Link | StoredEventRow = link
    for row in rows:
        changes = row.recorded_at != before.recorded_at and before.position > 0
        if changes and before.position not in found:
            text = "the commit that ended here is not in the table of commits"
            return Difference(before.position, "commit", text)
        at = found.get(row.position)
        if at is not None and (at != row.recorded_at or row.append_last != row.position):
            text = "the table of commits says of a commit what the event does not"
            return Difference(row.position, "commit", text)
        before = row
    return None
