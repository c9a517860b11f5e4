"""Leases and claims in memory, on the store's clock."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from application.coordination.coordination import ClaimKey, ClaimKind, DueFile, LostRun, LostRuns
from application.projections.run_rows import RunRow
from domain.run.facts import EXTERNAL_LANE
from tests.support.memory.store import Lease, Line, Store

_DONE = ("announced", "archived", "refused")


class MemoryCoordination:
    """Implements `Coordination`."""

    def __init__(self, store: Store, line: Line) -> None:
        self._store = store
        self._line = line

    async def renew(
        self,
        holder: str,
        *,
        url: str | None,
        lease_seconds: float,
        not_after: datetime | None = None,
    ) -> bool:
        """Prolong a holder's lease. Return False if it was closed, or `not_after` is past."""

        def renewed() -> bool:
            now, lease = self._store.now(), self._store.leases.get(holder)
            if lease is not None and lease.is_closed:
                return False
            until = now + timedelta(seconds=lease_seconds)
            until = min(until, not_after) if not_after is not None else until
            self._store.leases[holder] = Lease(holder, until, url)
            return until > now

        return await self._line.ask(renewed)

    async def close_leases(self, holders: Sequence[str]) -> frozenset[str]:
        def closed() -> frozenset[str]:
            now, leases = self._store.now(), self._store.leases
            for holder in holders:
                lease = leases.setdefault(holder, Lease(holder, now))
                lease.is_closed = lease.is_closed or lease.until <= now
            return frozenset(holder for holder in holders if leases[holder].is_closed)

        return await self._line.ask(closed)

    async def leave(self, holder: str) -> None:
        """Let the lease expire for good, and forget those that expired a day ago."""

        def left() -> None:
            now, leases = self._store.now(), self._store.leases
            if holder in leases:
                leases[holder].until = now
                leases[holder].is_closed = True
            for old in [
                lease for lease in leases.values() if lease.until < now - timedelta(days=1)
            ]:
                del leases[old.holder]

        await self._line.ask(left)

    async def forget(self, holder: str) -> None:
        await self._line.ask(lambda: self._store.leases.pop(holder, None))

    async def lost_runs(self, *, limit: int) -> LostRuns:
        """Return runs whose holder has no valid lease."""

        def found() -> LostRuns:
            now = self._store.now()
            lost: list[LostRun] = []
            for row in self._held():
                lease = self._store.leases.get(row.holder or "")
                if lease is None or lease.until <= now:
                    lost.append(_lost(row, lease))
            return LostRuns(lost[:limit], now)

        return await self._line.ask(found)

    async def held_runs(self, holder: str, *, limit: int) -> Sequence[LostRun]:
        def found() -> list[LostRun]:
            held = [item for item in self._held() if item.holder == holder]
            leases = self._store.leases
            return [replace(_lost(row, leases.get(holder)), absent=False) for row in held[:limit]]

        return await self._line.ask(found)

    async def unclaimed_runs(self, *, seconds: float, limit: int) -> Sequence[UUID]:
        def found() -> list[UUID]:
            until = self._store.now() - timedelta(seconds=seconds)
            waiting = [
                (row.queued_position, row.run_id)
                for row in self._store.runs.rows()
                if row.lane == EXTERNAL_LANE and row.stage == "queued" and row.holder is None
                if row.queued_position is not None
                and self._store.events[row.queued_position - 1].envelope.recorded_at <= until
            ]
            return [run_id for _, run_id in sorted(waiting)[:limit]]

        return await self._line.ask(found)

    def _held(self) -> Iterator[RunRow]:
        rows = (row for row in self._store.runs.rows() if row.due_kind in ("prepare", "run"))
        return iter(sorted(rows, key=lambda row: row.created_position))

    async def claim(
        self, kind: ClaimKind, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        def claimed() -> list[UUID]:
            now, claims = self._store.now(), self._store.claims
            due: list[tuple[datetime, UUID]] = []
            for row in self._store.runs.rows():
                at = self._due_at(row, kind)
                if at is None or at > now:
                    continue
                held = claims.get((kind, row.run_id))
                if held is None or held.until <= now:
                    due.append((at, row.run_id))
            taken = [run_id for _, run_id in sorted(due)[:limit]]
            until = now + timedelta(seconds=lease_seconds)
            claims.update(((kind, run_id), Lease(holder, until)) for run_id in taken)
            return taken

        return await self._line.ask(claimed)

    def _due_at(self, row: RunRow, kind: ClaimKind) -> datetime | None:
        if kind == "effects":
            return row.effects_at
        if row.due_kind != kind or (kind == "wait" and not self._may_go_on(row)):
            return None
        return row.due_at

    def _may_go_on(self, row: RunRow) -> bool:
        """Return True if a dependency of the run is met or has failed."""
        return any(self._is_decided(row, target) for target in row.state.waits_for or ())

    def _is_decided(self, row: RunRow, run_id: UUID) -> bool:
        target = self._store.runs.now(run_id)
        if target is None:
            return False
        if target.stage in _DONE:
            return True
        if target.stage != "ended":
            return False
        needs_success = any(
            dependency.run_id == run_id and dependency.require == "success"
            for dependency in row.state.dependencies or ()
        )
        return target.due_kind == "announce" or (target.outcome != "success" and needs_success)

    async def prolong(
        self, claims: Sequence[ClaimKey], *, lease_seconds: float
    ) -> frozenset[ClaimKey]:
        """Extend the claims that no other holder has taken."""

        def prolonged() -> frozenset[ClaimKey]:
            kept = frozenset(self._mine(claims))
            for item in kept:
                self._lease(item).until = self._store.now() + timedelta(seconds=lease_seconds)
            return kept

        return await self._line.ask(prolonged)

    async def due_files(self, *, limit: int) -> Sequence[DueFile]:
        def taken() -> list[DueFile]:
            now = self._store.now()
            late = [
                due_file for due_file in self._store.due_files.values() if due_file.due_at <= now
            ]
            for effect in late[:limit]:
                effect.due_at = now + timedelta(seconds=5)
            return [DueFile(run.run_id, run.is_archived) for run in late[:limit]]

        return await self._line.ask(taken)

    async def files_written(self, files: Sequence[DueFile]) -> Sequence[DueFile]:
        """Record that the files are written. Return those whose run was archived since."""

        def changed() -> list[DueFile]:
            left: list[DueFile] = []
            for file in files:
                known = self._store.due_files.get(file.run_id)
                if known is not None and known.is_archived == file.is_archived:
                    del self._store.due_files[file.run_id]
                else:
                    left.append(file)
            return left

        return await self._line.ask(changed)

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        def released() -> None:
            for run in list(self._mine(claims)):
                del self._store.claims[run.kind, run.run_id]

        await self._line.ask(released)

    def _mine(self, claims: Sequence[ClaimKey]) -> Iterator[ClaimKey]:
        """Yield the claims that no other holder has taken by now."""
        for claim in claims:
            lease = self._store.claims.get((claim.kind, claim.run_id))
            if lease is not None and lease.holder == claim.holder:
                yield claim

    def _lease(self, claim: ClaimKey) -> Lease:
        return self._store.claims[claim.kind, claim.run_id]

    async def forget_old_answers(self, *, days: int) -> int:
        """Delete idempotency records older than that."""

        def forgotten() -> int:
            before = self._store.now() - timedelta(days=days)
            old = [
                name
                for name, value in self._store.reserved.items()
                if value.created_at < before and value.reserved.answer is not None
            ]
            for name in old:
                del self._store.reserved[name]
            return len(old)

        return await self._line.ask(forgotten)


def _lost(row: RunRow, lease: Lease | None) -> LostRun:
    assert row.holder is not None
    until = lease.until if lease is not None else None
    return LostRun(row.run_id, row.stage, row.holder, row.epoch, lease is None, until)
