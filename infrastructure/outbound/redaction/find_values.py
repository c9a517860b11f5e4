"""Finds one value in texts, in time that grows with the text alone, also when the value and the
text are made of repetitions. Pure."""

from collections.abc import Iterable
from functools import cached_property

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
