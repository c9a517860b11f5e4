"""The chain of events that were made apart from those before them.

The hash of an event covers the hash before it and everything else of the event. The larger part,
everything else, does not depend on what came before, so it is encoded where the event is made;
only the last step is left to whoever knows the hash before.
"""

from collections.abc import Iterable, Sequence

from infrastructure.outbound.log.batch import StoredRow
from infrastructure.outbound.log.chain import encoded, linked


class WrongLink(Exception):
    """The chain is not what the writer's own code makes of the same events."""


def rests_of(rows: Sequence[StoredRow], previous: bytes) -> list[bytes]:
    """The rests of events that the writer's code has linked to `previous`.

    Raises `WrongLink` unless each comes out as the hash that was made there.
    """
    rests = [encoded(row.envelope, row.state) for row in rows]
    for row, rest in zip(rows, rests, strict=True):
        previous = linked(previous, rest)
        if previous != row.envelope.chain_hash:
            raise WrongLink(f"event {row.envelope.position} is linked wrongly")
    return rests


def chain(previous: bytes, rests: Iterable[bytes]) -> list[bytes]:
    """The hashes of events one after the other."""
    hashes: list[bytes] = []
    for rest in rests:
        previous = linked(previous, rest)
        hashes.append(previous)
    return hashes
