"""The chain of events that were made apart from those before them.

The hash of an event covers the hash before it and everything else of the event. The larger part,
everything else, does not depend on what came before, so it is encoded where the event is made;
only the last step is left to whoever knows the hash before.
"""

from collections.abc import Iterable

from infrastructure.outbound.log.codec.chain import link_hash


def chain(previous: bytes, rests: Iterable[bytes]) -> list[bytes]:
    """The hashes of events one after the other."""
    hashes: list[bytes] = []
    for rest in rests:
        previous = link_hash(previous, rest)
        hashes.append(previous)
    return hashes
