"""Waiting for a stage of a run."""

from typing import TYPE_CHECKING, cast

from infrastructure.inbound.command_line.display.output import JsonObject
from infrastructure.inbound.command_line.display.tables import Item
from spawnlog.core import stages, wait
from spawnlog.core.errors import WaitTimeoutError
from spawnlog.core.stages import WaitUntil

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient
    from spawnlog.client import Client


def has_reached(run: Item, until: WaitUntil) -> bool:
    """Return True if the run has come that far, or was refused and never will."""
    return stages.has_reached(run.get("stage"), until)


def wait_for_run(
    client: "CommandClient", run_id: str, *, until: WaitUntil, seconds_max: float | None = None
) -> JsonObject:
    """Return the run when it has reached `until`, or as it is after `seconds_max`.

    A lost connection is resumed.

    Args:
        client: The client of the server.
        run_id: Id of the run.
        until: The stage to wait for.
        seconds_max: Maximum time to wait. Default: no limit.

    Raises:
        Unreachable: The server is away for more than a minute.
    """

    def waited(sender: "Client") -> JsonObject:
        try:
            run: JsonObject = wait.wait_for_run(sender, run_id, until, seconds_max, is_plain=True)
        except WaitTimeoutError as late:
            # Plain answers are JSON objects, in the error too.
            return cast(JsonObject, late.run)
        return run

    return client.perform(waited)


def await_run(client: "CommandClient", run_id: str, child_session_key: str) -> None:
    """Wait until a queued message has become its run. Raise CommandError if it was dropped."""
    client.perform(lambda sender: wait.wait_for_message(sender, run_id, child_session_key, None))
