"""Finds any of several values in texts. Pure."""

import re
from collections.abc import Iterable
from itertools import groupby

from infrastructure.outbound.redaction.find_values import KnownValue, MatchSpan


class KnownValues:
    """Values of at least `head` characters; a beginning of one that has so many is found too."""

    def __init__(self, forms: Iterable[str], head: int) -> None:
        known = sorted(set(forms))
        self._values = tuple(map(KnownValue, known))
        self._head_characters = head
        self.longest = max(map(len, known), default=0)
        self._heads = heads = tuple(sorted({form[:head] for form in known}))
        self._head = re.compile(_any_of(heads)) if heads else None
        self._short_heads = frozenset(one[:count] for one in heads for count in range(1, head))

    def spans(self, text: str) -> list[MatchSpan]:
        """Where they stand, in any order."""
        if not self.has_head(text):
            return []
        return [span for value in self._values for span in value.spans(text)]

    def long_overlap(self, text: str) -> int:
        """How many characters at the end are the longest beginning of a value, if it has those of
        a head."""
        if not self.has_head(text):
            return 0
        longest = max(value.overlap(text, self._head_characters) for value in self._values)
        return longest if longest >= self._head_characters else 0

    def short_overlap(self, text: str) -> int:
        """How many characters at the end are the longest beginning of a head, not all of it."""
        lengths = range(min(self._head_characters - 1, len(text)), 0, -1)
        return next((count for count in lengths if text[-count:] in self._short_heads), 0)

    def has_head(self, text: str) -> bool:
        """Nearly all texts are without one, and a look must be enough for them: in a short text
        one for all, in a long one a fast one for each."""
        if self._head is None:
            return False
        if len(text) < len(self._heads):
            return self._head.search(text) is not None
        return any(head in text for head in self._heads)


def _any_of(words: Iterable[str]) -> str:
    """A pattern of sorted words, of one length, that looks at each character of a text once."""
    groups = groupby(words, key=lambda word: word[:1])
    branches = [
        re.escape(sign) + _any_of(word[1:] for word in rest) for sign, rest in groups if sign
    ]
    return f"(?:{'|'.join(branches)})" if len(branches) > 1 else "".join(branches)
