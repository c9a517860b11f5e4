"""Messages that wait for a run at work, read as the runs that they are to become."""

from uuid import UUID

from application.log.envelope import RecordedEvent
from application.log.unit_of_work import UnitOfWork
from domain.run.events import ContinuationFailed, MessageQueued, MessagesDropped
from domain.run.evolve import initial_run
from domain.run.state import Run
from domain.spawn.continuation import Message, message_received
from domain.values.record import Stamp, run_id_of, run_stream

HOPS_MAX = 1_000
"""A message is passed on from one run of its session to the next at most so often."""


async def waiting_message(work: UnitOfWork, run_id: UUID, *, at: int | None = None) -> Run | None:
    """Return the run that a message is to become, as far as it is known while the message waits, or
    None if no message with this id waits or was dropped. Its `version` is 0: no event is its own.

    It is `waiting`, and `continues` the run that it waits for. If the message was dropped, it has
    ended as stopped.
    """
    queued = await work.log.queued_message(run_id)
    if queued is None or (at is not None and queued.envelope.position > at):
        return None
    waits_for: UUID | None = run_id_of(queued.envelope.stream)
    last: Run | None = None
    passed: list[UUID] = []
    while waits_for is not None and len(passed) < HOPS_MAX:
        found = await work.registry.run(waits_for, at=at)
        if found is None:
            break
        last = found
        passed.append(waits_for)
        if any(one.run_id == run_id for one in last.queue or ()):
            return await _run_to_be(work, queued, last, at)
        waits_for = last.continued_by
    if last is None or await work.registry.run(run_id, at=at) is not None:
        return None
    return await _dropped(work, queued, last, passed, at)


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
    run = initial_run(received, stamp)
    return run.changed(
        {"stage": "session-created", "version": 0, "queue": None, "waits_for": (last.run_id,)}
    )


async def _dropped(
    work: UnitOfWork, queued: RecordedEvent, last: Run, passed: list[UUID], at: int | None
) -> Run:
    run = await _run_to_be(work, queued, last, at)
    until = at if at is not None else await work.log.head()
    types = ("MessagesDropped", "ContinuationFailed")
    streams = [run_stream(one) for one in passed]
    ended_at = None
    for recorded in await work.log.read_streams(streams, types=types, until=until):
        event = recorded.event
        is_dropped = isinstance(event, MessagesDropped) and run.run_id in event.run_ids
        if is_dropped or (isinstance(event, ContinuationFailed) and event.run_id == run.run_id):
            ended_at = recorded.envelope.recorded_at
    return run.changed(
        {
            "stage": "ended",
            "outcome": "stopped",
            "end_reason": "dropped",
            "ended_at": ended_at,
            "waits_for": None,
        }
    )
