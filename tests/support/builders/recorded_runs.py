"""Runs as recorded events, and a log that has only these."""

from collections.abc import Sequence
from typing import cast
from uuid import UUID

from application.log.envelope import WRITER_VERSION, Envelope, Provenance, RecordedEvent
from application.log.event_log import EventLog
from domain.run.events import RunEvent
from domain.values.record import run_stream
from tests.support.builders.storytelling import at, run_id

EVENTS_A_RUN = 100


def recorded(
    number: int, events: Sequence[RunEvent], *, traceparent: str | None = None
) -> list[RecordedEvent]:
    """Return the recorded events of the run with this number, a second apart. The first has the
    `traceparent`.
    """
    return [
        RecordedEvent(
            Envelope(
                position=number * EVENTS_A_RUN + version,
                stream=run_stream(run_id(number)),
                version=version,
                type=type(event).__name__,
                type_version=1,
                recorded_at=at(version),
                occurred_at=at(version),
                event_id=UUID(int=number * EVENTS_A_RUN + version, version=4),
                command_id=UUID(int=number, version=4),
                provenance=Provenance(
                    run_id=run_id(number), traceparent=traceparent if version == 1 else None
                ),
                writer_version=WRITER_VERSION,
                append_last=number * EVENTS_A_RUN + version,
                chain_hash=bytes(32),
            ),
            event,
        )
        for version, event in enumerate(events, start=1)
    ]


class RecordedRuns:
    """A log with only these events."""

    def __init__(self, *runs: Sequence[RecordedEvent]) -> None:
        self._events = [event for run in runs for event in run]
        self.reads = 0

    def as_log(self) -> EventLog:
        """Return it as a log, for callers that use only the methods below."""
        return cast(EventLog, self)

    async def event_of(self, stream: str, version: int) -> RecordedEvent | None:
        self.reads += 1
        for event in self._events:
            if (event.envelope.stream, event.envelope.version) == (stream, version):
                return event
        return None

    async def read_streams(
        self, streams: Sequence[str], *, types: Sequence[str] = (), until: int
    ) -> Sequence[RecordedEvent]:
        return [
            event
            for event in self._events
            if event.envelope.stream in streams
            and event.envelope.position <= until
            and (not types or event.envelope.type in types)
        ]
