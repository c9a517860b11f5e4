"""`spawnlog announcement list` and `announcement ack`: a session's inbox."""

import uuid
from typing import Annotated

import typer

from infrastructure.inbound.command_line.options import (
    As,
    DataDir,
    Limit,
    Output,
    SessionName,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paths import path_of
from infrastructure.inbound.command_line.plain_text import one_line
from infrastructure.inbound.command_line.rendering import print_listing, print_object
from infrastructure.inbound.command_line.tables import Column, field

_COLUMNS = (
    Column("POSITION", field("position"), right=True),
    Column("ID", field("id")),
    Column("LABEL", field("label"), elastic=True),
    Column("STATUS", field("status"), coloured=True),
    Column("STATE", field("state")),
    Column("TEXT", field("text"), elastic=True),
)


def list_announcements(
    session: SessionName,
    after: Annotated[
        int | None, typer.Option(min=0, metavar="POSITION", help="Only after this position.")
    ] = None,
    limit: Limit = 50,
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show what a session was told about the children it asked for."""
    with connected(url, data_dir) as client:
        path = path_of("sessions", session, "announcements")
        listing = client.items(path, {"after": after}, limit=limit)
    print_listing(listing, _COLUMNS, output)


def acknowledge(
    session: SessionName,
    announcement: Annotated[str, typer.Argument(metavar="ID", help="Id of the announcement.")],
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Record that the session has taken an announcement."""
    with connected(url, data_dir) as client:
        path = path_of("sessions", session, "announcements", announcement, "ack")
        answer = client.post(path, {}, idempotency_key=str(uuid.uuid4()))
    if not print_object(answer.body, output):
        print(f"announcement {one_line(announcement)} is acknowledged")
