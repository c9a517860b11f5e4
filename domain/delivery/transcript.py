"""Parsing of a runtime's output lines into transcript entries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from domain.values.json_text import NotJsonError, read_json, text_of
from domain.values.text import replace_unstorable, utf8_prefix

LINE_BYTES_MAX = 1_048_576
NAME_CHARACTERS_MAX = 256
TOKENS_MAX = 10**12
DURATION_MS_MAX = 365 * 24 * 3_600_000
USAGES_MAX = 1_000
MessageRole = Literal["assistant", "user", "system", "tool"]
_ROLES: dict[object, MessageRole] = {
    "assistant": "assistant",
    "user": "user",
    "system": "system",
    "tool": "tool",
}


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """`{"type": "message", "role", "text"}`."""

    role: MessageRole
    text: str


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """`{"type": "tool", "name", "input", "output"}`; values other than strings are compact JSON.

    `durationMs` is optional: the time from the call to its output, if known.
    """

    name: str
    input: str | None
    output: str | None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """`{"type": "usage", "inputTokens", "outputTokens", "model"}`.

    `cacheReadTokens` and `cacheWriteTokens` are optional, and counted separately from input tokens.
    """

    input_tokens: int
    output_tokens: int
    model: str | None
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ProgressEntry:
    """`{"type": "progress", "text"}`."""

    text: str


@dataclass(frozen=True, slots=True)
class ResultEntry:
    """`{"type": "result", "text"}`."""

    text: str


@dataclass(frozen=True, slots=True)
class TextEntry:
    """A line of any other form, unchanged."""

    text: str


ParsedEntry = MessageEntry | ToolEntry | UsageEntry | ProgressEntry | ResultEntry | TextEntry


def read_line(line: str) -> ParsedEntry | None:
    """Parse one line of output into an entry; None for a blank line.

    Never fails: a line that is not a JSON object of a known shape becomes a `TextEntry`, and so
    does one over 1 MiB, cut to that size. Keys beyond those of its type are dropped.
    """
    text = line.rstrip("\r\n")
    if not text.strip():
        return None
    if len(text) > LINE_BYTES_MAX or len(replace_unstorable(text).encode()) > LINE_BYTES_MAX:
        return TextEntry(text=utf8_prefix(text[:LINE_BYTES_MAX], LINE_BYTES_MAX))
    try:
        value = read_json(text)
    except NotJsonError:
        return TextEntry(text=replace_unstorable(text))
    entry = _entry(value) if isinstance(value, dict) else None
    return entry or TextEntry(text=replace_unstorable(text))


def _entry(value: dict[str, object]) -> ParsedEntry | None:
    text = value.get("text")
    match value.get("type"):
        case "message":
            role = value.get("role")
            known = _ROLES.get(role) if isinstance(role, str) else None
            if known is not None and isinstance(text, str):
                return MessageEntry(role=known, text=replace_unstorable(text))
        case "progress" if isinstance(text, str):
            return ProgressEntry(text=replace_unstorable(text))
        case "result" if isinstance(text, str):
            return ResultEntry(text=replace_unstorable(text))
        case "tool":
            return _tool(value)
        case "usage":
            return _usage(value)
        case _:
            pass
    return None


def _tool(value: dict[str, object]) -> ToolEntry | None:
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        return None
    return ToolEntry(
        name=replace_unstorable(name.strip()[:NAME_CHARACTERS_MAX]),
        input=_text_or_json(value.get("input")),
        output=_text_or_json(value.get("output")),
        duration_ms=_whole_number(value.get("durationMs"), DURATION_MS_MAX),
    )


_TOKEN_KEYS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


def _usage(value: dict[str, object]) -> UsageEntry | None:
    if not any(key in value for key in _TOKEN_KEYS):
        return None
    counts = [_count(value.get(key, 0)) for key in _TOKEN_KEYS]
    input_count, output_count, cache_read, cache_write = counts
    if input_count is None or output_count is None or cache_read is None or cache_write is None:
        return None
    model = value.get("model")
    named = (
        replace_unstorable(model.strip()[:NAME_CHARACTERS_MAX]) if isinstance(model, str) else ""
    )
    return UsageEntry(
        input_tokens=input_count,
        output_tokens=output_count,
        model=named or None,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
    )


def _text_or_json(value: object) -> str | None:
    return None if value is None else replace_unstorable(text_of(value))


def _count(value: object) -> int | None:
    """Return a token count: 0 if absent or null, None if invalid."""
    return 0 if value is None else _whole_number(value, TOKENS_MAX)


def _whole_number(value: object, most: int) -> int | None:
    """Return a number from 0 to `most`, None if the value is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value < 0 or value > most or value != int(value):
        return None
    return int(value)


def usage_of_body(body: Mapping[str, object]) -> UsageEntry:
    """Rebuild the usage entry from its recorded body."""
    return UsageEntry(
        input_tokens=_recorded_count(body.get("inputTokens")),
        output_tokens=_recorded_count(body.get("outputTokens")),
        model=str(body["model"]) if body.get("model") else None,
        cache_read_tokens=_recorded_count(body.get("cacheReadTokens")),
        cache_write_tokens=_recorded_count(body.get("cacheWriteTokens")),
    )


def _recorded_count(value: object) -> int:
    return value if isinstance(value, int) else 0


# Summary of a run's output: result and token usage.


@dataclass(frozen=True, slots=True)
class RuntimeReading:
    """The fold of a run's entries.

    After the first 1000 usage entries, each further one is added to the last one of the same model.
    """

    last_result: str | None = None
    last_assistant: str | None = None
    usages: tuple[UsageEntry, ...] = ()
    entries: int = 0

    @property
    def result(self) -> str | None:
        """Return the last non-blank result, else the last non-blank message of the assistant."""
        return self.last_assistant if self.last_result is None else self.last_result

    def after(self, entry: ParsedEntry) -> "RuntimeReading":
        """Return the reading with one more entry applied."""
        counted = self.entries + 1
        match entry:
            case ResultEntry() if entry.text.strip():
                return replace(self, entries=counted, last_result=entry.text)
            case MessageEntry(role="assistant") if entry.text.strip():
                return replace(self, entries=counted, last_assistant=entry.text)
            case UsageEntry():
                usages = _with_usage(self.usages, entry)
                return replace(self, entries=counted, usages=usages)
            case _:
                return replace(self, entries=counted)


def _with_usage(usages: tuple[UsageEntry, ...], entry: UsageEntry) -> tuple[UsageEntry, ...]:
    if len(usages) < USAGES_MAX:
        return (*usages, entry)
    for index in range(len(usages) - 1, -1, -1):
        if usages[index].model == entry.model:
            return (*usages[:index], _sum_of(usages[index], entry), *usages[index + 1 :])
    return (*usages[:-1], _sum_of(usages[-1], entry))


def _sum_of(first: UsageEntry, second: UsageEntry) -> UsageEntry:
    return UsageEntry(
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        model=first.model,
        cache_read_tokens=first.cache_read_tokens + second.cache_read_tokens,
        cache_write_tokens=first.cache_write_tokens + second.cache_write_tokens,
    )


def read_plain_output(text: str) -> RuntimeReading:
    """Return the reading of plain-text output: all of it is the result."""
    return RuntimeReading(last_result=text if text.strip() else None, entries=1 if text else 0)
