"""Runs by their labels: of each session the newest, without those that were refused."""

from application.projections.fold import FOREVER


def _newest(condition: str) -> str:
    return (
        "SELECT state FROM (SELECT DISTINCT ON (session_id) state, created_position FROM runs"
        f" WHERE {condition} AND to_position = {FOREVER} AND stage <> 'refused'"
        " ORDER BY session_id, created_position DESC) AS newest"
        " ORDER BY created_position DESC LIMIT %s"
    )


NAMED = _newest("label = ANY(%s) AND root = %s")
CALLED = _newest("requester = %s AND starts_with(label, %s)")
