"""`spawnlog announcement`: a session's inbox, and the ledger of all of them."""

import uuid
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from infrastructure.inbound.command_line.client.options import (
    AfterPosition,
    ApiOptions,
    AsOfOption,
    LimitOption,
    SessionName,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_listing,
    print_object,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
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
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE", help="Of all sessions: parked, due, delivered or acknowledged."
        ),
    ] = None,
    after: AfterPosition = None,
    at: AsOfOption = None,
    limit: LimitOption = 50,
    *,
    api: ApiOptions,
) -> None:
    """Show the inbox of a session, or all announcements.

    Without a session it is the ledger of everything that was announced, or what could not be
    delivered to webhooks.
    """
    if session is not None and (parked or state is not None):
        raise CommandFailed("--parked and --state are about all sessions: leave the session out")
    if parked and state not in (None, "parked"):
        raise CommandFailed("--parked is a state: leave --state out")
    with api.client() as client:
        if session is None:
            query: JsonObject = {"state": "parked" if parked else state, "after": after, "at": at}
            listing = client.items("/v1/announcements", query, limit=limit)
        else:
            path = path_of("sessions", session, "announcements")
            listing = client.items(path, {"after": after, "at": at}, limit=limit)
    of_all = _PARKED_COLUMNS if parked or state == "parked" else _LEDGER_COLUMNS
    print_listing(listing, _COLUMNS if session is not None else of_all, api.output)


def redrive(
    announcement: Annotated[str, typer.Argument(metavar="ID", help="Id of the announcement.")],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why it is sent again; on record.")
    ],
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", metavar="ID", help="To this one alone, instead of to each."),
    ] = None,
    *,
    api: ApiOptions,
) -> None:
    """Send a parked announcement again.

    It goes to the addresses of the configuration in force.
    """
    body: JsonObject = {"reason": reason}
    if webhook is not None:
        body["webhook"] = webhook
    with api.client() as client:
        path = path_of("announcements", announcement, "redrive")
        answer = client.post(path, body, idempotency_key=str(uuid.uuid4()))
    if not print_object(answer.value, api.output):
        again = ", ".join(answer.value["webhooks"])
        print(f"announcement {printable_line(announcement)} is sent again to {again}")


def acknowledge(
    session: SessionName,
    announcement: Annotated[str, typer.Argument(metavar="ID", help="Id of the announcement.")],
    *,
    api: ApiOptions,
) -> None:
    """Record that the session has taken an announcement."""
    with api.client() as client:
        path = path_of("sessions", session, "announcements", announcement, "ack")
        answer = client.post(path, {}, idempotency_key=str(uuid.uuid4()))
    if not print_object(answer.value, api.output):
        print(f"announcement {printable_line(announcement)} is acknowledged")
