"""From event to event: no position is left out, each hash follows from the one before it, and
appends are whole."""

from collections.abc import Iterable
from typing import NamedTuple

from domain.event_types import EVENT_TYPES, UPCASTS
from infrastructure.outbound.log.verify.difference import Difference, format_positions
from infrastructure.outbound.log.verify.rows import StoredEventRow, read_rows
from infrastructure.outbound.log.verifying.connection import ReadConnection

_NOT_RECORDED = -(2**63)


class Link(NamedTuple):
    """What the next event is held against: its predecessor, as far as it matters."""

    position: int
    chain_hash: bytes
    recorded_at: int
    append_last: int
    command_id: bytes


BEGINNING = Link(0, b"", _NOT_RECORDED, 0, b"")


"""What the first event of a log is held against."""


class WalkResult(NamedTuple):
    """The rows that are right, the last link, and the first thing that is not right."""

    rows: list[StoredEventRow]
    link: Link
    difference: Difference | None


def link_at(connection: ReadConnection, position: int) -> Link | None:
    """The link that ends at this position; None when there is no event."""
    if position == 0:
        return BEGINNING
    for row in read_rows(connection, position, position):
        return link_to(row)
    return None


def link_to(row: Link | StoredEventRow) -> Link:
    """What the event behind this one is held against."""
    return Link(row.position, row.chain_hash, row.recorded_at, row.append_last, row.command_id)


def walk(link: Link, rows: Iterable[StoredEventRow], last: int) -> WalkResult:
    """Go from `link` over the rows to the position `last`, or to the first that is not right.

    A broken hash has the kind `changed`; what it was that broke it is not looked for here.
    """
    passed: list[StoredEventRow] = []
    before: Link | StoredEventRow = link
    difference = None
    for row in rows:
        difference = _find_fault(before, row)
        if difference is not None:
            break
        passed.append(row)
        before = row
    else:
        if before.position < last:
            difference = _missing_positions(before.position + 1, last)
    return WalkResult(passed, link_to(before), difference)


def _find_fault(link: Link | StoredEventRow, row: StoredEventRow) -> Difference | None:
    here = row.position
    if here != link.position + 1:
        return _missing_positions(link.position + 1, here - 1)
    if row.hash_after(link.chain_hash) != row.chain_hash:
        return Difference(here, "changed", "its bytes are not the ones that were recorded (chain)")
    if row.recorded_at < link.recorded_at:
        return Difference(here, "order", "it was recorded before the event in front of it")
    kind = (row.type, row.type_version)
    if kind not in EVENT_TYPES and kind not in UPCASTS:
        name = f"{row.type[:80]!r}, version {row.type_version}"
        return Difference(here, "unreadable", f"its type, {name}, is none of spawnlog's")
    return _find_append_fault(link, row)


def _find_append_fault(link: Link | StoredEventRow, row: StoredEventRow) -> Difference | None:
    here = row.position
    if link.position < link.append_last:
        same = (row.append_last, row.command_id, row.recorded_at)
        if same != (link.append_last, link.command_id, link.recorded_at):
            text = f"the append that ends at position {link.append_last} is interrupted here"
            return Difference(here, "append", text)
    elif row.append_last < here:
        text = f"it says that its append ended at position {row.append_last}"
        return Difference(here, "append", text)
    return None


def _missing_positions(first: int, last: int) -> Difference:
    return Difference(first, "missing", f"{format_positions(first, last)} missing")
