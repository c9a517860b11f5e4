"""How a query is carried out, and how many pages that touches."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg


class PlannedQuery(NamedTuple):
    """A query as it is sent, and values such as a server sends with it."""

    sql: str
    values: Sequence[Any] | Mapping[str, Any]


def plan_of(connection: psycopg.Connection[Any], query: PlannedQuery) -> str:
    """How it was carried out; what it changed is undone."""
    with connection.transaction(force_rollback=True):
        cursor = connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, SUMMARY OFF) {query.sql}", query.values
        )
        return "\n".join(row[0] for row in cursor.fetchall())


def pages_touched(plan: str) -> int:
    """How many pages were looked at, wherever they were."""
    whole = re.search(r"Buffers: shared (.*)", plan)
    return sum(int(pages) for pages in re.findall(r"(?:hit|read)=(\d+)", whole[1])) if whole else 0
