"""Parse answers in lines (NDJSON). The last line marks the answer as complete."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from spawnlog.core.answer import LINE_BYTES_MAX, read_object, read_value
from spawnlog.core.errors import StreamInterruptedError, UnexpectedResponseError
from spawnlog.core.request import LinesRequest

T = TypeVar("T")


class LineReader(Generic[T]):
    """Parser for the lines of one answer."""

    def __init__(self, request: LinesRequest[T]) -> None:
        self._names = request.answers
        self._is_whole = False
        self._pieces: list[bytes] = []
        self._bytes = 0

    def feed(self, content: bytes) -> Iterator[T]:
        """Yield the lines that these bytes complete.

        Raises:
            StreamInterruptedError: The server sent a line that says why the answer ends early.
            UnexpectedResponseError: A line is too long or cannot be read.
        """
        *ends, rest = content.split(b"\n")
        for end in ends:
            self._add(end)
            line = self._taken()
            if line.strip():
                yield self._line(line)
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._bytes += len(piece)
        if self._bytes > LINE_BYTES_MAX:
            raise UnexpectedResponseError(
                f"a line of the answer is longer than {LINE_BYTES_MAX} bytes"
            )
        # Join once at the end: a long line arrives in many pieces.
        self._pieces.append(piece)

    def _taken(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces, self._bytes = [], 0
        return line

    def _line(self, line: bytes) -> T:
        value: Any = read_value(self._names, line) if self._names else read_object(line)
        members = value if isinstance(value, dict) else value.__dict__
        if "failure" in members and self._names:
            raise StreamInterruptedError(value.failure.detail)
        if "totals" in members or "failure" in members:
            self._is_whole = True
        return value  # type: ignore[no-any-return]

    def end(self) -> list[T]:
        """Return the remaining line, if any.

        Raises:
            StreamInterruptedError: The answer is incomplete.
        """
        rest = self._taken()
        try:
            lines = [self._line(rest)] if rest.strip() else []
        except UnexpectedResponseError:
            lines = []
        if not self._is_whole:
            raise StreamInterruptedError(
                "the answer ended before its last line; the lines so far are valid: request the"
                " rest again"
            )
        return lines
