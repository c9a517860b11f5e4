"""What a session may do, by its depth."""

from collections.abc import Callable
from dataclasses import dataclass

from domain.values.role import ControlScope, Role
from domain.values.session_key import depth_of_shape
from domain.values.sources import DepthSource


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`control_scope` says which sessions it may stop and message."""

    role: Role
    control_scope: ControlScope

    @property
    def can_spawn(self) -> bool:
        """Whether it may have children of its own."""
        return self.role != "leaf"


def capabilities_at(depth: int, max_spawn_depth: int) -> Capabilities:
    """What a session at `depth` may do; 0 is a root, `max_spawn_depth` the deepest there may be."""
    if depth <= 0:
        return Capabilities(role="main", control_scope="children")
    if depth < max(1, max_spawn_depth):
        return Capabilities(role="orchestrator", control_scope="children")
    return Capabilities(role="leaf", control_scope="none")


# How deep a session is: what is on record, else how deep its parents are, else its key's shape.


"""Where a depth was found."""


ANCESTORS_MAX = 64
"""Nobody goes up a tree further than this: none is so deep, and a record that was a circle would
have no end."""


@dataclass(frozen=True, slots=True)
class KnownDepth:
    """What is known of a session: a depth, as somebody wrote it down, and who spawned it."""

    depth: object
    spawned_by: str | None


@dataclass(frozen=True, slots=True)
class FoundDepth:
    """A depth, 0 for a root session, and where it was found."""

    depth: int
    source: DepthSource


def depth_of(key: str, known: Callable[[str], KnownDepth | None]) -> FoundDepth:
    """The depth of the session with this canonical key.

    A recorded depth (a whole number from 0, or its digits) counts before everything else. Without
    one it is one more than the parent's, found in the same way; a parent of whom nothing is known
    is as deep as its key says. A circle, and what is above `ANCESTORS_MAX` parents, ends at the
    shape of the key where it was noticed.
    """
    above = 0
    keys: set[str] = set()
    while True:
        keys.add(key)
        entry = known(key)
        recorded = _valid_depth(entry.depth) if entry is not None else None
        if recorded is not None:
            return FoundDepth(recorded + above, "chain" if above else "record")
        parent = entry.spawned_by if entry is not None else None
        if parent is None or parent in keys or above >= ANCESTORS_MAX:
            return FoundDepth(depth_of_shape(key) + above, "chain" if above else "shape")
        key, above = parent, above + 1


def _valid_depth(depth: object) -> int | None:
    if isinstance(depth, str) and depth.strip().isdecimal():
        return int(depth)
    if isinstance(depth, int) and not isinstance(depth, bool) and depth >= 0:
        return depth
    return None
