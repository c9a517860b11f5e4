"""Checks of the commits that events belong to, and of the stream of the configuration."""

from collections.abc import Mapping, Sequence

from application.ports.verifications import Difference
from domain.values.record import CONFIG_STREAM
from infrastructure.outbound.log.verify.chain import Link
from infrastructure.outbound.log.verify.difference import first_difference
from infrastructure.outbound.log.verify.rows import ReadConnection, StoredEventRow, one_row

_CONFIG_VERSION = (
    "SELECT coalesce(max(version), 0) FROM events WHERE stream = %s AND position <= %s"
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


def config_version_at(connection: ReadConnection, position: int) -> int:
    """Return the version of the configuration's stream as of a position; 0 if it has no event."""
    (version,) = one_row(connection, _CONFIG_VERSION, [CONFIG_STREAM, position])
    return int(version)


def commits_between(connection: ReadConnection, first: int, last: int) -> dict[int, int]:
    """Return the last positions of the commits in this range, each with its time in
    microseconds."""
    return dict(connection.execute(_COMMITS, [first, last]).fetchall())


def last_end_before(connection: ReadConnection, position: int) -> int:
    """Return the last position of the last transaction that ended before a position, or 0.

    A transaction ends at a recorded commit, and wherever the recorded time changes.
    """
    (end,) = one_row(connection, _LAST_END, {"position": position})
    return int(end)


def check_commits(
    link: Link, rows: Sequence[StoredEventRow], found: Mapping[int, int]
) -> Difference | None:
    """Check that each commit ends with an append and has its time, and that a commit exists
    wherever the time changes. `found` are the commits from the link's position on."""
    position, recorded_at = link.position, link.recorded_at
    first = position + 1
    wrong: list[Difference] = []
    for row in rows:
        if row.recorded_at != recorded_at:
            if position > 0 and position not in found:
                text = "the commit that ended here is not in the table of commits"
                wrong.append(Difference(position, "commit", text))
                break
            recorded_at = row.recorded_at
        position = row.position
    for ended, at in found.items():
        if first <= ended < first + len(rows):
            row = rows[ended - first]
            if at != row.recorded_at or row.append_last != ended:
                text = "the table of commits and the event disagree about a commit"
                wrong.append(Difference(ended, "commit", text))
    return first_difference(wrong)
