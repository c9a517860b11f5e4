"""The short facts of a request that is about other runs too: its batch, and what it waits for."""

from collections.abc import Mapping
from typing import Any


def format_batch_place(payload: Mapping[str, Any]) -> str:
    """The place of a run in its batch."""
    batch = payload.get("batch")
    if not isinstance(batch, Mapping):
        return ""
    return f"task {int(batch['index']) + 1}/{len(batch['runIds'])} of batch {batch['batchId']}"


def format_dependencies(payload: Mapping[str, Any]) -> str:
    """The runs that it is to wait for, by the names it was asked for with."""
    names = [str(one["name"]) for one in payload.get("dependencies") or ()]
    return f"after {' and '.join(names)}" if names else ""
