"""Takes credentials out of what a child says, before anybody keeps it. Pure.

A child can say what it was given, by mistake or on purpose: an error that prints its environment is
enough. A value is found as it stands, line by line, and as JSON writes it; a child that encodes it
in other ways gets it out.
"""

import json
from collections.abc import Iterable

from application.ports.credentials import REDACTED
from domain import transcript_line as read

CHARACTERS_MIN = 8
"""Shorter values are found everywhere by chance, and are not masked."""
LINES_MAX = 200
"""So many lines of a value are masked for themselves; the whole of it is masked in any case."""
LONGEST_CHAIN = 4


class Masking:
    """Masks these values."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = tuple(sorted({form for value in values for form in _forms(value)}))
        self._chain_max = LONGEST_CHAIN * max(map(len, self._values), default=0)

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
        begins = len(text) - max((_overlap(text, value) for value in self._values), default=0)
        # A value may end in what begins another one.
        for first, behind in self._spans(text, len(text)):
            if first < begins < behind:
                # One that is made of beginnings of itself is not waited for without end.
                return first if behind - first <= self._chain_max else behind
        return begins

    def _cut_off(self, text: str) -> int:
        longest = max((_overlap(text, value) for value in self._values), default=0)
        return longest if longest >= CHARACTERS_MIN else 0

    def _spans(self, text: str, stop: int) -> list[tuple[int, int]]:
        """Where they stand, those that overlap as one; what is behind `stop` counts as one too."""
        found = [(stop, len(text))] if stop < len(text) else []
        for value in self._values:
            at = text.find(value)
            while at >= 0:
                found.append((at, at + len(value)))
                at = text.find(value, at + 1)
        merged: list[tuple[int, int]] = []
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


def _overlap(text: str, value: str) -> int:
    """How many characters at the end of the text are the beginning of the value, not all of it."""
    at = max(0, len(text) - len(value) + 1)
    # Only what begins with several of its characters is compared with all of it.
    while (at := text.find(value[:CHARACTERS_MIN], at)) >= 0:
        if value.startswith(text[at:]):
            return len(text) - at
        at += 1
    few = range(min(CHARACTERS_MIN - 1, len(text)), 0, -1)
    return next((count for count in few if value.startswith(text[-count:])), 0)
