"""`spawnlog announcement list`: the inbox of a session, or the ledger of all announcements."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from infrastructure.inbound.command_line.client.described import (
    OperationOptions,
    OptionsOf,
    columns_of,
)
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.forms import table_columns
from infrastructure.inbound.command_line.display.output import print_listing
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of
from spawnlog.core.request import path_of


def _parked(announcement: Mapping[str, Any]) -> str:
    """Return the webhooks whose delivery is parked, each with its attempts and the reason."""
    return "; ".join(
        f"{delivery['webhook']}: {delivery['attempts']} attempt(s),"
        f" {delivery['error'] or delivery['parkedFor']}"
        for delivery in announcement["deliveries"]
        if delivery["state"] == "parked"
    )


_PARKED_COLUMNS = (
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("ID", value_of("id")),
    TableColumn("REQUESTER", value_of("requester"), elastic=True),
    TableColumn("PARKED", _parked, folds=True),
)


def list_announcements(
    key: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Session key or session id. Default: all sessions."),
    ] = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="Only announcements with a parked delivery.")
    ] = False,
    *,
    given: Annotated[OperationOptions, OptionsOf("listLedger")],
    api: ApiOptions,
) -> None:
    """Show the inbox of a session, or all announcements.

    Without a session: the announcements to all sessions, with their deliveries to webhooks.
    """
    state = given["state"]
    if key is not None and (parked or state is not None):
        raise CommandError("--parked and --state list all sessions: leave SESSION out")
    if parked and state not in (None, "parked"):
        raise CommandError("--parked means --state parked: leave --state out")
    is_parked = parked or state == "parked"
    columns = _PARKED_COLUMNS if is_parked else table_columns(columns_of("listLedger"))
    with api.client() as client:
        query, path = given.query(client, without=("limit",)), "/v1/announcements"
        if key is not None:
            columns = table_columns(columns_of("listAnnouncements"))
            path = path_of("sessions", key, "announcements")
            del query["state"]
        elif parked:
            query["state"] = "parked"
        listing = client.items(path, query, limit=given["limit"])
    print_listing(listing, columns, api.output)
