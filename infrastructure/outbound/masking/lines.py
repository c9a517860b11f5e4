"""Mask lines without a format of their own as one continuous text. Pure."""

from collections.abc import Iterator

from domain.delivery.transcript import LINE_BYTES_MAX, TextEntry
from infrastructure.outbound.masking.mask import MaskedText, Masker


class TextLines:
    """Text entries of masked lines.

    An encoder breaks a value over lines, and a single line would not be recognized as part of it.
    Lines that one masked value spans become one entry. Beyond 1 MiB, the next entry begins.
    """

    def __init__(self, masking: Masker) -> None:
        self._masked = MaskedText(masking)
        self._line: list[str] = []
        self._bytes = 0

    def take(self, line: str) -> Iterator[TextEntry]:
        """Yield the entries that are complete once this line (without its end) is known."""
        *ended, rest = self._masked.take(line + "\n").split("\n")
        for text in ended:
            yield from self._more(text)
            yield from self._flush()
        yield from self._more(rest)

    def finish(self) -> Iterator[TextEntry]:
        """Yield the remaining entries. Call it before other entries and at the end."""
        for text in self._masked.finish().split("\n"):
            yield from self._more(text)
            yield from self._flush()

    def _more(self, text: str) -> Iterator[TextEntry]:
        size = len(text.encode())
        if self._bytes + size > LINE_BYTES_MAX:
            yield from self._flush()
        self._line.append(text)
        self._bytes += size

    def _flush(self) -> Iterator[TextEntry]:
        text = "".join(self._line)
        self._line, self._bytes = [], 0
        if text.strip():
            yield TextEntry(text)
