"""The short facts of the events by which sessions share something."""

from collections.abc import Mapping, Sequence
from typing import Any


def format_shared(payload: Mapping[str, Any]) -> str:
    """Which keys were written, and by whom."""
    run_id, by = payload.get("runId"), payload.get("by")
    author = f"by run {run_id}" if run_id else f"by {by}" if by else ""
    return ", ".join(filter(None, (_format_keys(payload["changes"]), author)))


def format_inherited(payload: Mapping[str, Any]) -> str:
    """Which keys a run starts with, and of whose."""
    return ", ".join(filter(None, (_format_keys(payload["keys"]), f"of {payload['fromSession']}")))


def _format_keys(keys: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(
        str(one["key"]) if one.get("value") else f"{one['key']} taken away" for one in keys
    )
