"""Check from event to event: no position is missing, each hash follows from the previous one, and
appends are complete."""

from collections.abc import Sequence
from typing import NamedTuple

from application.ports.verifications import Difference
from domain.event_types import EVENT_TYPES, UPCASTS
from infrastructure.outbound.log.codec.chain import link_hash
from infrastructure.outbound.log.verify.difference import format_positions
from infrastructure.outbound.log.verify.rows import ReadConnection, StoredEventRow, read_rows

_NOT_RECORDED = -(2**63)


class Link(NamedTuple):
    """The facts about an event that its successor is checked against."""

    position: int
    chain_hash: bytes
    recorded_at: int
    append_last: int
    command_id: bytes


BEGINNING = Link(0, b"", _NOT_RECORDED, 0, b"")
"""The link before the first event of a log."""


class WalkResult(NamedTuple):
    """The rows that are right, the last link, and the first difference."""

    rows: Sequence[StoredEventRow]
    link: Link
    difference: Difference | None


def link_at(connection: ReadConnection, position: int) -> Link | None:
    """Return the link that ends at a position, or None if there is no event."""
    if position == 0:
        return BEGINNING
    rows = read_rows(connection, position, position)
    return link_to(rows[0]) if rows else None


def link_to(row: Link | StoredEventRow) -> Link:
    """Return the link that ends with this event."""
    return Link(row.position, row.chain_hash, row.recorded_at, row.append_last, row.command_id)


def verify_chain(link: Link, rows: Sequence[StoredEventRow], last: int) -> WalkResult:
    """Check the rows from `link` up to position `last`, or up to the first difference.

    A wrong hash is reported as `changed`; its cause is not searched for here.
    """
    before: Link | StoredEventRow = link
    for passed, row in enumerate(rows):
        difference = find_link_fault(before, row)
        if difference is not None:
            return WalkResult(rows[:passed], link_to(before), difference)
        before = row
    difference = _missing_positions(before.position + 1, last) if before.position < last else None
    return WalkResult(rows, link_to(before), difference)


def find_link_fault(link: Link | StoredEventRow, row: StoredEventRow) -> Difference | None:
    """Return the difference if an event does not follow from `link`, otherwise None."""
    here = row.position
    if here != link.position + 1:
        return _missing_positions(link.position + 1, here - 1)
    if link_hash(link.chain_hash, row.encoded) != row.chain_hash:
        return Difference(here, "changed", "its bytes differ from the recorded ones (chain)")
    recorded_at, append_last = row.recorded_at, row.append_last
    if recorded_at < link.recorded_at:
        return Difference(here, "order", "it was recorded earlier than the preceding event")
    kind = (row.type, row.type_version)
    if kind not in EVENT_TYPES and kind not in UPCASTS:
        name = f"{row.type[:80]!r}, version {row.type_version}"
        return Difference(here, "unreadable", f"its type, {name}, is unknown")
    if link.position < link.append_last:
        same = (append_last, row.command_id, recorded_at)
        if same != (link.append_last, link.command_id, link.recorded_at):
            text = f"the append that ends at position {link.append_last} is interrupted here"
            return Difference(here, "append", text)
    elif append_last < here:
        text = f"it claims that its append ended at position {append_last}"
        return Difference(here, "append", text)
    return None


def _missing_positions(first: int, last: int) -> Difference:
    return Difference(first, "missing", f"{format_positions(first, last)} missing")


LOOKED_FOR_POSITIONS = 10_000
"""How far after a broken event the originally recorded one is searched for."""


REMOVED_MAX = INSERTED_MAX = 1_000
"""Maximum number of removed or inserted events, with the rest shifted, that is recognized."""


def explain_break(connection: ReadConnection, link: Link, head_hash: bytes) -> Difference:
    """Return why the chain breaks at the event after `link`, whose hash is wrong.

    `head_hash` is the hash of the last event according to the head.
    """
    first = link.position + 1
    rows = read_rows(connection, first, first + 1)
    broken, following = rows[0], rows[1] if len(rows) > 1 else None
    return (
        _find_moved(connection, link, broken)
        or _find_inserted(connection, link, broken)
        or _find_removed(broken, following)
        or _describe_change(link, broken, following, head_hash)
    )


def _find_moved(
    connection: ReadConnection, link: Link, broken: StoredEventRow
) -> Difference | None:
    """Return a difference if the event recorded here is now at a later position."""
    here = broken.position
    before = broken
    for row in read_rows(connection, here + 1, here + LOOKED_FOR_POSITIONS):
        hashes = (broken.chain_hash, row.chain_hash)
        distance = row.position - here
        if _has_hash_of(row, link.chain_hash, -distance, hashes):
            # If two neighbors were swapped, the hash of the first may have moved with it or stayed.
            if any(
                _has_hash_of(broken, event.chain_hash, distance, hashes) for event in (before, row)
            ):
                text = f"it was swapped with the event at position {row.position}"
                return Difference(here, "swapped", text)
            inserted = format_positions(here, row.position - 1)
            text = (
                f"{inserted} inserted: the event that was recorded at position {here} is now at"
                f" position {row.position}"
            )
            return Difference(here, "inserted", text)
        before = row
    return None


def _find_inserted(
    connection: ReadConnection, link: Link, broken: StoredEventRow
) -> Difference | None:
    """Return a difference if correctly linked events were inserted between it and its
    predecessor."""
    since = max(0, link.position - INSERTED_MAX)
    fronts = {row.position: row.chain_hash for row in read_rows(connection, since, link.position)}
    for inserted in range(1, link.position - since + 1):
        before = fronts.get(link.position - inserted, b"")
        if _has_hash_of(broken, before, -inserted, (broken.chain_hash,)):
            positions = format_positions(broken.position - inserted, link.position)
            text = f"{positions} inserted: the events recorded here were moved up by {inserted}"
            return Difference(broken.position - inserted, "inserted", text)
    return None


def _find_removed(broken: StoredEventRow, following: StoredEventRow | None) -> Difference | None:
    """Return a difference if the event is at this position because preceding events were
    removed."""
    if following is None:
        return None
    for removed in range(1, REMOVED_MAX + 1):
        if _has_hash_of(following, broken.chain_hash, removed, (following.chain_hash,)):
            here = broken.position
            positions = format_positions(here, here + removed - 1)
            text = f"{positions} missing: later events were moved down by {removed}"
            return Difference(here, "missing", text)
    return None


def _describe_change(
    link: Link, broken: StoredEventRow, following: StoredEventRow | None, head_hash: bytes
) -> Difference:
    computed = broken.hash_after(link.chain_hash)
    hash_was_changed = (
        following.hash_after(computed) == following.chain_hash
        if following is not None
        else computed == head_hash
    )
    if hash_was_changed:
        text = "the event is unchanged, but its chain hash was changed"
        return Difference(broken.position, "hash", text)
    text = "its bytes differ from the recorded ones (chain)"
    return Difference(broken.position, "changed", text)


def _has_hash_of(row: StoredEventRow, previous: bytes, moved: int, hashes: Sequence[bytes]) -> bool:
    """Return True if the row would have one of these hashes `moved` positions further."""
    return any(
        row.hash_elsewhere(previous, moved=moved, append_too=append_too) in hashes
        for append_too in (False, True)
    )
