"""Count spawn requests by agent in a PostgreSQL table of your own.

    SPAWNLOG_DATABASE_URL=postgresql://… python spawn_counts.py postgresql://…

The argument is the database of your table. The program processes the log up to its end, prints the
counts and exits; with `--follow` it continues until Ctrl-C. It resumes where it last ended.
"""

import argparse
import contextlib
from typing import Any

from eventsourcing.dispatch import singledispatchmethod
from eventsourcing.persistence import Tracking
from eventsourcing.postgres import PostgresDatastore, PostgresTrackingRecorder
from eventsourcing.projection import Projection, ProjectionRunner
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from domain.run.events import SpawnRequested
from infrastructure.eventsourcing import LoggedEvent, Spawnlog

CATCH_UP_SECONDS_MAX = 3600.0


class SpawnCounts(PostgresTrackingRecorder):
    """A table of counts, and beside it the position up to which they are right."""

    def __init__(self, datastore: PostgresDatastore, **kwargs: Any) -> None:
        super().__init__(datastore, **kwargs)
        schema = Identifier(datastore.schema)
        self.table = SQL("{}.{}").format(schema, Identifier("spawn_counts"))
        create = SQL("CREATE TABLE IF NOT EXISTS {} (agent text PRIMARY KEY, spawns bigint)")
        self.sql_create_statements = [
            SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema),
            create.format(self.table),
            *self.sql_create_statements,
        ]

    def add(self, agent: str, tracking: Tracking) -> None:
        """Count one spawn. Count and position change in one transaction, or neither does."""
        add = SQL(
            "INSERT INTO {} AS counts VALUES (%s, 1)"
            " ON CONFLICT (agent) DO UPDATE SET spawns = counts.spawns + 1"
        ).format(self.table)
        with self.datastore.transaction(commit=True) as cursor:
            cursor.execute(add, [agent])
            self._insert_tracking(cursor, tracking)

    def counts(self) -> dict[str, int]:
        """Return the counts by agent."""
        query = SQL("SELECT agent, spawns FROM {} ORDER BY agent").format(self.table)
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute(query)
            return {row["agent"]: row["spawns"] for row in cursor.fetchall()}


class CountSpawns(Projection[SpawnCounts]):
    """Processes each event of the log once, in order."""

    name = "spawn_counts"

    @singledispatchmethod
    def process_event(self, event: LoggedEvent, tracking: Tracking) -> None:
        """Track the position of an event that counts nothing."""
        self.view.insert_tracking(tracking)

    @process_event.register
    def _(self, event: SpawnRequested, tracking: Tracking) -> None:
        self.view.add(event.requested_agent_id or "(unknown)", tracking)


def environment(url: str) -> dict[str, str]:
    """Return the library's settings for a database of your own."""
    given = conninfo_to_dict(url)
    names = ("dbname", "host", "port", "user", "password")
    return {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_SCHEMA": "my_views",
        **{f"POSTGRES_{name.upper()}": str(given.get(name, "")) for name in names},
    }


def main() -> None:
    """Process the log and print the counts."""
    parser = argparse.ArgumentParser(description="Count spawn requests by agent.")
    parser.add_argument("database_url", help="the database of the table of counts")
    parser.add_argument("--follow", action="store_true", help="continue until Ctrl-C")
    arguments = parser.parse_args()
    with ProjectionRunner(
        application_class=Spawnlog,
        projection_class=CountSpawns,
        view_class=SpawnCounts,
        env=environment(arguments.database_url),
    ) as runner:
        if arguments.follow:
            with contextlib.suppress(KeyboardInterrupt):
                runner.run_forever()
        last = runner.app.recorder.max_notification_id()
        runner.wait(last, timeout=CATCH_UP_SECONDS_MAX)
        for agent, spawns in runner.view.counts().items():
            print(f"{agent:12} {spawns:6}")
        print(f"{'position':12} {last or 0:6}")


if __name__ == "__main__":
    main()
