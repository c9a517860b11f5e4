"""Messages that wait for a run at work, read as the runs that they are to become."""

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
"""A message is passed on from one run of its session to the next at most so often."""


async def waiting_message(work: UnitOfWork, run_id: UUID, *, at: int | None = None) -> Run | None:
    """Return the run that a message is to become, as far as it is known while the message waits, or
    None if no message with this id waits or was dropped. Its `version` is 0: no event is its own.

    It is `waiting`, and `continues` the run that it waits for. If the message was dropped, it is
    refused by the rule `stopped`.
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
        if any(one.run_id == run_id for one in last.queue or ()):
            run = await _run_to_be(work, queued, last, at)
            return run.changed({"stage": "session-created", "waits_for": (last.run_id,)})
        waits_for = last.continued_by
    if last is None or await work.registry.run(run_id, at=at) is not None:
        return None
    run = await _run_to_be(work, queued, last, at)
    dropped = RecordedRefusal(rule=STOPPED.name, status="error", step="admission")
    return run.changed({"stage": "refused", "refusal": dropped})


async def find_run(work: UnitOfWork, run_id: UUID, *, at: int | None = None) -> Run | None:
    """Return a run, or the message that is to become it, or None if there is neither."""
    run = await work.registry.run(run_id, at=at) or await waiting_message(work, run_id, at=at)
    # Without a position the message may have become the run in between.
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
