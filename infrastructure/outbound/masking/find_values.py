"""Finds values in texts, one or any of several, in time that grows with the text alone, also when
the value and the text are made of repetitions. Pure."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import groupby

MatchSpan = tuple[int, int]


def _spans_of(value: str, text: str) -> list[MatchSpan]:
    """Spans that cover just where a value stands, in order. One may hold several that overlap."""
    found: list[MatchSpan] = []
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        # The last that begins within the span, again and again: one by one would take too long
        # for a value that is made of repetitions.
        while (last := text.rfind(value, end - len(value) + 1, end + len(value) - 1)) >= 0:
            end = last + len(value)
        found.append((at, end))
        at = text.find(value, end)
    return found


def _overlap_of(value: str, text: str, head: int) -> int:
    """How many characters at the end of the text are the beginning of a value, not all of it; only
    a beginning of at least `head` characters is found."""
    at = text.find(value[:head], max(0, len(text) - len(value) + 1))
    while at >= 0:
        if value.startswith(text[at:]):
            return len(text) - at
        at = text.find(value[:head], at + 1)
    return 0


def merge_spans(spans: Iterable[MatchSpan], *, adjacent: bool = False) -> list[MatchSpan]:
    """In order, those that overlap as one; those that follow each other too, if wished so."""
    found: list[MatchSpan] = []
    for first, behind in sorted(spans):
        if found and first < found[-1][1] + adjacent:
            found[-1] = (found[-1][0], max(behind, found[-1][1]))
        else:
            found.append((first, behind))
    return found


class KnownValues:
    """Any of several values of at least `head` characters; a beginning of one that has so many is
    found too."""

    def __init__(self, forms: Iterable[str], head: int) -> None:
        self._values = sorted(set(forms))
        self._head_characters = head
        self.longest = max(map(len, self._values), default=0)
        self._heads = heads = tuple(sorted({value[:head] for value in self._values}))
        self._short_heads = frozenset(one[:count] for one in heads for count in range(1, head))

    def spans(self, text: str) -> list[MatchSpan]:
        """Where they stand, in any order."""
        if not self.has_head(text):
            return []
        return [span for value in self._values for span in _spans_of(value, text)]

    def long_overlap(self, text: str) -> int:
        """How many characters at the end are the longest beginning of a value, if it has those of
        a head."""
        if not self.has_head(text):
            return 0
        return max(_overlap_of(value, text, self._head_characters) for value in self._values)

    def short_overlap(self, text: str) -> int:
        """How many characters at the end are the longest beginning of a head, not all of it."""
        lengths = range(min(self._head_characters - 1, len(text)), 0, -1)
        return next((count for count in lengths if text[-count:] in self._short_heads), 0)

    def has_head(self, text: str) -> bool:
        """Return True if a text holds the beginning of a value. Nearly no text does, so this is
        fast: one search for all in a text that is shorter than their number, else one for each."""
        if len(text) < self._head_characters:
            return False
        if len(text) < len(self._heads):
            return self._any_head.search(text) is not None
        return any(head in text for head in self._heads)

    @cached_property
    def _any_head(self) -> re.Pattern[str]:
        """The pattern of all heads. It takes longer to compile than most texts to look at."""
        return re.compile(_any_of(self._heads))


def _any_of(words: Iterable[str]) -> str:
    """A pattern of sorted words, of one length, that looks at each character of a text once."""
    groups = groupby(words, key=lambda word: word[:1])
    branches = [
        re.escape(sign) + _any_of(word[1:] for word in rest) for sign, rest in groups if sign
    ]
    return f"(?:{'|'.join(branches)})" if len(branches) > 1 else "".join(branches)
