"""A spawn from the request to the answer."""

import asyncio
import logging
from dataclasses import dataclass

from application.concurrency.tasks import wait_or_cancel
from application.coordination.holder import Holder
from application.coordination.lane import LanePlaces
from application.log.answers import (
    accepted_response,
    accepted_run,
    refusal_of_run,
    refusal_response,
)
from application.log.envelope import Actor
from application.log.event_log import LogUnavailable, Reservation, StoredAnswer
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.transcripts import EntryFlushes
from application.spawn.admit import Admission, AdmissionRequest
from application.spawn.ahead import AheadPreparer
from application.spawn.attachments import read_attachments_receipt
from application.spawn.outcomes import DecidedSpawn
from application.spawn.prepare import RunPreparer
from application.spawn.request import inputs_in_hand
from application.steps.preparation import CallerPresence
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.spawn.batch import is_refused_by_batch
from domain.spawn.request import ResolvedSpawn

_log = logging.getLogger("spawnlog.spawning")


@dataclass(frozen=True, slots=True)
class SpawnResult:
    """What came of it: the run, how its caller is answered, and the position of the append that
    decided it; None when others decided it."""

    run: Run
    answer: StoredAnswer
    position: int | None


class SpawnService:
    """Takes requests, and holds their preparation."""

    def __init__(
        self,
        work: UnitOfWork,
        preparing: RunPreparer,
        lanes: LanePlaces,
        holder: Holder,
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
        """Admit, prepare, answer. A caller that goes away cancels nothing.

        `pinned` is the revision under which the request was read. When the log is at a later one
        by now, that one decides, provided that the request reads the same under it.

        Raises what the log raises: `AlreadyReserved`, `SessionIsClosed`, `LogUnavailable`.
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
            raise LogUnavailable(
                "the service is stopping; the spawn goes on: ask again under its Idempotency-Key"
            ) from None

    def _ended(self, task: "asyncio.Task[SpawnResult]") -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.debug("a spawn ended with %r", task.exception())

    async def wait_idle(self, seconds: float) -> None:
        """Wait until every spawn under way is answered, so long at most. The others are left as
        they are recorded, for whoever takes them over."""
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
            # Its children were created in the transaction of the admission.
            assert admitted.ahead is not None
            admitted.ahead.execute(admitted.runs)
            return SpawnResult(first, admitted.ahead.answer, admitted.position)
        in_hand = inputs_in_hand(resolved, keys)
        prepared = await self._preparing.prepare(admitted.runs, caller_is_there, in_hand)
        return await self._respond(prepared)

    async def _respond(self, prepared: DecidedSpawn) -> SpawnResult:
        first, position = prepared.runs[0], prepared.position
        if first.stage in PREPARING:
            raise LogUnavailable(
                "another server has taken this spawn over; ask again with the same"
                f" Idempotency-Key, or read run {first.run_id}"
            )
        if first.refusal is None:
            contents = self._work.contents
            children = [
                accepted_run(run, await read_attachments_receipt(run, contents))
                for run in prepared.runs
            ]
            batch_id = first.batch.batch_id if first.batch is not None else None
            return SpawnResult(first, accepted_response(children, batch_id), position)
        # All of a batch were refused for one of them.
        culprit = next((one for one in prepared.runs if not is_refused_by_batch(one)), first)
        refusal = culprit.refusal.text if culprit.refusal is not None else None
        text = await self._work.contents.text(refusal) if refusal is not None else None
        return SpawnResult(culprit, refusal_response(refusal_of_run(culprit, text)), position)
