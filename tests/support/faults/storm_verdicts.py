"""Real time and positions compared: who was answered before another asked stands before it.

`began` and `ended` are nanoseconds of the machine's monotonic clock, the same in every process.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.faults.storm import Row

Note = Mapping[str, Any]


def out_of_order(told: Sequence[Note], found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Commands whose first event stands before one that was confirmed before they were asked."""
    asked = [note for note in told if note["command"] in found]

    def first(note: Note) -> int:
        return found[note["command"]][0].envelope.position

    return _violations(asked, asked, lambda high, note: first(note) <= high)


def too_late(looks: Sequence[Note], told: Sequence[Note]) -> list[str]:
    """Looks at the head that were behind what had been promised before them."""
    return _violations(told, looks, lambda high, look: look["head"] < high)


def too_early(
    looks: Sequence[Note], told: Sequence[Note], found: Mapping[str, Sequence[Row]]
) -> list[str]:
    """Commands that stand at or before a position which was seen before they were asked."""
    asked = [note for note in told if note["command"] in found]
    seen = [{**look, "position": look["head"]} for look in looks]

    def first(note: Note) -> int:
        return found[note["command"]][0].envelope.position

    return _violations(seen, asked, lambda high, note: first(note) <= high)


def _violations(
    earlier: Sequence[Note], later: Sequence[Note], is_wrong: Callable[[int, Note], bool]
) -> list[str]:
    """Each of `later` against the highest position of those that had ended before it began."""
    ended = sorted(earlier, key=lambda note: note["ended"])
    wrong: list[str] = []
    high, next_ended = 0, 0
    for note in sorted(later, key=lambda note: note["began"]):
        while next_ended < len(ended) and ended[next_ended]["ended"] < note["began"]:
            high = max(high, ended[next_ended]["position"])
            next_ended += 1
        if high and is_wrong(high, note):
            wrong.append(f"after position {high} was told: {note}")
    return wrong
