"""Table rows of a simulation, the same that the writer would insert."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar
from uuid import UUID

from application.log.event_log import Content, ContentKey
from application.projections.fold import RowChanges, RowSpan
from application.projections.run_rows import RUNS, RunRow
from application.projections.session_rows import SESSIONS, SessionRow
from benchmarks.history.world.simulated_log import Entry
from infrastructure.outbound.log.append.batch import Batch, StoredRow
from infrastructure.outbound.log.append.store import row_arrays
from infrastructure.outbound.log.codec.columns import SPAN_COLUMNS, columns_of

Key = TypeVar("Key")
Row = TypeVar("Row")
Columns = list[list[Any]]

TABLES: dict[str, tuple[str, ...]] = {
    # In the chain's order; the hash is the last column, because it is known last.
    "events": (
        "position",
        "stream",
        "version",
        "type",
        "type_version",
        "recorded_at",
        "occurred_at",
        "event_id",
        "command_id",
        "actor_kind",
        "actor_token",
        "actor_session",
        "causation",
        "correlation",
        "run_id",
        "traceparent",
        "config_revision",
        "writer_version",
        "append_last",
        "state",
        "chain_hash",
    ),
    "commits": ("last_position", "recorded_at"),
    "contents": ("content_id", "session_id", "kind", "bytes", "body"),
    "content_keys": ("session_id", "key"),
    "transcript_entries": ("run_id", "sequence", "recorded_at", "kind", "body"),
    "runs": (*columns_of(RUNS), *SPAN_COLUMNS),
    "sessions": (*columns_of(SESSIONS), *SPAN_COLUMNS),
}


class OpenSpans(Generic[Key, Row]):
    """Buffer of the current row of each key, so that no stored row has to be ended later."""

    def __init__(self) -> None:
        self._open: dict[Key, RowSpan[Row]] = {}

    def take(self, changes: "RowChanges[Key, Row]") -> list[RowSpan[Row]]:
        """Return the rows that ended with an append."""
        ended: list[RowSpan[Row]] = []
        for key, position in changes.closed.items():
            before = self._open.pop(key)
            has_state = key in changes.kept
            ended.append(RowSpan(before.row, before.from_position, position, has_state))
        self._open.update(zip(changes.keys, changes.opened, strict=True))
        return ended

    def release(self, key: Key) -> list[RowSpan[Row]]:
        """Return the current row of a key that will not change anymore."""
        span = self._open.pop(key, None)
        return [] if span is None else [span]

    def all(self) -> list[RowSpan[Row]]:
        """Return every current row."""
        return list(self._open.values())


class GatheredRows:
    """Sink that gathers rows until they are taken."""

    def __init__(self) -> None:
        self._runs: OpenSpans[UUID, RunRow] = OpenSpans()
        self._sessions: OpenSpans[str, SessionRow] = OpenSpans()
        self._clear()

    def _clear(self) -> None:
        self._events: list[StoredRow] = []
        self._commits: list[tuple[int, Any]] = []
        self._contents: list[Content] = []
        self._keys: list[ContentKey] = []
        self._entries: list[Entry] = []
        self._run_spans: list[RowSpan[RunRow]] = []
        self._session_spans: list[RowSpan[SessionRow]] = []

    @property
    def events(self) -> Sequence[StoredRow]:
        """Return the gathered events."""
        return self._events

    def append(self, batch: Batch) -> None:
        """Gather the rows of one commit."""
        self._events += batch.events
        self._commits.append((batch.position, batch.recorded_at))
        self._contents += batch.contents
        self._keys += batch.keys
        self._run_spans += self._runs.take(batch.rows["runs"])
        self._session_spans += self._sessions.take(batch.rows["sessions"])

    def entries(self, entries: Iterable[Entry]) -> None:
        """Gather transcript entries."""
        self._entries += entries

    def forget_run(self, run_id: UUID) -> None:
        """Gather the last row of a run."""
        self._run_spans += self._runs.release(run_id)

    def forget_session(self, session_key: str) -> None:
        """Gather the last row of a session."""
        self._session_spans += self._sessions.release(session_key)

    def forget_all(self) -> None:
        """Gather every current row, because the history ends here."""
        self._run_spans += self._runs.all()
        self._session_spans += self._sessions.all()
        self._runs, self._sessions = OpenSpans(), OpenSpans()

    def taken(self) -> dict[str, Columns]:
        """Return the gathered rows except the events, by table, as columns in the order of
        `TABLES`. Start again with none.
        """
        made: dict[str, Columns] = {
            "commits": _turned(self._commits),
            "contents": _content_columns(self._contents),
            "content_keys": [[key.session_id for key in self._keys], [k.key for k in self._keys]],
            "transcript_entries": _turned(
                [(e.run_id, e.sequence, e.recorded_at, e.kind, e.body) for e in self._entries]
            ),
        }
        if self._run_spans:
            made["runs"] = row_arrays(self._run_spans, RUNS)
        if self._session_spans:
            made["sessions"] = row_arrays(self._session_spans, SESSIONS)
        self._clear()
        return {table: columns for table, columns in made.items() if columns and columns[0]}


def _turned(rows: Sequence[tuple[Any, ...]]) -> Columns:
    return [list(column) for column in zip(*rows, strict=True)]


def _content_columns(contents: Sequence[Content]) -> Columns:
    return [
        [content.ref.id for content in contents],
        [content.session_id for content in contents],
        [content.kind for content in contents],
        [content.ref.bytes for content in contents],
        [content.text for content in contents],
    ]
