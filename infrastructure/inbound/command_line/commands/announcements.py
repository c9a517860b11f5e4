"""`spawnlog announcement list` and `announcement ack`: a session's inbox."""

import uuid
from typing import Annotated

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
from infrastructure.inbound.command_line.display.output import Output, print_listing, print_object
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


def list_announcements(
    session: SessionName,
    after: Annotated[
        int | None, typer.Option(min=0, metavar="POSITION", help="Only after this position.")
    ] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show what a session was told about the children it asked for."""
    with open_client(url, data_dir) as client:
        path = path_of("sessions", session, "announcements")
        listing = client.items(path, {"after": after}, limit=limit)
    print_listing(listing, _COLUMNS, output)


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
