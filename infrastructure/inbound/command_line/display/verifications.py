"""Verifications of the log in a terminal."""

from infrastructure.inbound.command_line.display.output import JsonObject, print_note, print_table
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant, format_offset


def _positions(verification: Item) -> str:
    last = verification.get("last")
    return f"{verification.get('checked')} of {'?' if last is None else last}"


def _found(verification: Item) -> str:
    difference = verification.get("difference")
    if isinstance(difference, dict):
        return f"position {difference.get('position')}: {difference.get('text')}"
    if verification.get("stopRequestedBy") is not None:
        return f"stopped by {verification['stopRequestedBy']}"
    return str(verification.get("failure") or "")


_VERIFICATION_COLUMNS = (
    TableColumn("STARTED", lambda item: format_instant(item.get("startedAt"))),
    TableColumn("TOOK", lambda item: format_offset(item.get("startedAt"), item.get("endedAt"))),
    TableColumn("BY", value_of("startedBy")),
    TableColumn("WHERE", lambda item: f"{item.get('origin')} {item.get('process')}"),
    TableColumn("STATE", value_of("state"), coloured=True),
    TableColumn("POSITIONS", _positions, right=True),
    TableColumn("FOUND", _found, folds=True),
)


def print_verifications(head: JsonObject) -> None:
    """Print the results of the last verifications."""
    verifications = head.get("verifications")
    if verifications:
        print()
        print_table(verifications, _VERIFICATION_COLUMNS)
    else:
        print_note("the log was never verified: run spawnlog log verify")
