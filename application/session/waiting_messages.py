"""Waiting messages, read as the runs that they will become."""

from uuid import UUID

from application.log.envelope import RecordedEvent
from application.log.unit_of_work import UnitOfWork
from domain.run.events import MessageQueued
from domain.run.evolve import initial_run
from domain.run.state import RecordedRefusal, Run
from domain.spawn.continuation import Message, message_received
from domain.values.record import Stamp, run_id_of
from domain.values.rules import STOPPED

HOPS_MAX = 1_000
"""Maximum number of runs that a message is followed through while it waits."""


async def waiting_message(work: UnitOfWork, run_id: UUID, *, at: int | None = None) -> Run | None:
    """Return the future run of a waiting message; None if no message with this id waits or was
    dropped.

    Its status is `waiting` and it `continues` the run that it waits for. A dropped message is
    refused by the rule `stopped`. `version` is 0, because it has no events of its own.
    """
    queued = await work.log.queued_message(run_id)
    if queued is None or (at is not None and queued.envelope.position > at):
        return None
    waits_for: UUID | None = run_id_of(queued.envelope.stream)
    last: Run | None = None
    for _ in range(HOPS_MAX):
        found = await work.registry.run(waits_for, at=at) if waits_for is not None else None
        if found is None:
            break
        last = found
        if any(entry.run_id == run_id for entry in last.queue or ()):
            run = await _run_to_be(work, queued, last, at)
            return run.changed({"stage": "session-created", "waits_for": (last.run_id,)})
        waits_for = last.continued_by
    if last is None or await work.registry.run(run_id, at=at) is not None:
        return None
    run = await _run_to_be(work, queued, last, at)
    dropped = RecordedRefusal(rule=STOPPED.name, status="error", step="admission")
    return run.changed({"stage": "refused", "refusal": dropped})


async def find_run(work: UnitOfWork, run_id: UUID, *, at: int | None = None) -> Run | None:
    """Return a run, or the future run of a waiting message, or None."""
    run = await work.registry.run(run_id, at=at) or await waiting_message(work, run_id, at=at)
    # The message may have become the run between the two reads.
    return run if run is not None or at is not None else await work.registry.run(run_id)


async def _run_to_be(work: UnitOfWork, queued: RecordedEvent, last: Run, at: int | None) -> Run:
    event = queued.event
    assert isinstance(event, MessageQueued)
    requester = await work.registry.session(last.requester.session_key, at=at)
    assert requester is not None
    message = Message(
        run_id=event.run_id,
        text=event.message,
        by=event.by,
        config_revision=last.config_revision,
        max_children=0,
        cause=event.cause,
        has_waited=True,
    )
    received = message_received(message, last, requester)
    stamp = Stamp(queued.envelope.position, 0, queued.envelope.recorded_at)
    return initial_run(received, stamp).changed({"version": 0, "queue": None})
