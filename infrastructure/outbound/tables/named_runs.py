"""Runs by their labels: of each session the newest, without those that were refused."""

from application.projections.fold import FOREVER


def _newest(condition: str, first: str = "") -> str:
    return (
        "SELECT state FROM (SELECT DISTINCT ON (session_id) state, label, created_position"
        f" FROM runs WHERE {condition} AND to_position = {FOREVER} AND stage <> 'refused'"
        " ORDER BY session_id, created_position DESC) AS newest"
        f" ORDER BY {first}created_position DESC LIMIT %s"
    )


RUNS_BY_LABEL = _newest("label = ANY(%s) AND root = %s")
# However many labels begin so: the one that is just this is among those that are given.
RUNS_BY_LABEL_PREFIX = _newest("requester = %s AND starts_with(label, %s)", "label = %s DESC, ")
