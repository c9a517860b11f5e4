"""A spawn from the request to the answer."""

import asyncio
import logging
from dataclasses import dataclass

from application.admitting import Admitting, Asked
from application.answers import (
    Told,
    accepted,
    accepted_batch,
    refusal_of,
    refused,
    told_of,
)
from application.attaching import receipt_of
from application.batch_preparing import BatchPreparing, PreparedBatch
from application.envelope import Actor
from application.holder import Holder
from application.ports.configurations import PinnedConfiguration
from application.ports.event_log import (
    Answer,
    LogUnavailable,
    Reservation,
)
from application.preparation import CallerIsThere
from application.prepared_run import PreparedRun
from application.preparing import Preparing
from application.settling import settled
from application.spawn_request import InHand, SpawnRequest
from application.work import Work
from domain.batch_decisions import is_refused_with
from domain.run.lifecycle import PREPARING
from domain.run.state import Run

_log = logging.getLogger("spawnlog.spawning")


@dataclass(frozen=True, slots=True)
class Spawned:
    """What came of it: the run, how its caller is answered, and the position of the append that
    decided it; None when others decided it."""

    run: Run
    answer: Answer
    position: int | None


class Spawning:
    """Takes requests, and holds their preparation."""

    def __init__(self, work: Work, preparing: Preparing, holder: Holder) -> None:
        self._work = work
        self._preparing = preparing
        self._batches = BatchPreparing(work, preparing)
        self._admitting = Admitting(work, holder)
        self._under_way: set[asyncio.Task[Spawned]] = set()

    async def spawn(
        self,
        request: SpawnRequest,
        actor: Actor,
        reservation: Reservation | None,
        caller_is_there: CallerIsThere,
        traceparent: str | None = None,
        *,
        pinned: PinnedConfiguration,
    ) -> Spawned:
        """Admit, prepare, answer. A caller that goes away cancels nothing.

        `pinned` is the revision under which the request was read. When the log is at a later one
        by now, that one decides, provided that the request reads the same under it.

        Raises what the log raises: `AlreadyReserved`, `SessionIsClosed`, `LogUnavailable`.
        """
        task = asyncio.create_task(
            self._spawn(request, actor, reservation, caller_is_there, traceparent, pinned)
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

    def _ended(self, task: "asyncio.Task[Spawned]") -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.debug("a spawn ended with %r", task.exception())

    async def settle(self, seconds: float) -> None:
        """Wait until every spawn under way is answered, so long at most. The others are left as
        they are recorded, for whoever takes them over."""
        await settled(self._under_way, seconds)

    async def _spawn(
        self,
        request: SpawnRequest,
        actor: Actor,
        reservation: Reservation | None,
        caller_is_there: CallerIsThere,
        traceparent: str | None,
        pinned: PinnedConfiguration,
    ) -> Spawned:
        keys = tuple(self._work.identities.content_key() for _ in request.tasks)
        asked = Asked(request, actor, reservation, traceparent, keys)
        admitted = await self._admitting.admit(asked, pinned)
        first = admitted.runs[0]
        if admitted.refusal is not None:
            return Spawned(first, admitted.refusal, admitted.position)
        in_hand = [
            InHand(key, task, request.workspace_argument)
            for key, task in zip(keys, request.tasks, strict=True)
        ]
        if first.batch is not None:
            batch = await self._batches.prepare(admitted.runs, caller_is_there, in_hand)
            return await self._batch_answered(batch)
        return await self._answered(
            await self._preparing.prepare(first, caller_is_there, in_hand[0])
        )

    async def _answered(self, prepared: PreparedRun) -> Spawned:
        run = prepared.run
        _must_be_decided(run)
        if run.refusal is None:
            return Spawned(run, accepted(await self._told(run)), prepared.position)
        kept = run.refusal.text
        text = await self._work.contents.text(kept) if kept is not None else None
        return Spawned(run, refused(refusal_of(run, text)), prepared.position)

    async def _batch_answered(self, prepared: PreparedBatch) -> Spawned:
        first = prepared.runs[0]
        _must_be_decided(first)
        assert first.batch is not None
        if first.refusal is None:
            told = [await self._told(run) for run in prepared.runs]
            return Spawned(first, accepted_batch(first.batch.batch_id, told), prepared.position)
        # All were refused for one of them.
        culprit = next((one for one in prepared.runs if not is_refused_with(one)), first)
        return await self._answered(PreparedRun(culprit, prepared.position))

    async def _told(self, run: Run) -> Told:
        return told_of(run, await receipt_of(run, self._work.contents))


def _must_be_decided(run: Run) -> None:
    if run.stage in PREPARING:
        raise LogUnavailable(
            "another server has taken this spawn over; ask again with the same"
            f" Idempotency-Key, or read run {run.run_id}"
        )
