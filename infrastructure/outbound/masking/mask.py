"""Mask credentials in the output of a child before it is stored. Pure.

A child may print its credentials, by mistake or on purpose; an error that dumps its environment is
enough. A value is found in its plain form, line by line, as JSON writes it, in base64, and inside a
URL. Other encodings are not detected.
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
"""Shorter values are not masked, because they occur everywhere by chance."""


LINES_MAX = 200
"""Maximum lines of a value that are masked individually. The value as a whole is always masked."""


LONGEST_CHAIN = 4
LOOK_CHARACTERS_MIN = 1024
"""A text up to this length is searched again with each new piece."""


FRESH_SHARE = 8
"""A longer text is searched again once the new text is at least this fraction (1/8) of it.
Otherwise a child that prints single characters would cause a search of the whole text for each of
them."""


class MatchedSpans(NamedTuple):
    """Result of a search in a text that may continue.

    Attributes:
        spans: Spans to mask, in order.
        waits_at: The text from here on cannot be released yet.
        needed_at: The text from here on is needed to find values that end in the next piece.
    """

    spans: Sequence[MatchSpan]
    waits_at: int
    needed_at: int


class Masker:
    """Masks a set of values."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = tuple(values)
        plain = (form for value in known for form in _forms(value))
        encoded = (form for value in known for form in encoded_forms(value, CHARACTERS_MIN))
        self._plain = KnownValues(plain, CHARACTERS_MIN)
        self._encoded = KnownValues(encoded, CHARACTERS_MIN)
        longest = max(self._plain.longest, CHARACTERS_MAX * self._encoded.longest)
        self._chain_max = LONGEST_CHAIN * longest

    def whole(self, text: str) -> str:
        """Return a text with the values masked.

        A prefix of a value at the end is masked too, because the text may have been cut there.
        """
        return self.rest(text, 0)

    def rest(self, text: str, start: int) -> str:
        """Return the masked text from `start` on; what is before it was returned earlier."""
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
        """Search a text that may continue."""
        if not self.knows_any:
            return MatchedSpans((), len(text), len(text))
        folded = self._folded(text)
        spans = merge_spans(self._spans(text, folded))
        cut = self._plain.long_overlap(text) or self._plain.short_overlap(text)
        long, short = self._encoded_beginnings(text, folded)
        needed = min(len(text) - cut, long, short)
        # Release a line when it ends, even if it ends in a few characters of a value.
        waits = min(len(text) - cut, long, folded.half_at if folded.ends_in_gap else short)
        # A value may end with the beginning of another one.
        for first, end in spans:
            if first < waits < end:
                # Do not hold back a repetitive value forever.
                waits = first if end - first <= self._chain_max else end
                break
        return MatchedSpans(spans, waits, min(waits, needed))

    @property
    def knows_any(self) -> bool:
        """Return True if there is any value to mask."""
        return self._plain.longest > 0

    def _folded(self, text: str) -> FoldedText:
        """Return the folded text: all of it, or only its end if it contains no encoded value."""
        if self._encoded.has_head(fold_text(text)):
            return FoldedText(text)
        return FoldedText(text, max(0, len(text) - (CHARACTERS_MIN + 1) * CHARACTERS_MAX))

    def _encoded_beginnings(self, text: str, folded: FoldedText) -> tuple[int, int]:
        """Return the offsets of an encoded prefix at the end of the text.

        The first is for a prefix that is long enough to mask, the second for a shorter one. Half of
        an encoded character counts as a short prefix.
        """
        signs = len(folded.text)
        if cut := self._encoded.long_overlap(folded.text):
            return (folded.start(signs - cut),) * 2
        cut = self._encoded.short_overlap(folded.text)
        return len(text), folded.start(signs - cut) if cut else folded.half_at

    def _spans(self, text: str, folded: FoldedText) -> list[MatchSpan]:
        # A long value is found in adjacent pieces.
        encoded = merge_spans(self._encoded.spans(folded.text), adjacent=True)
        plain = self._plain.spans(text)
        return plain + [(folded.start(first), folded.end(end)) for first, end in encoded]

    def entry(self, entry: transcript.ParsedEntry) -> transcript.ParsedEntry:
        """Return a transcript entry with its texts masked."""
        match entry:
            case transcript.MessageEntry():
                return transcript.MessageEntry(entry.role, self.whole(entry.text))
            case transcript.ToolEntry():
                return replace(
                    entry,
                    name=self.whole(entry.name),
                    input=self._maybe(entry.input),
                    output=self._maybe(entry.output),
                )
            case transcript.UsageEntry():
                return replace(entry, model=self._maybe(entry.model))
            case transcript.ProgressEntry() | transcript.ResultEntry() | transcript.TextEntry():
                return type(entry)(self.whole(entry.text))

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.whole(text)


class MaskedText:
    """Masks a text that arrives in pieces, including values split between pieces."""

    def __init__(self, masking: Masker) -> None:
        self._masking = masking
        self._text, self._start, self._fresh = "", 0, ""

    def take(self, piece: str) -> str:
        """Return the masked text that can be released now."""
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
        """Return the rest. Call it once, at the end."""
        text, start = self._text + self._fresh, self._start
        self._text, self._start, self._fresh = "", 0, ""
        return self._masking.rest(text, start)


NO_MASKING = Masker()


def without_spans(text: str, start: int, stop: int, spans: Sequence[MatchSpan]) -> str:
    """Return the text between `start` and `stop`, with the spans replaced by a placeholder."""
    pieces, at = [], start
    for first, end in spans:
        if end <= start or first >= stop:
            continue
        pieces += [text[at : max(first, at)], REDACTED]
        at = end
    pieces.append(text[at:stop])
    return "".join(pieces)


def _forms(value: str) -> Iterable[str]:
    """Return the value, its lines, and their JSON forms, if they are long enough."""
    for part in (value, *(line.strip() for line in value.splitlines()[:LINES_MAX])):
        for form in written_forms(part):
            if len(form) >= CHARACTERS_MIN:
                yield form
