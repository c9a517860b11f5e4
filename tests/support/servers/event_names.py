"""What the events of a run are called in the stories that tests compare."""

from collections.abc import Sequence
from typing import Any


def names_of_events(items: Sequence[dict[str, Any]]) -> list[str]:
    """Return the type of each event, of a step with its name (`StepTaken:workspace`).

    An event of an effect reads `hook:subagentEnded:done`, or `failed`, `parked` or `redriven`.
    """
    return [_name(one["type"], one["payload"]) for one in items]


def _name(kind: str, payload: dict[str, Any]) -> str:
    if kind.startswith("Step"):
        return f"{kind}:{payload['step']}"
    if not kind.startswith("Effect"):
        return kind
    came_of = kind.removeprefix("Effect").lower()
    if came_of == "attempted":
        has_failed = payload["error"] or payload["retryAfterSeconds"] is not None
        came_of = "failed" if has_failed else "done"
    return f"{payload['kind']}:{payload['name']}:{came_of}"
