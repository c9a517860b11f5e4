"""What a session may do, by its depth."""

import pytest

from domain.session.role import Capabilities, capabilities_at


@pytest.mark.parametrize(
    ("depth", "deepest", "role", "scope"),
    [
        (0, 1, "main", "children"),
        (-1, 1, "main", "children"),
        (1, 1, "leaf", "none"),
        (1, 0, "leaf", "none"),
        (1, 2, "orchestrator", "children"),
        (2, 2, "leaf", "none"),
        (4, 5, "orchestrator", "children"),
        (7, 5, "leaf", "none"),
    ],
)
def test_the_role_follows_from_the_depth(depth: int, deepest: int, role: str, scope: str) -> None:
    found = capabilities_at(depth, deepest)
    assert (found.role, found.control_scope) == (role, scope)


def test_only_a_leaf_does_not_spawn() -> None:
    leaf = Capabilities(role="leaf", control_scope="none")
    orchestrator = Capabilities(role="orchestrator", control_scope="children")
    assert not leaf.can_spawn
    assert orchestrator.can_spawn
