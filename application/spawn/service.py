"""Spawns, from the request to the answer."""

import asyncio
import logging
from dataclasses import dataclass

from application.concurrency.tasks import wait_or_cancel
from application.coordination.lane import LanePlaces
from application.coordination.lease_owner import LeaseOwner
from application.log.answers import (
    accepted_response,
    accepted_run,
    refusal_of_run,
    refusal_response,
)
from application.log.envelope import Actor
from application.log.event_log import LogUnavailableError, Reservation, StoredAnswer
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.transcripts import EntryFlushes
from application.spawn.admit import Admission, AdmissionRequest
from application.spawn.ahead import AheadPreparer
from application.spawn.attachments import read_attachments_receipt
from application.spawn.outcomes import DecidedSpawn
from application.spawn.prepare import SpawnPreparer
from application.spawn.request import inputs_in_hand
from application.steps.preparation import CallerPresence
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.spawn.batch import is_refused_by_batch
from domain.spawn.request import ResolvedSpawn

_log = logging.getLogger("spawnlog.spawning")


@dataclass(frozen=True, slots=True)
class SpawnResult:
    """The result of a spawn.

    Attributes:
        run: The run; for a batch, the first or the one that was refused.
        answer: The answer to the caller.
        position: Position of the append that decided it; None if another process decided.
    """

    run: Run
    answer: StoredAnswer
    position: int | None


class SpawnService:
    """Service that admits and prepares spawns in this process."""

    def __init__(
        self,
        work: UnitOfWork,
        preparing: SpawnPreparer,
        lanes: LanePlaces,
        holder: LeaseOwner,
        flushes: EntryFlushes,
    ) -> None:
        self._work = work
        self._preparing = preparing
        ahead = AheadPreparer(work, preparing.children, lanes)
        self._admitting = Admission(work, holder, ahead, flushes)
        self._under_way: set[asyncio.Task[SpawnResult]] = set()

    async def spawn(
        self,
        resolved: ResolvedSpawn,
        actor: Actor,
        reservation: Reservation | None,
        caller_is_there: CallerPresence,
        traceparent: str | None = None,
        *,
        pinned: PinnedConfiguration,
    ) -> SpawnResult:
        """Admit, prepare and answer. If the caller disconnects, the spawn continues.

        Args:
            pinned: Revision under which the request was read. If the log is at a later one, that
                one decides, provided that the request reads the same under it.

        Raises:
            AlreadyReserved: If the idempotency key was used before.
            SessionIsClosed: If the requester's session is closed.
            LogUnavailableError: If the log cannot be reached, or this service is stopping.
        """
        task = asyncio.create_task(
            self._spawn(resolved, actor, reservation, caller_is_there, traceparent, pinned)
        )
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            raise LogUnavailableError(
                "the server is stopping; the spawn continues: retry with the same Idempotency-Key"
            ) from None

    def _ended(self, task: "asyncio.Task[SpawnResult]") -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.debug("a spawn ended with %r", task.exception())

    async def wait_idle(self, seconds: float) -> None:
        """Wait up to `seconds` until every spawn in progress is answered, then cancel the rest.

        Cancelled spawns stay as recorded, for another process to take over.
        """
        await wait_or_cancel(self._under_way, seconds)

    async def _spawn(
        self,
        resolved: ResolvedSpawn,
        actor: Actor,
        reservation: Reservation | None,
        caller_is_there: CallerPresence,
        traceparent: str | None,
        pinned: PinnedConfiguration,
    ) -> SpawnResult:
        keys = tuple(self._work.identities.content_key() for _ in resolved.tasks)
        admission = AdmissionRequest(resolved, actor, reservation, traceparent, keys)
        admitted = await self._admitting.admit(admission, pinned)
        first = admitted.runs[0]
        if admitted.refusal is not None:
            return SpawnResult(first, admitted.refusal, admitted.position)
        if first.stage not in PREPARING:
            # The admission's transaction also created its children.
            assert admitted.ahead is not None
            admitted.ahead.execute(admitted.runs)
            return SpawnResult(first, admitted.ahead.answer, admitted.position)
        in_hand = inputs_in_hand(resolved, keys)
        prepared = await self._preparing.prepare(admitted.runs, caller_is_there, in_hand)
        return await self._respond(prepared)

    async def _respond(self, prepared: DecidedSpawn) -> SpawnResult:
        first, position = prepared.runs[0], prepared.position
        if first.stage in PREPARING:
            raise LogUnavailableError(
                "another server has taken over this spawn; retry with the same Idempotency-Key,"
                f" or read run {first.run_id}"
            )
        if first.refusal is None:
            contents = self._work.contents
            children = [
                accepted_run(run, await read_attachments_receipt(run, contents))
                for run in prepared.runs
            ]
            batch_id = first.batch.batch_id if first.batch is not None else None
            return SpawnResult(first, accepted_response(children, batch_id), position)
        # One run caused the refusal of the whole batch.
        culprit = next((run for run in prepared.runs if not is_refused_by_batch(run)), first)
        refusal = culprit.refusal.text if culprit.refusal is not None else None
        text = await self._work.contents.text(refusal) if refusal is not None else None
        return SpawnResult(culprit, refusal_response(refusal_of_run(culprit, text)), position)
