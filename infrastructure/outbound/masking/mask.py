"""Takes credentials out of what a child says, before anybody keeps it. Pure.

A child can say what it was given, by mistake or on purpose: an error that prints its environment is
enough. A value is found as it stands, line by line, as JSON writes it, in base64 and as part of a
URL; a child that encodes it in other ways gets it out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from application.ports.credentials import REDACTED
from domain.delivery import transcript
from infrastructure.outbound.masking.encodings import (
    CHARACTERS_MAX,
    FoldedText,
    encoded_forms,
    fold_text,
    written_forms,
)
from infrastructure.outbound.masking.find_values import KnownValues, MatchSpan, merge_spans

CHARACTERS_MIN = 8
"""Shorter values are found everywhere by chance, and are not masked."""


LINES_MAX = 200
"""So many lines of a value are masked for themselves; the whole of it is masked in any case."""


LONGEST_CHAIN = 4
LOOK_CHARACTERS_MIN = 1024
"""So much is looked at again with whatever follows it."""


FRESH_SHARE = 8
"""Of more than that, once what follows it is so great a part of it: else a child that says single
characters would have all of it looked at for each of them."""


class MatchedSpans(NamedTuple):
    """What was found in a text: `spans` to be masked, in order. From `waits_at` on it cannot be
    told yet; what is behind `needed_at` is needed to find what ends in the text that follows."""

    spans: Sequence[MatchSpan]
    waits_at: int
    needed_at: int


class Masker:
    """Masks these values."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = tuple(values)
        plain = (form for value in known for form in _forms(value))
        encoded = (form for value in known for form in encoded_forms(value, CHARACTERS_MIN))
        self._plain = KnownValues(plain, CHARACTERS_MIN)
        self._encoded = KnownValues(encoded, CHARACTERS_MIN)
        longest = max(self._plain.longest, CHARACTERS_MAX * self._encoded.longest)
        self._chain_max = LONGEST_CHAIN * longest

    def whole(self, text: str) -> str:
        """A text without them. A beginning of one at its end, where it may have been cut, is
        masked too."""
        return self.rest(text, 0)

    def rest(self, text: str, start: int) -> str:
        """What is behind `start`, when all before was told."""
        if not self.knows_any:
            return text[start:]
        folded = self._folded(text)
        spans = self._spans(text, folded)
        if cut := self._plain.long_overlap(text):
            spans.append((len(text) - cut, len(text)))
        if cut := self._encoded.long_overlap(folded.text):
            signs = len(folded.text)
            end = folded.end(signs) if folded.ends_in_gap else len(text)
            spans.append((folded.start(signs - cut), end))
        return without_spans(text, start, len(text), merge_spans(spans))

    def look(self, text: str) -> MatchedSpans:
        """What is in a text that goes on, whatever follows it."""
        if not self.knows_any:
            return MatchedSpans((), len(text), len(text))
        folded = self._folded(text)
        spans = merge_spans(self._spans(text, folded))
        cut = self._plain.long_overlap(text) or self._plain.short_overlap(text)
        long, short = self._encoded_beginnings(text, folded)
        needed = min(len(text) - cut, long, short)
        # A line is told when it ends: few signs of a value are no loss.
        waits = min(len(text) - cut, long, folded.half_at if folded.ends_in_gap else short)
        # A value may end in what begins another one.
        for first, behind in spans:
            if first < waits < behind:
                # One that is made of beginnings of itself is not waited for without end.
                waits = first if behind - first <= self._chain_max else behind
                break
        return MatchedSpans(spans, waits, min(waits, needed))

    @property
    def knows_any(self) -> bool:
        """Whether there is anything to be masked."""
        return self._plain.longest > 0

    def _folded(self, text: str) -> FoldedText:
        """All of it, or what is needed of it when it has no encoded value."""
        if self._encoded.has_head(fold_text(text)):
            return FoldedText(text)
        return FoldedText(text, max(0, len(text) - (CHARACTERS_MIN + 1) * CHARACTERS_MAX))

    def _encoded_beginnings(self, text: str, folded: FoldedText) -> tuple[int, int]:
        """Where the beginning of an encoded value at the end begins that is long enough to be
        masked, and where one does that is not; half of a sign is one."""
        signs = len(folded.text)
        if cut := self._encoded.long_overlap(folded.text):
            return (folded.start(signs - cut),) * 2
        cut = self._encoded.short_overlap(folded.text)
        return len(text), folded.start(signs - cut) if cut else folded.half_at

    def _spans(self, text: str, folded: FoldedText) -> list[MatchSpan]:
        # A long value is found piece by piece.
        encoded = merge_spans(self._encoded.spans(folded.text), adjacent=True)
        plain = self._plain.spans(text)
        return plain + [(folded.start(first), folded.end(behind)) for first, behind in encoded]

    def entry(self, entry: transcript.ParsedEntry) -> transcript.ParsedEntry:
        """An entry whose texts are without them."""
        match entry:
            case transcript.MessageEntry():
                return transcript.MessageEntry(entry.role, self.whole(entry.text))
            case transcript.ToolEntry():
                return transcript.ToolEntry(
                    self.whole(entry.name), self._maybe(entry.input), self._maybe(entry.output)
                )
            case transcript.UsageEntry():
                return replace(entry, model=self._maybe(entry.model))
            case transcript.ProgressEntry() | transcript.ResultEntry() | transcript.TextEntry():
                return type(entry)(self.whole(entry.text))

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.whole(text)


class MaskedText:
    """A text that comes in pieces: a value that is cut by their ends is masked all the same."""

    def __init__(self, masking: Masker) -> None:
        self._masking = masking
        self._text, self._start, self._fresh = "", 0, ""

    def take(self, piece: str) -> str:
        """What can be told by now."""
        self._fresh += piece
        length = len(self._text)
        if length > LOOK_CHARACTERS_MIN and len(self._fresh) * FRESH_SHARE < length:
            return ""
        text, self._fresh = self._text + self._fresh, ""
        found = self._masking.look(text)
        stop = max(found.waits_at, self._start)
        masked = without_spans(text, self._start, stop, found.spans)
        needed = min(found.needed_at, stop)
        self._text, self._start = text[needed:], stop - needed
        return masked

    def finish(self) -> str:
        """The rest; nothing comes behind it."""
        text, start = self._text + self._fresh, self._start
        self._text, self._start, self._fresh = "", 0, ""
        return self._masking.rest(text, start)


NO_MASKING = Masker()


def without_spans(text: str, start: int, stop: int, spans: Sequence[MatchSpan]) -> str:
    """What is between `start` and `stop` of a text, without the spans."""
    pieces, at = [], start
    for first, behind in spans:
        if behind <= start or first >= stop:
            continue
        pieces += [text[at : max(first, at)], REDACTED]
        at = behind
    pieces.append(text[at:stop])
    return "".join(pieces)


def _forms(value: str) -> Iterable[str]:
    """The value, its lines, and how JSON writes them, so far as they are long enough."""
    for part in (value, *(line.strip() for line in value.splitlines()[:LINES_MAX])):
        for form in written_forms(part):
            if len(form) >= CHARACTERS_MIN:
                yield form
