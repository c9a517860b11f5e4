"""Takes credentials out of what a child says, before anybody keeps it. Pure.

A child can say what it was given, by mistake or on purpose: an error that prints its environment is
enough. A value is found as it stands, line by line, and as JSON writes it; a child that encodes it
in other ways gets it out.
"""

import json
import re
from collections.abc import Iterable
from itertools import groupby

from application.ports.credentials import REDACTED
from domain import transcript_line as read
from infrastructure.outbound.runtimes.known_value import KnownValue, Span

CHARACTERS_MIN = 8
"""Shorter values are found everywhere by chance, and are not masked."""
LINES_MAX = 200
"""So many lines of a value are masked for themselves; the whole of it is masked in any case."""
LONGEST_CHAIN = 4


class Masking:
    """Masks these values."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = sorted({form for value in values for form in _forms(value)})
        self._values = tuple(map(KnownValue, forms))
        self._chain_max = LONGEST_CHAIN * max(map(len, forms), default=0)
        self._heads = heads = tuple(sorted({form[:CHARACTERS_MIN] for form in forms}))
        self._head = re.compile(_any_of(heads)) if heads else None
        few = range(1, CHARACTERS_MIN)
        self._short_heads = frozenset(head[:count] for head in heads for count in few)

    def whole(self, text: str) -> str:
        """A text without them. A beginning of one at its end, where it may have been cut, is
        masked too."""
        return self.known(text, len(text) - self._cut_off(text))

    def known(self, text: str, end: int | None = None) -> str:
        """The text without the values that stand in it, and without what is behind `end`, which
        is masked when there is any."""
        shown, at = [], 0
        stop = len(text) if end is None else end
        for first, behind in self._spans(text, stop):
            shown += [text[at:first], REDACTED]
            at = behind
        shown.append(text[at:])
        return "".join(shown)

    def begun(self, text: str) -> int:
        """From where on the text cannot be told to be without them, whatever follows it."""
        if not self._values:
            return len(text)
        begins = len(text) - (self._long_overlap(text) or self._short_overlap(text))
        if begins == len(text):
            return begins
        # A value may end in what begins another one.
        for first, behind in self._spans(text, len(text)):
            if first < begins < behind:
                # One that is made of beginnings of itself is not waited for without end.
                return first if behind - first <= self._chain_max else behind
        return begins

    def _cut_off(self, text: str) -> int:
        return self._long_overlap(text)

    def _long_overlap(self, text: str) -> int:
        """How many characters at the end are the longest beginning of a value, if it is one that
        is long enough to be masked."""
        if not self._has_head(text):
            return 0
        longest = max(value.overlap(text, CHARACTERS_MIN) for value in self._values)
        return longest if longest >= CHARACTERS_MIN else 0

    def _short_overlap(self, text: str) -> int:
        lengths = range(min(CHARACTERS_MIN - 1, len(text)), 0, -1)
        return next((count for count in lengths if text[-count:] in self._short_heads), 0)

    def _has_head(self, text: str) -> bool:
        """Nearly all texts are without one, and a look must be enough for them: in a short text
        one for all, in a long one a fast one for each."""
        if self._head is None:
            return False
        if len(text) < len(self._heads):
            return self._head.search(text) is not None
        return any(head in text for head in self._heads)

    def _spans(self, text: str, stop: int) -> list[Span]:
        """Where they stand, those that overlap as one; what is behind `stop` counts as one too."""
        found = [(stop, len(text))] if stop < len(text) else []
        if self._has_head(text):
            found += [span for value in self._values for span in value.spans(text)]
        merged: list[Span] = []
        for first, behind in sorted(found):
            if merged and first < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(behind, merged[-1][1]))
            else:
                merged.append((first, behind))
        return merged

    def entry(self, entry: read.TranscriptEntry) -> read.TranscriptEntry:
        """An entry whose texts are without them."""
        match entry:
            case read.MessageEntry():
                return read.MessageEntry(entry.role, self.whole(entry.text))
            case read.ToolEntry():
                return read.ToolEntry(
                    self.whole(entry.name), self._maybe(entry.input), self._maybe(entry.output)
                )
            case read.UsageEntry():
                return read.UsageEntry(
                    entry.input_tokens, entry.output_tokens, self._maybe(entry.model)
                )
            case read.ProgressEntry() | read.ResultEntry() | read.TextEntry():
                return type(entry)(self.whole(entry.text))

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.whole(text)


class MaskedText:
    """A text that comes in pieces: a value that is cut by their ends is masked all the same."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._waiting = ""

    def take(self, piece: str) -> str:
        """What can be told by now."""
        text = self._waiting + piece
        end = self._masking.begun(text)
        self._waiting = text[end:]
        return self._masking.known(text[:end])

    def finish(self) -> str:
        """The rest; nothing comes behind it."""
        text, self._waiting = self._waiting, ""
        return self._masking.whole(text)


NO_MASKING = Masking()


def _forms(value: str) -> Iterable[str]:
    """The value, its lines, and how JSON writes them, so far as they are long enough."""
    for part in (value, *(line.strip() for line in value.splitlines()[:LINES_MAX])):
        for form in (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]):
            if len(form) >= CHARACTERS_MIN:
                yield form


def _any_of(words: Iterable[str]) -> str:
    """A pattern of sorted words, of one length, that looks at each character of a text once."""
    groups = groupby(words, key=lambda word: word[:1])
    branches = [
        re.escape(sign) + _any_of(word[1:] for word in rest) for sign, rest in groups if sign
    ]
    return f"(?:{'|'.join(branches)})" if len(branches) > 1 else "".join(branches)
