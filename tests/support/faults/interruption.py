"""Processes that nobody ends."""

from typing import Literal


def uninterrupted(moment: Literal["before", "after"], name: str) -> None:
    """Let it go on."""
