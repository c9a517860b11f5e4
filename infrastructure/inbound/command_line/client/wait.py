"""Waiting for a run to come to a point of its life."""

from typing import TYPE_CHECKING

from infrastructure.inbound.command_line.display.output import JsonObject
from infrastructure.inbound.command_line.display.tables import Item
from spawnlog.core import wait
from spawnlog.core.errors import WaitTimeout
from spawnlog.core.retries import Errand
from spawnlog.core.wait import WaitUntil

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient


def has_reached(run: Item, until: WaitUntil) -> bool:
    """Whether the run has come that far, or never will because it was refused."""
    return wait.has_reached(run.get("stage"), until)


def wait_for_run(
    client: "CommandClient", run_id: str, *, until: WaitUntil, seconds_max: float | None = None
) -> JsonObject:
    """The run once it has come to `until`, or as it is after `seconds_max` (None: no end).

    A lost connection is taken up again; Unreachable when the server stays away for a minute.
    """
    return client.perform(_run_or_how_it_is(run_id, until, seconds_max))


def _run_or_how_it_is(
    run_id: str, until: WaitUntil, seconds_max: float | None
) -> Errand[JsonObject]:
    try:
        run: JsonObject = yield from wait.wait_for_run(run_id, until, seconds_max, is_plain=True)
    except WaitTimeout as late:
        return dict(late.run)
    return run


def await_run(client: "CommandClient", run_id: str, child_session_key: str) -> None:
    """Wait until a message that waits has become its run. CommandFailed when it was dropped."""
    client.perform(wait.wait_for_message(run_id, child_session_key, None))
