"""Lines without a form of their own, masked as the one text that they are. Pure."""

from collections.abc import Iterator

from domain.delivery.transcript import LINE_BYTES_MAX, TextEntry
from infrastructure.outbound.masking.mask import MaskedText, Masker


class TextLines:
    """An encoder breaks a value over lines: each by itself would not be known for a part of it.
    Lines that one masked value runs through are one entry, of at most 1 MiB and what follows it."""

    def __init__(self, masking: Masker) -> None:
        self._masked = MaskedText(masking)
        self._line: list[str] = []
        self._bytes = 0

    def take(self, line: str) -> Iterator[TextEntry]:
        """The entries that can be told, once this line without its end is known."""
        *ended, rest = self._masked.take(line + "\n").split("\n")
        for text in ended:
            yield from self._more(text)
            yield from self._flush()
        yield from self._more(rest)

    def finish(self) -> Iterator[TextEntry]:
        """The others, when something else follows, or nothing."""
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
