"""Processes without fault points."""

from typing import Literal


def uninterrupted(moment: Literal["before", "after"], name: str) -> None:
    """Do nothing."""
