"""`spawnlog announcement`: a session's inbox, and what could not be delivered from any."""

import uuid
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from infrastructure.inbound.command_line.client.location import path_of
from infrastructure.inbound.command_line.client.options import (
    DataDir,
    LimitOption,
    OutputOption,
    SessionName,
    Url,
    open_client,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Output,
    print_listing,
    print_object,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

_COLUMNS = (
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("ID", value_of("id")),
    TableColumn("LABEL", value_of("label"), elastic=True),
    TableColumn("STATUS", value_of("status"), coloured=True),
    TableColumn("STATE", value_of("state")),
    TableColumn("TEXT", value_of("text"), elastic=True),
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
    TableColumn("PARKED", _parked, elastic=True),
)


def list_announcements(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Session key or session id; all with --parked."),
    ] = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="What webhooks have not taken, of all sessions.")
    ] = False,
    after: Annotated[
        int | None, typer.Option(min=0, metavar="POSITION", help="Only after this position.")
    ] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show what a session was told about the children it asked for, or what could not be delivered
    to webhooks."""
    if (session is None) is not parked:
        raise CommandFailed("give a session to read its inbox, or --parked for all that is parked")
    with open_client(url, data_dir) as client:
        if session is None:
            query: JsonObject = {"state": "parked", "after": after}
            listing = client.items("/v1/announcements", query, limit=limit)
        else:
            path = path_of("sessions", session, "announcements")
            listing = client.items(path, {"after": after}, limit=limit)
    print_listing(listing, _PARKED_COLUMNS if parked else _COLUMNS, output)


def redrive(
    announcement: Annotated[str, typer.Argument(metavar="ID", help="Id of the announcement.")],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why it is sent again; on record.")
    ],
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", metavar="ID", help="To this one alone, instead of to each."),
    ] = None,
    output: OutputOption = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Send a parked announcement again, to the addresses of the configuration in force."""
    body: JsonObject = {"reason": reason}
    if webhook is not None:
        body["webhook"] = webhook
    with open_client(url, data_dir) as client:
        path = path_of("announcements", announcement, "redrive")
        answer = client.post(path, body, idempotency_key=str(uuid.uuid4()))
    if not print_object(answer.body, output):
        again = ", ".join(answer.body["webhooks"])
        print(f"announcement {printable_line(announcement)} is sent again to {again}")


def acknowledge(
    session: SessionName,
    announcement: Annotated[str, typer.Argument(metavar="ID", help="Id of the announcement.")],
    output: OutputOption = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Record that the session has taken an announcement."""
    with open_client(url, data_dir) as client:
        path = path_of("sessions", session, "announcements", announcement, "ack")
        answer = client.post(path, {}, idempotency_key=str(uuid.uuid4()))
    if not print_object(answer.body, output):
        print(f"announcement {printable_line(announcement)} is acknowledged")
