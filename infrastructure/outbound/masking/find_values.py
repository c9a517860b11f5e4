"""Finds values in texts, one or any of several, in time that grows with the text alone, also when
the value and the text are made of repetitions. Pure."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import groupby

BLOCK_CHARACTERS = 4096
MatchSpan = tuple[int, int]


class KnownValue:
    """A value of at least one character."""

    def __init__(self, text: str) -> None:
        self.text = text

    def spans(self, text: str) -> list[MatchSpan]:
        """Spans that cover just where it stands, in order. One may hold several that overlap."""
        found: list[MatchSpan] = []
        at = text.find(self.text)
        while at >= 0:
            end = self._run_end(text, at + len(self.text))
            found.append((at, end))
            # The last that stands in the span begins here; what begins before it was found too.
            at = text.find(self.text, end - len(self.text) + 1)
        return found

    def overlap(self, text: str, head: int) -> int:
        """How many characters at the end of the text are its beginning, not all of it; only what
        has `head` characters is found for certain."""
        start = max(0, len(text) - len(self.text) + 1)
        at = text.find(self.text[:head], start)
        if at < 0:
            return 0
        value, borders, matched = self.text, self._borders, 0
        for sign in text[at:]:
            while matched and value[matched] != sign:
                matched = borders[matched - 1]
            if value[matched] == sign:
                matched += 1
        return matched

    def _run_end(self, text: str, end: int) -> int:
        """Where it ends when it stands before `end` and is repeated by its period from there on."""
        if not self._may_repeat(text, end):
            return end
        period = len(self.text) - self._borders[-1]
        if 2 * period > len(self.text):
            return end
        unit = self.text[-period:]
        block = unit * max(1, BLOCK_CHARACTERS // period)
        for piece in (block, unit):
            while text.startswith(piece, end):
                end += len(piece)
        return end

    def _may_repeat(self, text: str, end: int) -> bool:
        """Looked at first: most values stand alone, and their borders are never needed. A period
        of at most half of it makes the next character one that is in its second half."""
        return end < len(text) and text[end] in self.text[len(self.text) // 2 :]

    @cached_property
    def _borders(self) -> list[int]:
        """For each beginning of it, the length of the longest shorter beginning that ends it."""
        value, borders = self.text, [0]
        matched = 0
        for sign in value[1:]:
            while matched and value[matched] != sign:
                matched = borders[matched - 1]
            if value[matched] == sign:
                matched += 1
            borders.append(matched)
        return borders


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
