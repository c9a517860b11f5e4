"""Verifications of the log in a terminal."""

from infrastructure.inbound.command_line.display.output import JsonObject, print_note, print_table
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant, format_offset


def _positions(one: Item) -> str:
    last = one.get("last")
    return f"{one.get('checked')} of {'?' if last is None else last}"


def _found(one: Item) -> str:
    difference = one.get("difference")
    if isinstance(difference, dict):
        return f"position {difference.get('position')}: {difference.get('text')}"
    if one.get("stopRequestedBy") is not None:
        return f"stopped by {one['stopRequestedBy']}"
    return str(one.get("failure") or "")


_VERIFICATION_COLUMNS = (
    TableColumn("STARTED", lambda one: format_instant(one.get("startedAt"))),
    TableColumn("TOOK", lambda one: format_offset(one.get("startedAt"), one.get("endedAt"))),
    TableColumn("BY", value_of("startedBy")),
    TableColumn("WHERE", lambda one: f"{one.get('origin')} {one.get('process')}"),
    TableColumn("STATE", value_of("state"), coloured=True),
    TableColumn("POSITIONS", _positions, right=True),
    TableColumn("FOUND", _found, folds=True),
)


def print_verifications(head: JsonObject) -> None:
    """Print what the last verifications found."""
    verifications = head.get("verifications")
    if verifications:
        print()
        print_table(verifications, _VERIFICATION_COLUMNS)
    else:
        print_note("the log was not verified yet: spawnlog log verify")
