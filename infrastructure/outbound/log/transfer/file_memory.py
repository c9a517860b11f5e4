"""Bounded memory for the facts that a verification of a file needs until its end.

They are kept in a temporary SQLite database: some MiB in memory, the rest in an unnamed file that
only its owner can read and that disappears with the process.
"""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from msgspec import convert

from domain.run.facts import TranscriptSeal
from domain.run.state import Run
from domain.session.state import Session
from domain.states import MissingStates, State
from domain.values.record import ContentRef
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.verify.contents import ContentMention
from infrastructure.outbound.log.verify.transcripts import RecordedTranscript

CACHE_KIB_MAX = 8 * 1024
PAGE_ROWS = 1_000
KEYS_MAX = 1_000
_BEGIN = f"""
PRAGMA temp_store = FILE;
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -{CACHE_KIB_MAX};
CREATE TABLE states (key BLOB PRIMARY KEY, state BLOB);
CREATE TABLE mentions (id BLOB, position INTEGER, stream TEXT, place TEXT, owner BLOB, ref BLOB);
CREATE TABLE keys (key BLOB PRIMARY KEY, value BLOB);
CREATE TABLE transcripts (run_id BLOB PRIMARY KEY, position INTEGER, owner BLOB, seal BLOB);
BEGIN;
"""
# The transaction never ends: a row that commits takes twice as long.


class FileMemory:
    """Store of states, text mentions and sealed transcripts; implements `StatesBefore`.

    Close it after use.

    Raises:
        UserError: The temporary file cannot be written or read.
    """

    def __init__(self) -> None:
        with _explained():
            self._database = sqlite3.connect("", isolation_level=None)
            self._database.executescript(_BEGIN)
        # Texts of one session are close together.
        self._key_of = lru_cache(maxsize=KEYS_MAX)(
            lambda session_id: self._value_of("value FROM keys", session_id.bytes)
        )

    def close(self) -> None:
        """Delete the database and its file."""
        self._database.close()

    def put(self, states: Sequence[State]) -> None:
        """Store these states, replacing earlier ones."""
        self._insert("states", 2, ((_key(state), state.to_json()) for state in states))

    def load(self, missing: MissingStates, _at: int) -> Iterator[State]:
        """Yield the stored states. The file is read once, so there is one state of each run or
        session."""
        for run_id in missing.runs:
            if (state := self._value_of("state FROM states", run_id.bytes)) is not None:
                yield Run.from_json(state)
        for key in missing.sessions:
            if (state := self._value_of("state FROM states", key.encode())) is not None:
                yield Session.from_json(state)

    def add_mentions(self, mentions: Iterable[ContentMention]) -> None:
        """Store these references to texts."""
        self._insert(
            "mentions",
            6,
            (
                (ref.id.bytes, position, stream, place, _bytes_of(owner), ref.to_json())
                for position, stream, place, owner, ref in mentions
            ),
        )

    def add_transcripts(self, transcripts: Iterable[RecordedTranscript]) -> None:
        """Store these seals, replacing earlier ones of the same runs."""
        self._insert(
            "transcripts",
            4,
            (
                (run_id.bytes, position, _bytes_of(owner), seal.to_json())
                for position, run_id, owner, seal in transcripts
            ),
        )

    def add_keys(self, keys: Iterable[tuple[UUID, bytes]]) -> None:
        """Store these keys of sessions."""
        self._insert("keys", 2, ((session_id.bytes, key) for session_id, key in keys))

    def key_of(self, session_id: UUID | None) -> bytes | None:
        """Return the key of a session, or None if the file has none."""
        return self._key_of(session_id) if session_id is not None else None

    def mentions(self) -> Iterator[ContentMention]:
        """Yield all references to texts, ordered by the id of the text."""
        for _, position, stream, place, owner, ref in self._rows("mentions ORDER BY id, rowid"):
            yield ContentMention(
                position, stream, place, _uuid_of(owner), ContentRef.from_json(ref)
            )

    def transcripts(self) -> Iterator[RecordedTranscript]:
        """Yield all sealed transcripts, ordered by run."""
        for run_id, position, owner, seal in self._rows("transcripts ORDER BY run_id"):
            yield RecordedTranscript(
                position, UUID(bytes=run_id), _uuid_of(owner), TranscriptSeal.from_json(seal)
            )

    def _insert(self, table: str, columns: int, rows: Iterable[tuple[Any, ...]]) -> None:
        places = ", ".join("?" * columns)
        with _explained():
            self._database.executemany(f"REPLACE INTO {table} VALUES ({places})", rows)

    def _value_of(self, column: str, key: bytes) -> bytes | None:
        with _explained():
            query = f"SELECT {column} WHERE key = ?"
            found: tuple[bytes] | None = self._database.execute(query, (key,)).fetchone()
        return found[0] if found is not None else None

    def _rows(self, clauses: str) -> Iterator[tuple[Any, ...]]:
        with _explained():
            cursor = self._database.execute(f"SELECT * FROM {clauses}")
        while True:
            with _explained():
                rows = cursor.fetchmany(PAGE_ROWS)
            if not rows:
                return
            yield from rows


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise UserError(
            f"a temporary file failed: {error}; set TMPDIR to a folder with more free space than"
            " the file needs"
        ) from error


def _key(state: State) -> bytes:
    return state.run_id.bytes if isinstance(state, Run) else state.session_key.encode()


def _bytes_of(owner: UUID | None) -> bytes | None:
    return owner.bytes if owner is not None else None


def _uuid_of(owner: bytes | None) -> UUID | None:
    return convert(owner, UUID) if owner is not None else None
