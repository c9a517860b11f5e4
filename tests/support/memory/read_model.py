"""Reads beside the log, in memory: registry, contents, staged files."""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from application.ports.registry import (
    RESPAWNS_MAX,
    ChangedStream,
    ChangedStreams,
    Comparison,
    InboxQuery,
    LanePlace,
    LaneState,
    Respawn,
    RunCondition,
    RunQuery,
    StatesAsOf,
    StatusRows,
    WaitingLane,
)
from application.projections.run_rows import RunRow
from domain.run.lifecycle import OVER, PREPARING, SETTLED
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import ContentRef
from infrastructure.outbound.log.read.state_cache import StateCaches
from tests.support.memory.store import Line, Store

PREVIEW_CHARS = 200
END_CHARS = 2_000
DEPTH_MAX = 64


class MemoryRegistry:
    """Implements `Registry`."""

    def __init__(self, store: Store, line: Line, remembered: StateCaches | None = None) -> None:
        self._store = store
        self._line = line
        self._remembered = remembered or StateCaches()

    async def run(self, run_id: UUID, *, at: int | None = None) -> Run | None:
        def found() -> Run | None:
            runs = self._store.runs
            row = runs.now(run_id) if at is None else self._store.runs_at(at).of(run_id)
            return row.state if row is not None else None

        return await self._line.ask(found)

    async def run_at_version(self, run_id: UUID, version: int) -> Run | None:
        return await self._line.ask(lambda: self._store.run_at_version(run_id, version))

    async def runs_of_session(self, child_session_key: str, *, limit: int) -> Sequence[Run]:
        """Return the runs of a child session, newest first, without refused ones."""

        def found() -> list[Run]:
            rows = [run for run in self._accepted() if run.child_session_key == child_session_key]
            return [item.state for item in _newest_first(rows)[:limit]]

        return await self._line.ask(found)

    async def runs_by_label(self, tree: str, labels: Sequence[str], *, limit: int) -> Sequence[Run]:
        """Return the newest run of each session of a tree with one of these labels."""

        def found() -> list[Run]:
            rows = [item for item in self._accepted() if item.root == tree and item.label in labels]
            return [item.state for item in _newest_of_sessions(rows)[:limit]]

        return await self._line.ask(found)

    async def runs_by_label_prefix(
        self, requester: str, prefix: str, *, limit: int
    ) -> Sequence[Run]:
        """Return the newest run of each session of a requester whose label has this prefix."""

        def found() -> list[Run]:
            rows = [
                item
                for item in self._accepted()
                if item.requester == requester and (item.label or "").startswith(prefix)
                if item.label is not None
            ]
            ordered = sorted(_newest_of_sessions(rows), key=lambda run: run.label != prefix)
            return [item.state for item in ordered[:limit]]

        return await self._line.ask(found)

    async def runs_by_id_prefix(self, prefix: str, *, limit: int) -> Sequence[Run]:
        def found() -> list[Run]:
            rows = [
                row
                for row in self._store.runs.rows()
                if row.run_id.hex.startswith(prefix.lower().replace("-", ""))
            ]
            return [row.state for row in sorted(rows, key=lambda row: row.run_id)[:limit]]

        return await self._line.ask(found)

    async def runs(
        self,
        query: RunQuery,
        *,
        at: int,
        limit: int,
        after_cursor: int | None = None,
        ascending: bool = False,
    ) -> Sequence[Run]:
        def found() -> list[Run]:
            rows = [row for row in self._store.runs_at(at).rows() if _is_asked_for(row, query)]
            rows.sort(key=lambda row: row.created_position, reverse=not ascending)
            if after_cursor is not None:
                rows = [
                    row
                    for row in rows
                    if (row.created_position > after_cursor) == ascending
                    and row.created_position != after_cursor
                ]
            return [row.state for row in rows[:limit]]

        return await self._line.ask(found)

    async def respawns(self, run_id: UUID, *, at: int) -> Sequence[Respawn]:
        made = RunQuery.where(respawned_from=run_id)
        found = await self.runs(made, at=at, limit=RESPAWNS_MAX, ascending=True)
        return [Respawn(run.run_id, run.requester.session_key) for run in found]

    async def session(self, key_or_id: str, *, at: int | None = None) -> Session | None:
        def found() -> Session | None:
            sessions = self._store.sessions
            then = self._store.sessions_at(at) if at is not None else None
            try:
                session_id = UUID(key_or_id)
            except ValueError:
                row = then.of(key_or_id) if then is not None else sessions.now(key_or_id)
                if row is not None and then is None:
                    span = sessions.current[key_or_id]
                    self._remembered.sessions.store(key_or_id, row.state, span.from_position)
            else:
                rows = then.rows() if then is not None else sessions.rows()
                row = next((row for row in rows if row.session_id == session_id), None)
            return row.state if row is not None else None

        return await self._line.ask(found)

    def last_seen_session(self, session_key: str) -> Session | None:
        remembered = self._remembered.sessions.known([session_key]).get(session_key)
        return remembered[1] if remembered is not None else None

    async def runs_below(self, session_key: str) -> Sequence[Run]:
        """Return the runs of every descendant, parents before children, without refused ones."""
        rows = await self._line.ask(lambda: self._below(session_key, None))
        return [row.state for row in rows]

    async def descendants(self, session_key: str, *, at: int | None = None) -> tuple[int, int]:
        """Return the number of runs below a session that are not settled, and of those that are not
        over.
        """
        rows = await self._line.ask(lambda: self._below(session_key, at))
        return (
            sum(row.stage not in SETTLED for row in rows),
            sum(row.stage not in OVER for row in rows),
        )

    async def inbox(self, query: InboxQuery, *, at: int, after: int, limit: int) -> Sequence[Run]:
        def found() -> Sequence[Run]:
            announced = [
                (place or 0, row.state)
                for row in self._store.runs_at(at).rows()
                for place in [row.parked_position if query.is_parked else row.inbox_position]
                if (place or 0) > after and query.requester in (None, row.requester)
            ]
            announced.sort(key=lambda announcement: announcement[0])
            return [run for _, run in announced[:limit]]

        return await self._line.ask(found)

    async def lanes(self, *, at: int) -> Sequence[LaneState]:
        def places(rows: Iterable[RunRow]) -> tuple[LanePlace, ...]:
            return tuple(
                LanePlace(row.run_id, row.label, row.requester, row.holder) for row in rows
            )

        return await self._line.ask(
            lambda: [
                LaneState(
                    lane,
                    depth,
                    places(member for member in members if member.holder is not None),
                    places(member for member in members if member.holder is None),
                )
                for (lane, depth), members in self._lanes(at)
            ]
        )

    async def waiting_lanes(self, *, width: int) -> Sequence[WaitingLane]:
        """Return all lanes in which a run waits to be claimed, of this width."""

        def found() -> list[WaitingLane]:
            return [
                WaitingLane(
                    *place, sum(member.holder is not None for member in members[:width]) >= width
                )
                for place, members in self._lanes()
                if any(member.stage == "queued" and member.holder is None for member in members)
            ]

        return await self._line.ask(found)

    async def changed_streams(
        self,
        *,
        after: int,
        until: int,
        after_cursor: int,
        events_max: int,
        tree: str | None = None,
    ) -> ChangedStreams:
        """Return the streams whose first event after `after` is between two positions."""

        def found() -> ChangedStreams:
            page = [
                event.envelope
                for event in self._store.events
                if after_cursor < event.envelope.position <= until
                if tree is None or event.envelope.provenance.correlation == tree
            ][:events_max]
            first: dict[str, int] = {}
            for recorded in self._store.events:
                if recorded.envelope.position > after:
                    first.setdefault(recorded.envelope.stream, recorded.envelope.position)
            streams = [
                ChangedStream(event.stream, event.position)
                for event in page
                if first[event.stream] == event.position
            ]
            is_whole = len(page) < events_max
            return ChangedStreams(streams, until if is_whole else page[-1].position)

        return await self._line.ask(found)

    async def states(
        self, run_ids: Sequence[UUID], session_keys: Sequence[str], *, at: Sequence[int]
    ) -> Sequence[StatesAsOf]:
        def found(position: int) -> StatesAsOf:
            runs, sessions = self._store.runs_at(position), self._store.sessions_at(position)
            rows = [row for row in map(runs.of, run_ids) if row is not None]
            others = [row for row in map(sessions.of, session_keys) if row is not None]
            return StatesAsOf(
                {row.run_id: row.state for row in rows},
                {row.session_key: row.state for row in others},
            )

        return await self._line.ask(lambda: [found(item) for item in at])

    async def position_at(self, instant: datetime) -> int:
        def found() -> int:
            before = [commit for commit in self._store.commits if commit.recorded_at <= instant]
            return max(before, default=(None, 0))[1] if before else 0

        return await self._line.ask(found)

    def _accepted(self) -> Iterator[RunRow]:
        return (row for row in self._store.runs.rows() if row.stage != "refused")

    def _lanes(self, at: int | None = None) -> list[tuple[tuple[str, int], list[RunRow]]]:
        places: dict[tuple[str, int], list[RunRow]] = {}
        rows = self._store.runs_at(at).rows() if at is not None else self._store.runs.rows()
        for row in rows:
            if row.lane is not None:
                places.setdefault((row.lane, row.lane_depth or 0), []).append(row)
        for members in places.values():
            members.sort(key=lambda member: member.queued_position or 0)
        return sorted(places.items(), key=lambda item: item[0])

    def _below(self, session_key: str, at: int | None) -> list[RunRow]:
        by_requester: dict[str, list[RunRow]] = {}
        then = self._store.runs_at(at) if at is not None else self._store.runs
        for row in then.rows():
            if row.stage != "refused":
                by_requester.setdefault(row.requester, []).append(row)
        found: list[RunRow] = []
        level = [session_key]
        for _ in range(DEPTH_MAX):
            below = [item for key in level for item in by_requester.get(key, ())]
            found += sorted(below, key=lambda run: run.created_position)
            level = list(
                dict.fromkeys(run.child_session_key for run in below if run.child_session_key)
            )
        return found


def _newest_first(rows: Iterable[RunRow]) -> list[RunRow]:
    return sorted(rows, key=lambda row: row.created_position, reverse=True)


def _newest_of_sessions(rows: Iterable[RunRow]) -> list[RunRow]:
    newest: dict[UUID, RunRow] = {}
    for item in _newest_first(rows):
        newest.setdefault(item.session_id, item)
    return list(newest.values())


_COMPARED: Mapping[Comparison, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "any of": lambda value, values: value in values,
    "begins with": str.startswith,
    "is or begins with": lambda value, either: value in either[0] or value.startswith(either[1]),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _is_asked_for(row: RunRow, query: RunQuery) -> bool:
    return all(_fits(row, condition) for condition in query.conditions)


def _fits(row: RunRow, condition: RunCondition) -> bool:
    if condition.column == "status":
        return any(_has_status(row, item) for item in condition.value)
    if condition.column == "over_position":
        live = condition.value
        was_over = row.created_position <= live.position and row.run_id not in live.run_ids
        return was_over is (condition.comparison == "<=")
    value = getattr(row, condition.column)
    return value is not None and _COMPARED[condition.comparison](value, condition.value)


def _has_status(row: RunRow, status: StatusRows) -> bool:
    return (
        row.stage in status.stages
        and status.outcome in (None, row.outcome)
        and status.waiting in (None, row.due_kind == "wait")
    )


class MemoryContents:
    """Implements `Contents`."""

    def __init__(self, store: Store, line: Line) -> None:
        self._store = store
        self._line = line

    async def key(self, session_id: UUID) -> bytes | None:
        """Return the session's key, or None if it was destroyed."""
        return await self._line.ask(lambda: self._store.content_keys.get(session_id))

    async def text(self, ref: ContentRef) -> str | None:
        """Return the text of a reference, or None if it was erased."""
        return (await self.texts([ref])).get(ref.id)

    async def texts(
        self, refs: Iterable[ContentRef], *, recent: bool = False
    ) -> Mapping[UUID, str]:
        ids = {ref.id for ref in refs}
        kept = self._store.contents
        return await self._line.ask(lambda: {item: kept[item].text for item in ids if item in kept})

    async def stored_bytes(self, session_id: UUID, kind: str) -> int:
        """Return the bytes of a session's stored texts of this kind."""
        return await self._line.ask(
            lambda: sum(
                content.ref.bytes
                for content in self._store.contents.values()
                if (content.session_id, content.kind) == (session_id, kind)
            )
        )

    async def previews(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """Return the first 200 characters of several texts."""
        texts = await self.texts(refs)
        return {content_id: text[:PREVIEW_CHARS] for content_id, text in texts.items()}

    async def ends(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        """Return the last 2,000 characters of several texts, without trailing blanks."""
        texts = await self.texts(refs)
        return {
            content_id: text.rstrip(" \n\r\t")[-END_CHARS:] for content_id, text in texts.items()
        }


class MemoryStagedFiles:
    """Implements `StagedFiles`."""

    def __init__(self, store: Store, line: Line) -> None:
        self._store = store
        self._line = line

    async def read(self, run_id: UUID) -> tuple[bytes, ...]:
        def found() -> tuple[bytes, ...]:
            files = sorted(self._store.staged.get(run_id, ()), key=lambda file: file.ordinal)
            return tuple(file.body for file in files)

        return await self._line.ask(found)

    async def drop(self, run_id: UUID) -> None:
        """Drop files that are written, or never will be."""
        await self._line.ask(lambda: self._store.staged.pop(run_id, None))

    async def sweep(self, limit: int) -> int:
        """Drop the files of runs that are not being prepared any more."""

        def swept() -> int:
            over = [
                run_id
                for run_id in self._store.staged
                if (run := self._store.run(run_id)) is not None and run.stage not in PREPARING
            ]
            for run_id in over[:limit]:
                del self._store.staged[run_id]
            return len(over[:limit])

        return await self._line.ask(swept)
