"""`spawnlog announcement`: a session's inbox, and the ledger of all of them."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from infrastructure.inbound.command_line.client.described import Given, OptionsOf
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import (
    print_listing,
)
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant
from spawnlog.core.request import path_of

_COLUMNS = (
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("ID", value_of("id")),
    TableColumn("LABEL", value_of("label"), elastic=True),
    TableColumn("STATUS", value_of("status"), coloured=True),
    TableColumn("STATE", value_of("state")),
    TableColumn("TEXT", value_of("text"), elastic=True, cells_min=20),
)


def _deliveries(announcement: Mapping[str, Any]) -> str:
    """How far it has come on its way to each webhook."""
    return "; ".join(
        f"{one['webhook']}: {one['state']}, {one['attempts']} attempt(s)"
        + (f", next {format_instant(one['nextAttemptAt'])}" if one.get("nextAttemptAt") else "")
        for one in announcement["deliveries"]
    )


_LEDGER_COLUMNS = (
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("ID", value_of("id")),
    TableColumn("REQUESTER", value_of("requester"), elastic=True),
    TableColumn("STATUS", value_of("status"), coloured=True),
    TableColumn("STATE", value_of("state")),
    TableColumn("DELIVERIES", _deliveries, folds=True),
)


def _parked(announcement: Mapping[str, Any]) -> str:
    """Of each webhook that it is not sent to any more: how often it was, and what came of that."""
    return "; ".join(
        f"{one['webhook']}: {one['attempts']} attempt(s), {one['error'] or one['parkedFor']}"
        for one in announcement["deliveries"]
        if one["state"] == "parked"
    )


_PARKED_COLUMNS = (
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("ID", value_of("id")),
    TableColumn("REQUESTER", value_of("requester"), elastic=True),
    TableColumn("PARKED", _parked, folds=True),
)


def list_announcements(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Session key or session id; all when left out."),
    ] = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="What webhooks have not taken, of all sessions.")
    ] = False,
    *,
    given: Annotated[Given, OptionsOf("listLedger")],
    api: ApiOptions,
) -> None:
    """Show the inbox of a session, or all announcements.

    Without a session it is the ledger of everything that was announced, or what could not be
    delivered to webhooks.
    """
    state = given["state"]
    if session is not None and (parked or state is not None):
        raise CommandFailed("--parked and --state are about all sessions: leave the session out")
    if parked and state not in (None, "parked"):
        raise CommandFailed("--parked is a state: leave --state out")
    columns = _PARKED_COLUMNS if parked or state == "parked" else _LEDGER_COLUMNS
    with api.client() as client:
        query, path = given.query(client, without=("limit",)), "/v1/announcements"
        if session is not None:
            columns, path = _COLUMNS, path_of("sessions", session, "announcements")
            del query["state"]
        elif parked:
            query["state"] = "parked"
        listing = client.items(path, query, limit=given["limit"])
    print_listing(listing, columns, api.output)
