"""The agents of the society, and how long each takes."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.servers.configurations import agent, configuration, scripted

HOOKS = ("subagentSpawning", "subagentEnded")
FAILING = {"outcome": "error", "error": "the harbour is closed"}


def society(
    paces: Mapping[str, Sequence[int]],
    *,
    cap: int,
    hooks: Mapping[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Return a configuration of these children under a cap.

    No session may spawn `stranger`; `ghost` is allowed, but not configured.

    Args:
        paces: The pauses of each child in milliseconds; after each it says a word. The child called
            `failing` then fails.
        cap: Maximum number of active children of a session.
        hooks: The hooks that bind threads.
        settings: Further arguments of `configuration`.
    """
    children = [
        agent(name, scripted(steps=_steps(pauses), **FAILING if name == "failing" else {}))
        for name, pauses in paces.items()
    ]
    config = configuration(
        agent("main", default=True),
        *children,
        agent("stranger"),
        allowAgents=[*paces, "ghost"],
        maxChildrenPerAgent=cap,
        **settings,
    )
    config["spawnlog"]["hooks"] = dict(hooks or {})
    return config


def _steps(pauses: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"afterMs": pause, "message": f"word {number}"}
        for number, pause in enumerate(pauses, start=1)
    ]
