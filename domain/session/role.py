"""Role and depth of a session."""

from collections.abc import Callable
from dataclasses import dataclass

from domain.values.role import ControlScope, Role
from domain.values.session_key import depth_of_shape
from domain.values.sources import DepthSource


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Role of a session, and which sessions it may stop and message."""

    role: Role
    control_scope: ControlScope

    @property
    def can_spawn(self) -> bool:
        """Return True if the session may have children."""
        return self.role != "leaf"


def capabilities_at(depth: int, max_spawn_depth: int) -> Capabilities:
    """Return the capabilities of a session.

    Args:
        depth: The depth of the session; 0 is a root.
        max_spawn_depth: The largest depth allowed; a session there is a leaf.
    """
    if depth <= 0:
        return Capabilities(role="main", control_scope="children")
    if depth < max(1, max_spawn_depth):
        return Capabilities(role="orchestrator", control_scope="children")
    return Capabilities(role="leaf", control_scope="none")


# Depth of a session: the recorded one, else that of its ancestors, else the shape of its key.


ANCESTORS_MAX = 64
"""How many ancestors are followed. No tree is that deep, and a cycle in the record must end."""


@dataclass(frozen=True, slots=True)
class KnownDepth:
    """Recorded depth of a session, not validated yet, and the session that spawned it."""

    depth: object
    spawned_by: str | None


@dataclass(frozen=True, slots=True)
class FoundDepth:
    """Depth of a session (0 for a root), and where it was found."""

    depth: int
    source: DepthSource


def depth_of(key: str, known: Callable[[str], KnownDepth | None]) -> FoundDepth:
    """Return the depth of the session with this canonical key.

    A recorded depth (a whole number from 0, or its digits as text) wins. Without one, the depth is
    that of the parent plus one, found in the same way. If nothing is known of an ancestor, the
    shape of its key gives its depth. The same holds for the ancestor where a cycle is noticed or
    `ANCESTORS_MAX` is reached.

    Args:
        key: The canonical session key.
        known: Returns the recorded depth and parent of a session, or None.
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
