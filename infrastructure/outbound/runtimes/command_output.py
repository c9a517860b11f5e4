"""Parse the output of a command runtime into entries. Pure, no I/O.

Each entry is parsed when it is requested, so at most one chunk is in memory.
"""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, Protocol, assert_never

from application.ports.runtimes import TranscriptEntry
from domain.delivery import transcript
from domain.delivery.transcript import (
    LINE_BYTES_MAX,
    RuntimeReading,
    TextEntry,
    read_line,
    read_plain_output,
)
from domain.values.text import replace_unstorable, single_line
from infrastructure.outbound.masking.lines import TextLines
from infrastructure.outbound.masking.mask import NO_MASKING, MaskedText, Masker


def entry_of(entry: transcript.ParsedEntry) -> TranscriptEntry:
    """Return the kind and body of an entry; missing values are null in the body."""
    match entry:
        case transcript.MessageEntry():
            return TranscriptEntry("message", {"role": entry.role, "text": entry.text})
        case transcript.ToolEntry():
            call: dict[str, object] = {
                "name": entry.name,
                "input": entry.input,
                "output": entry.output,
            }
            if entry.duration_ms is not None:
                call["durationMs"] = entry.duration_ms
            return TranscriptEntry("tool", call)
        case transcript.UsageEntry():
            usage = {
                "inputTokens": entry.input_tokens,
                "outputTokens": entry.output_tokens,
                "model": entry.model,
            }
            if entry.cache_read_tokens or entry.cache_write_tokens:
                usage["cacheReadTokens"] = entry.cache_read_tokens
                usage["cacheWriteTokens"] = entry.cache_write_tokens
            return TranscriptEntry("usage", usage)
        case transcript.ProgressEntry():
            return TranscriptEntry("progress", {"text": entry.text})
        case transcript.ResultEntry():
            return TranscriptEntry("result", {"text": entry.text})
        case transcript.TextEntry():
            return TranscriptEntry("text", {"text": entry.text})
        case _:
            assert_never(entry)


PIECE_BYTES_MAX = 64 * 1024

# Much more than an announcement ever contains.
RESULT_BYTES_MAX = 1024 * 1024


class CommandOutput(Protocol):
    """Parser for the output of one run.

    Attributes:
        too_long: Which limit the output exceeded, in words; None if none. Later output is ignored.
    """

    too_long: str | None

    def take(self, data: bytes) -> Iterator[TranscriptEntry]:
        """Yield the entries that these bytes complete. Exhaust it before the next call."""
        ...

    def finish(self) -> Iterator[TranscriptEntry]:
        """Yield the entries that the end of the output completes."""
        ...

    def reading(self) -> RuntimeReading:
        """Return the result and tokens so far."""
        ...

    def warnings(self) -> list[str]:
        """Return problems with the form of the output, in words for the owner of the program."""
        ...


_NOT_UTF8 = (
    "the output is not valid UTF-8; bytes that cannot be read are shown as"
    " \N{REPLACEMENT CHARACTER}"
)
FIRST_LINE_CHARACTERS_MAX = 200


def command_output(form: Literal["text", "jsonl"], masking: Masker = NO_MASKING) -> CommandOutput:
    """Return the parser for an output of this form. Entries and result are masked."""
    return TextOutput(masking) if form == "text" else JsonlOutput(masking)


class TextOutput:
    """Parser for plain text.

    Entries are whole lines, up to 64 KiB each; joined, they are the output. The result is the
    output without trailing line ends, limited to its first 1 MiB.
    """

    def __init__(self, masking: Masker = NO_MASKING) -> None:
        self.too_long: str | None = None
        self._masked = MaskedText(masking)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strict_decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self._is_utf8 = True
        self._waiting = bytearray()
        self._head = bytearray()

    def take(self, data: bytes) -> Iterator[TranscriptEntry]:
        return self._take(self._decoded(data), last=False)

    def finish(self) -> Iterator[TranscriptEntry]:
        return self._take(self._decoded(b"", final=True), last=True)

    def reading(self) -> RuntimeReading:
        return read_plain_output(self._head.decode(errors="ignore").rstrip("\r\n"))

    def warnings(self) -> list[str]:
        return [] if self._is_utf8 else [_NOT_UTF8]

    def _decoded(self, data: bytes, *, final: bool = False) -> str:
        if self._is_utf8:
            try:
                self._strict_decoder.decode(data, final)
            except UnicodeDecodeError:
                self._is_utf8 = False
        return self._decoder.decode(data, final)

    def _take(self, text: str, *, last: bool) -> Iterator[TranscriptEntry]:
        masked = self._masked.take(text) + (self._masked.finish() if last else "")
        encoded = replace_unstorable(masked).encode()
        self._head += encoded[: RESULT_BYTES_MAX - len(self._head)]
        self._waiting += encoded
        while cut := self._next_cut(last=last):
            piece = self._waiting[:cut].decode()
            del self._waiting[:cut]
            yield TranscriptEntry("text", {"text": piece})

    def _next_cut(self, *, last: bool) -> int:
        """Return where the next piece ends; 0 if the rest of its line is still missing."""
        waiting = self._waiting
        cut = waiting.rfind(b"\n", 0, PIECE_BYTES_MAX) + 1
        if cut and len(waiting) > PIECE_BYTES_MAX:
            return cut
        if len(waiting) <= PIECE_BYTES_MAX:
            return len(waiting) if last else cut
        cut = PIECE_BYTES_MAX
        while waiting[cut] & 0xC0 == 0x80:
            cut -= 1
        return cut


class JsonlOutput:
    """Parser for one JSON object per line.

    The result is the last `result`, else the last assistant message, else the lines that are not
    entries, limited to their first 1 MiB.
    """

    def __init__(self, masking: Masker = NO_MASKING) -> None:
        self.too_long: str | None = None
        self._masking = masking
        self._lines = TextLines(masking)
        self._waiting = bytearray()
        self._reading = RuntimeReading()
        self._is_utf8 = True
        self._text_lines = 0
        self._text = bytearray()

    def take(self, data: bytes) -> Iterator[TranscriptEntry]:
        searched = len(self._waiting)
        self._waiting += data
        start = 0
        while (end := self._waiting.find(b"\n", max(start, searched))) >= 0:
            if self._is_too_long(end - start):
                return
            line = self._waiting[start:end]
            start = end + 1
            yield from self._entry(line)
        del self._waiting[:start]
        self._is_too_long(len(self._waiting))

    def finish(self) -> Iterator[TranscriptEntry]:
        line, self._waiting = self._waiting, bytearray()
        yield from self._entry(line)
        yield from self._read(self._lines.finish())

    def reading(self) -> RuntimeReading:
        if self._reading.result is not None or not self._text:
            return self._reading
        text = self._text.decode(errors="ignore").rstrip("\r\n")
        return replace(self._reading, last_result=text)

    def warnings(self) -> list[str]:
        warnings = []
        if self._text_lines:
            lines = f"{self._text_lines} lines of the output are not entries"
            if self._text_lines == 1:
                lines = "1 line of the output is not an entry"
            first = self._text.decode(errors="ignore").lstrip().partition("\n")[0]
            shown = single_line(first, characters_max=FIRST_LINE_CHARACTERS_MAX)
            warnings.append(
                f'{lines} of "jsonl"; the first: {shown} (if the program prints plain text, set'
                ' the runtime\'s output to "text")'
            )
        return warnings if self._is_utf8 else [*warnings, _NOT_UTF8]

    def _entry(self, line: bytearray) -> Iterator[TranscriptEntry]:
        entry = read_line(self._decoded(line))
        match entry:
            case None:
                pass
            case TextEntry():
                self._text_lines += 1
                yield from self._read(self._lines.take(entry.text))
            case _:
                yield from self._read(self._lines.finish())
                yield from self._read([self._masking.entry(entry)])

    def _read(self, entries: Iterable[transcript.ParsedEntry]) -> Iterator[TranscriptEntry]:
        for entry in entries:
            self._reading = self._reading.after(entry)
            if isinstance(entry, TextEntry):
                room = RESULT_BYTES_MAX - len(self._text)
                self._text += f"{entry.text}\n".encode()[:room]
            yield entry_of(entry)

    def _decoded(self, line: bytearray) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self._is_utf8 = False
            return line.decode(errors="replace")

    def _is_too_long(self, length: int) -> bool:
        if length > LINE_BYTES_MAX:
            self.too_long = (
                f"it printed a line of more than {LINE_BYTES_MAX} bytes; split it into several"
                ' entries, or set the runtime\'s output to "text"'
            )
            self._waiting.clear()
        return self.too_long is not None
