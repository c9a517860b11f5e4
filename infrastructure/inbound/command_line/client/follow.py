"""The live stream of events: taken up again where it broke off."""

from collections.abc import Iterator

from infrastructure.inbound.command_line.client.client import CommandClient, Parameters
from infrastructure.inbound.command_line.display.output import JsonObject, print_note
from spawnlog.core.feed import PAUSE_SECONDS_MIN


def follow_events(
    client: CommandClient, parameters: Parameters, *, pause_seconds: float = PAUSE_SECONDS_MIN
) -> Iterator[JsonObject]:
    """The events as they are recorded, each once and in order, without end.

    Begins after `after` of the parameters, else at the head of the log. Raises Unreachable when the
    server cannot be reached at first, or stays away for two minutes later; what else the server
    says to a resume (a cursor of another log, say) ends it as well.
    """
    return client.follow(
        "/v1/events",
        parameters,
        lambda lost: print_note(f"{lost.message}; trying again"),
        pause_seconds=pause_seconds,
    )
