"""Differences put in order, and positions in words."""

from collections.abc import Iterable

from application.ports.verifications import Difference


def first_difference(found: Iterable[Difference | None]) -> Difference | None:
    """The one with the lowest position; of several there, the one that was named first."""
    return min((one for one in found if one is not None), key=_position, default=None)


def _position(one: Difference) -> int:
    return one.position


def format_positions(first: int, last: int) -> str:
    """How a stretch of positions is called."""
    return f"position {first} is" if first == last else f"positions {first} to {last} are"
