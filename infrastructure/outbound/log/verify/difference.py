"""Order of differences, and the wording of positions."""

from collections.abc import Iterable

from application.ports.verifications import Difference


def first_difference(found: Iterable[Difference | None]) -> Difference | None:
    """Return the difference with the lowest position; of several there, the first in the
    argument."""
    return min(
        (difference for difference in found if difference is not None), key=_position, default=None
    )


def _position(difference: Difference) -> int:
    return difference.position


def format_positions(first: int, last: int) -> str:
    """Return a range of positions in words, with the verb."""
    return f"position {first} is" if first == last else f"positions {first} to {last} are"
