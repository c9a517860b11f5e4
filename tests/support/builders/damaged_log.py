"""Log with every type of event, to be damaged and repaired by tests."""

from pathlib import Path
from typing import Any

import psycopg

from application.log.envelope import Actor, Envelope, Provenance
from application.projections.fold import FOREVER
from domain.run.facts import Ingredient, ScriptReceipt
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.log.codec.chain import chain_hash
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.events import COLUMNS
from infrastructure.outbound.log.read.fold_input import (
    EVENTS_OF_RUNS,
    fold_rows,
    query_of_sessions,
    values_of_runs,
)
from infrastructure.outbound.log.verify.verify import Verification, VerifyOrder, run_verification
from infrastructure.outbound.log.verify.whole_tables import ExpectedHead
from tests.support.builders.stored_family import KeptFamily
from tests.support.builders.storytelling import ref
from tests.support.builders.whole_story import tell_everything
from tests.support.servers.running_log import RunningLog

TABLES = (
    *("events", "log_head", "commits", "runs", "sessions"),
    *("contents", "content_keys", "transcript_entries"),
)


class RepairableLog:
    """Log of a database, with damages and their verification."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.state_file = folder / "state.json"

    def save(self) -> None:
        self.do("; ".join(f"CREATE TABLE saved_{table} AS TABLE {table}" for table in TABLES))

    def mend(self) -> None:
        copies = [f"INSERT INTO {table} SELECT * FROM saved_{table}" for table in TABLES]
        self.do("; ".join([f"TRUNCATE {', '.join(TABLES)}", *copies]))
        self.state_file.unlink(missing_ok=True)

    def do(self, statement: str, *values: Any) -> int:
        """Change something; gives how many rows it was."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement, values or None).rowcount

    def ask(self, query: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SET timezone = 'UTC'")
            return connection.execute(query, values or None).fetchall()

    def one(self, query: str, *values: Any) -> Any:
        """Return the only value of a query."""
        ((value,),) = self.ask(query, *values)
        return value

    @property
    def last(self) -> int:
        return int(self.one("SELECT max(position) FROM events"))

    def head(self) -> ExpectedHead:
        ((position, digest),) = self.ask("SELECT position, chain_hash FROM log_head")
        return ExpectedHead(position, digest, "the head given")

    def move(self, first: int, by: int) -> None:
        """Give the events from `first` on other positions; the head stays the last one's."""
        for table, column in (("events", "position"), ("commits", "last_position")):
            where = f"WHERE {column} >= {first}"
            self.do(f"UPDATE {table} SET {column} = -{column} {where}")
            self.do(f"UPDATE {table} SET {column} = -{column} + {by} WHERE {column} < 0")
        self.do("UPDATE log_head SET position = position + %s", by)

    def restore_states(self) -> None:
        open_row = f"to_position = {FOREVER}"
        runs, sessions = (
            [
                (row[0], self.last)
                for row in self.ask(f"SELECT {key} FROM {where} AND state IS NULL")
            ]
            for key, where in (
                ("run_id", f"runs WHERE {open_row}"),
                ("session_key", f"sessions WHERE {open_row}"),
            )
        )
        with psycopg.connect(self.url, autocommit=True) as connection:
            rows = connection.execute(EVENTS_OF_RUNS, values_of_runs(runs), binary=True)
            of_runs = [item.last for item in fold_rows(rows.fetchall(), EventMapper())]
            query = query_of_sessions([(key, [at]) for key, at in sessions])
            rows = connection.execute(*query, binary=True)
            of_sessions = [item.last for item in fold_rows(rows.fetchall(), EventMapper())]
        for run in of_runs:
            assert isinstance(run, Run)
            change = f"UPDATE runs SET state = %s WHERE run_id = %s AND {open_row}"
            self.do(change, run.to_json().decode(), run.run_id)
        for session in of_sessions:
            assert isinstance(session, Session)
            change = f"UPDATE sessions SET state = %s WHERE session_key = %s AND {open_row}"
            self.do(change, session.to_json().decode(), session.session_key)

    def rechain(self) -> None:
        """Recompute all hashes, as an attacker with write access would."""
        digests = [b""]
        rows = self.ask(f"SELECT {COLUMNS} FROM events ORDER BY position")
        for row in rows:
            digests.append(chain_hash(digests[-1], _envelope(row), row[-1]))
        self.do(
            "UPDATE events SET chain_hash = new.hash FROM unnest(%s::bigint[], %s::bytea[])"
            " AS new (position, hash) WHERE events.position = new.position",
            [row[0] for row in rows],
            digests[1:],
        )
        self.do(
            "UPDATE log_head SET (position, recorded_at, chain_hash) = (SELECT position,"
            " recorded_at, chain_hash FROM events ORDER BY position DESC LIMIT 1)"
        )

    def verify(
        self, *, head: ExpectedHead | None = None, resume: bool = False, **more: Any
    ) -> Verification:
        return run_verification(
            self.url, VerifyOrder(state_file=self.state_file, head=head, resume=resume, **more)
        )

    def found(self, **more: Any) -> tuple[int, str]:
        difference = self.verify(**more).difference
        assert difference is not None
        return difference.position, difference.kind

    def says(self, **more: Any) -> str:
        return str(self.verify(**more).difference)


def _envelope(row: Any) -> Envelope:
    names = [name.strip() for name in COLUMNS.split(",")]
    values = dict(zip(names, row, strict=True))
    actor = {name: values.pop(f"actor_{name}") for name in ("kind", "token", "session")}
    sources = ("causation", "correlation", "run_id", "traceparent", "config_revision")
    source = {name: values.pop(name) for name in sources}
    values.pop("state")
    return Envelope(**values, provenance=Provenance(actor=Actor(**actor), **source))


async def tell_all(running: RunningLog, folder: Path) -> KeptFamily:
    """Record every type of event, a text in every place, and sealed transcripts."""
    family = KeptFamily(running.log, running.pool, folder, max_children=4)
    await tell_everything(running, family)
    other_family = KeptFamily(running.log, running.pool, folder, root="agent:main:other", first=900)
    await other_family.spawn("ample", preamble="keep it short", label="ample")
    receipt = ScriptReceipt(
        id="identity",
        uri="identity.sh",
        format="json",
        priority=1.0,
        position="append",
        outcome="injected",
        duration_ms=3,
        output=ref("output"),
        injected=ref("injected"),
        error=ref("error"),
    )
    await other_family.resolve("ample", receipts=(receipt,))
    ingredients = (Ingredient(source="task", position="task", content=ref("ingredient")),)
    await other_family.create("ample", ingredients=ingredients)
    await other_family.live("after")
    return family
