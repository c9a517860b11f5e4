"""Live streams: events of the log, and the transcript of a run."""

from collections.abc import Iterator
from functools import partial

from infrastructure.inbound.command_line.client.client import CommandClient, Parameters
from infrastructure.inbound.command_line.display.output import JsonObject, print_note
from spawnlog.client import Client
from spawnlog.core.event_stream import PAUSE_SECONDS_MIN
from spawnlog.core.wait import wait_for_entries


def follow_events(
    client: CommandClient, parameters: Parameters, *, pause_seconds: float = PAUSE_SECONDS_MIN
) -> Iterator[JsonObject]:
    """Yield events as they are recorded, each once and in order, without end.

    Begins after `after` of the parameters, or at the head of the log.

    Raises:
        Unreachable: The server cannot be reached at first, or is away for two minutes later.
        CommandError: The server refuses to resume, for example because of another log's cursor.
    """
    return client.follow(
        "/v1/events",
        parameters,
        lambda lost: print_note(f"{lost.message}; retrying"),
        pause_seconds=pause_seconds,
    )


def follow_transcript(
    client: CommandClient, run_id: str, *, after: int, tools: bool = False
) -> Iterator[JsonObject]:
    """Yield the entries after `after` as the agent writes them, until the run is over."""
    while True:
        page = client.perform(partial(_next_entries, run_id, after, tools))
        yield from page.get("items") or ()
        following = page.get("nextAfter")
        if following is None and page.get("complete"):
            return
        after = int(following or page.get("lastSequence") or after)


def _next_entries(run_id: str, after: int, tools: bool, client: Client) -> JsonObject:
    page: JsonObject = wait_for_entries(client, run_id, after, tools=tools)
    return page
