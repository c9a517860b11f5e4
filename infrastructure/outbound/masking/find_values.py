"""Search for values in texts. Pure.

The time is linear in the text, even if value and text are repetitive.
"""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import groupby

MatchSpan = tuple[int, int]


def _spans_of(value: str, text: str) -> list[MatchSpan]:
    """Return the spans that cover the occurrences of a value, in order.

    One span may cover several occurrences that overlap.
    """
    found: list[MatchSpan] = []
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        # Jump to the last occurrence that begins within the span. Going one by one would be
        # quadratic for repetitive values.
        while (last := text.rfind(value, end - len(value) + 1, end + len(value) - 1)) >= 0:
            end = last + len(value)
        found.append((at, end))
        at = text.find(value, end)
    return found


def _overlap_of(value: str, text: str, head: int) -> int:
    """Return how many characters at the end of the text are a proper prefix of the value.

    Prefixes shorter than `head` are ignored.
    """
    at = text.find(value[:head], max(0, len(text) - len(value) + 1))
    while at >= 0:
        if value.startswith(text[at:]):
            return len(text) - at
        at = text.find(value[:head], at + 1)
    return 0


def merge_spans(spans: Iterable[MatchSpan], *, adjacent: bool = False) -> list[MatchSpan]:
    """Return the spans in order, with overlapping ones merged; with `adjacent`, touching ones
    too."""
    found: list[MatchSpan] = []
    for first, end in sorted(spans):
        if found and first < found[-1][1] + adjacent:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((first, end))
    return found


class KnownValues:
    """Search for several values of at least `head` characters, and for prefixes of that length."""

    def __init__(self, forms: Iterable[str], head: int) -> None:
        self._values = sorted(set(forms))
        self._head_characters = head
        self.longest = max(map(len, self._values), default=0)
        self._heads = heads = tuple(sorted({value[:head] for value in self._values}))
        self._short_heads = frozenset(
            value_head[:count] for value_head in heads for count in range(1, head)
        )

    def spans(self, text: str) -> list[MatchSpan]:
        """Return the spans of all values, in any order."""
        if not self.has_head(text):
            return []
        return [span for value in self._values for span in _spans_of(value, text)]

    def long_overlap(self, text: str) -> int:
        """Return the length of the longest prefix of a value at the end of the text.

        0 if it is shorter than a head.
        """
        if not self.has_head(text):
            return 0
        return max(_overlap_of(value, text, self._head_characters) for value in self._values)

    def short_overlap(self, text: str) -> int:
        """Return the length of the longest proper prefix of a head at the end of the text."""
        lengths = range(min(self._head_characters - 1, len(text)), 0, -1)
        return next((count for count in lengths if text[-count:] in self._short_heads), 0)

    def has_head(self, text: str) -> bool:
        """Return True if the text contains the first characters of a value.

        Almost no text does, so this is fast: one regular expression for texts shorter than the
        number of values, else one search for each value.
        """
        if len(text) < self._head_characters:
            return False
        if len(text) < len(self._heads):
            return self._any_head.search(text) is not None
        return any(head in text for head in self._heads)

    @cached_property
    def _any_head(self) -> re.Pattern[str]:
        """Return the pattern of all heads. Cached, because compiling takes longer than most
        searches."""
        return re.compile(_any_of(self._heads))


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for sorted words of equal length that examines each character of a text
    once."""
    groups = groupby(words, key=lambda word: word[:1])
    branches = [
        re.escape(sign) + _any_of(word[1:] for word in rest) for sign, rest in groups if sign
    ]
    return f"(?:{'|'.join(branches)})" if len(branches) > 1 else "".join(branches)
