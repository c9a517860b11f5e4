"""Waiting for a run to come to a point of its life."""

import time
from typing import TYPE_CHECKING, Literal

from infrastructure.inbound.command_line.client.location import path_of
from infrastructure.inbound.command_line.display.failures import (
    CommandFailed,
    NotFound,
    Unreachable,
)
from infrastructure.inbound.command_line.display.output import JsonObject
from infrastructure.inbound.command_line.display.tables import Item

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import Client


WaitUntil = Literal["started", "ended", "announced", "archived"]
POLL_SECONDS = 30.0
MESSAGE_POLL_SECONDS = 0.5
ABSENT_SECONDS_MAX = 60.0
"""How long a server may be away, as in a restart, before the wait is given up."""


_REACHED: dict[WaitUntil, frozenset[str]] = {
    "started": frozenset({"started", "ended", "announced", "archived", "refused"}),
    "ended": frozenset({"ended", "announced", "archived", "refused"}),
    "announced": frozenset({"announced", "archived", "refused"}),
    "archived": frozenset({"archived", "refused"}),
}


def has_reached(run: Item, until: WaitUntil) -> bool:
    """Whether the run has come that far, or never will because it was refused."""
    return run.get("stage") in _REACHED[until]


def wait_for_run(
    client: "Client", run_id: str, *, until: WaitUntil, seconds_max: float | None = None
) -> JsonObject:
    """The run once it has come to `until`, or as it is after `seconds_max` (None: no end).

    A lost connection is taken up again; Unreachable when the server stays away for a minute.
    """
    end = None if seconds_max is None else time.monotonic() + seconds_max
    contact = time.monotonic()
    pause_seconds = 0.25
    while True:
        left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - time.monotonic())
        wait = max(1, round(left))
        try:
            run = client.get(
                path_of("runs", run_id),
                {"wait": f"{wait}s", "until": until},
                wait_seconds=wait,
            ).body
        except Unreachable:
            now = time.monotonic()
            if now - contact > ABSENT_SECONDS_MAX or (end is not None and now >= end):
                raise
            time.sleep(pause_seconds)
            pause_seconds = min(pause_seconds * 2, 5)
            continue
        if has_reached(run, until) or (end is not None and time.monotonic() >= end):
            return run
        elapsed = time.monotonic() - contact
        contact, pause_seconds = time.monotonic(), 0.25
        if elapsed < 1:
            # A server that answers at once does not wait; it must not be asked in a hot loop.
            time.sleep(0.25)


def await_run(client: "Client", run_id: str, child_session_key: str) -> None:
    """Wait until a message that waits has become its run. CommandFailed when it was dropped."""
    while True:
        # In this order: a message that has left the queue is a run by then, or nothing.
        session = client.get(path_of("sessions", child_session_key)).body
        is_queued = any(one.get("runId") == run_id for one in session.get("queue") or ())
        try:
            client.get(path_of("runs", run_id))
        except NotFound:
            if not is_queued and session.get("queue") is not None:
                raise CommandFailed(
                    "the message was dropped: its session was stopped or closed while it waited"
                ) from None
        else:
            return
        time.sleep(MESSAGE_POLL_SECONDS)
