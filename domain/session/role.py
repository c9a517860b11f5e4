"""What a session may do, by its depth."""

from dataclasses import dataclass

from domain.session.events import ControlScope, Role


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
