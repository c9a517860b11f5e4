"""What does not fit into memory while a file is written or verified: it lies in a temporary file
that has no name, so nothing of it stays, in whatever way the process ends."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Self
from uuid import UUID

from pydantic import BaseModel

from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import run_stream, session_stream

CACHE_KIB = 16_384
ROWS_AT_ONCE = 1_000

_TABLES = (
    "CREATE TABLE states (stream TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE mentions (content_id BLOB, owner BLOB, bytes INTEGER, hmac TEXT,"
    " position INTEGER, place TEXT, stream TEXT)",
    "CREATE TABLE keys (session_id BLOB PRIMARY KEY, key BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE transcripts (run_id BLOB PRIMARY KEY, owner BLOB, position INTEGER,"
    " entries INTEGER, bytes INTEGER, hmac TEXT) WITHOUT ROWID",
)


class SpooledMention(NamedTuple):
    """A text as the first event that refers to it does; `owner` is the session under whose key it
    is, None when that cannot be told."""

    content_id: bytes
    owner: bytes | None
    bytes: int
    hmac: str
    position: int
    place: str
    stream: str


class SpooledTranscript(NamedTuple):
    """A transcript as the event that ended its run sealed it."""

    run_id: bytes
    owner: bytes | None
    position: int
    entries: int
    bytes: int
    hmac: str


class Spool:
    """Implements `StatesBefore` for a fold without a database. To be closed."""

    def __init__(self) -> None:
        # The empty name is that of a temporary file which is gone with its last holder.
        self._database = sqlite3.connect("", isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "PRAGMA temp_store = FILE",
            f"PRAGMA cache_size = -{CACHE_KIB}",
            *_TABLES,
            # Never ended: each statement by itself would be a transaction.
            "BEGIN",
        ):
            self._database.execute(statement)

    def close(self) -> None:
        """Forget everything."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, states: Iterable[tuple[str, BaseModel]]) -> None:
        """Put states away that leave the memory."""
        self._database.executemany(
            "INSERT OR REPLACE INTO states VALUES (?, ?)",
            [
                (stream, state.__pydantic_serializer__.to_json(state, exclude_none=True))
                for stream, state in states
            ],
        )

    def runs(self, run_ids: Sequence[UUID], _at: int) -> Iterator[Run]:
        """The states of runs that were put away."""
        for state in self._states(map(run_stream, run_ids)):
            yield Run.model_validate_json(state)

    def sessions(self, keys: Sequence[str], _at: int) -> Iterator[Session]:
        """The states of sessions that were put away."""
        for state in self._states(map(session_stream, keys)):
            yield Session.model_validate_json(state)

    def _states(self, streams: Iterable[str]) -> Iterator[bytes]:
        for stream in streams:
            query = "SELECT state FROM states WHERE stream = ?"
            row = self._database.execute(query, [stream]).fetchone()
            if row is not None:
                yield row[0]

    def add_mentions(self, mentions: Iterable[SpooledMention]) -> None:
        """Note texts that events refer to, in the order of the events."""
        statement = "INSERT INTO mentions VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._database.executemany(statement, mentions)

    def mentions(self) -> Iterator[SpooledMention]:
        """Them all by their ids, the first mention of each first."""
        query = "SELECT * FROM mentions ORDER BY content_id, position"
        return map(SpooledMention._make, self._database.execute(query))

    def mentioned_ids(self) -> Iterator[list[UUID]]:
        """The ids of all texts that were noted, in order and some at a time."""
        query = "SELECT DISTINCT content_id FROM mentions ORDER BY content_id"
        cursor = self._database.execute(query)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield [UUID(bytes=row[0]) for row in rows]

    def add_keys(self, keys: Iterable[tuple[bytes, bytes]]) -> None:
        """Note keys by their sessions."""
        self._database.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", keys)

    def key(self, session_id: bytes) -> bytes | None:
        """The key of a session."""
        query = "SELECT key FROM keys WHERE session_id = ?"
        row = self._database.execute(query, [session_id]).fetchone()
        return row[0] if row is not None else None

    def all_keys(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys by their sessions."""
        return iter(self._database.execute("SELECT session_id, key FROM keys ORDER BY session_id"))

    def add_transcripts(self, transcripts: Iterable[SpooledTranscript]) -> None:
        """Note sealed transcripts."""
        statement = "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?, ?)"
        self._database.executemany(statement, transcripts)

    def transcripts(self) -> Iterator[SpooledTranscript]:
        """Them all by their runs."""
        query = "SELECT * FROM transcripts ORDER BY run_id"
        return map(SpooledTranscript._make, self._database.execute(query))
