"""The live stream of events: taken up again where it broke off."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from infrastructure.inbound.command_line.client.client import Client, Parameters
from infrastructure.inbound.command_line.display.failures import CommandFailed, Unreachable
from infrastructure.inbound.command_line.display.output import JsonObject, print_note

ABSENT_SECONDS_MAX = 120.0
"""How long a server may be away before following ends."""


PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 5.0
CHECKPOINT = "checkpoint"


@dataclass(slots=True)
class _RetryPauses:
    """How long to try on, since the first try that failed."""

    pause_seconds_min: float
    tries: int = 0
    since: float = 0.0

    def renew(self) -> None:
        self.tries = 0

    def pause(self) -> bool:
        """Wait longer than the last time; False when it has been too long."""
        if self.tries == 0:
            self.since = time.monotonic()
        if time.monotonic() - self.since > ABSENT_SECONDS_MAX:
            return False
        time.sleep(min(self.pause_seconds_min * 2**self.tries, PAUSE_SECONDS_MAX))
        self.tries += 1
        return True


def follow_events(
    client: Client, parameters: Parameters, *, pause_seconds: float = PAUSE_SECONDS_MIN
) -> Iterator[JsonObject]:
    """The events as they are recorded, each once and in order, without end.

    Begins after `after` of the parameters, else at the head of the log. `pause_seconds` is the
    first pause before a lost stream is taken up again; each try doubles it, up to 5 s. Raises
    Unreachable when the server cannot be reached at first, or stays away for two minutes later;
    what else the server says to a resume (a cursor of another log, say) ends it as well.
    """
    last_id: str | None = None
    connected = False
    patience = _RetryPauses(pause_seconds)
    while True:
        opened = time.monotonic()
        try:
            with client.stream("/v1/events", parameters, last_id) as stream:
                connected = True
                if last_id is None and parameters.get("after") is None:
                    last_id = stream.position
                for message in stream.messages:
                    if message.data:
                        patience.renew()
                    fresh = message.id != last_id
                    last_id = message.id or last_id
                    if message.event != CHECKPOINT and message.data and fresh:
                        yield _event(message.data)
            # The server ended the stream: it stops, or this reader was too slow.
            failure = Unreachable(f"{client.server.url} ended the stream")
        except Unreachable as lost:
            failure = lost
        if time.monotonic() - opened > PAUSE_SECONDS_MAX:
            patience.renew()  # it was a connection, though a silent one
        if not connected or not patience.pause():
            raise failure
        print_note(f"{failure.message}; trying again")


def _event(data: str) -> JsonObject:
    try:
        event = json.loads(data)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise CommandFailed("the stream is not that of a spawnlog server: check --url")
    return event
