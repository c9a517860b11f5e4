"""What a run's output comes down to: its result and the tokens it used."""

from dataclasses import dataclass, replace

from domain.delivery.transcript import MessageEntry, ParsedEntry, ResultEntry, UsageEntry


@dataclass(frozen=True, slots=True)
class RuntimeReading:
    """The fold of a run's entries. `model` is the one named last; tokens are None when untold."""

    last_result: str | None = None
    last_assistant: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None
    entries: int = 0

    @property
    def result(self) -> str | None:
        """The last result, else the last message of the assistant that says something."""
        return self.last_assistant if self.last_result is None else self.last_result

    @property
    def total_tokens(self) -> int | None:
        """Input and output together; None when none were told."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def after(self, entry: ParsedEntry) -> "RuntimeReading":
        """The reading with one more entry."""
        counted = replace(self, entries=self.entries + 1)
        match entry:
            case ResultEntry():
                return replace(counted, last_result=entry.text)
            case MessageEntry(role="assistant") if entry.text.strip():
                return replace(counted, last_assistant=entry.text)
            case UsageEntry():
                return replace(
                    counted,
                    input_tokens=(self.input_tokens or 0) + entry.input_tokens,
                    output_tokens=(self.output_tokens or 0) + entry.output_tokens,
                    model=entry.model or self.model,
                )
            case _:
                return counted


def read_plain_output(text: str) -> RuntimeReading:
    """The reading of a runtime that writes plain text: all of it is the result."""
    return RuntimeReading(last_result=text if text.strip() else None, entries=1 if text else 0)
