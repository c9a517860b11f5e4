"""The body of a transcript that is told: its entries, of the kinds that a runtime writes."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from application.queries.operation import Body
from domain.delivery.provided_transcript import ProvidedEntry
from domain.delivery.transcript import NAME_CHARACTERS_MAX, TOKENS_MAX
from domain.values.json_text import text_of

ENTRIES_MAX = 10_000
VALUES_MAX = 100_000
"""How many values a body may have: ten for each entry."""


Kind = Literal["message", "tool", "usage", "progress", "result", "text"]
TokensField = Annotated[int, Field(ge=0, le=TOKENS_MAX)]

# Of each kind: what it must have, and what else it may have.
_MEMBERS: dict[Kind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "message": (("role", "text"), ()),
    "tool": (("name",), ("input", "output")),
    "usage": (("inputTokens", "outputTokens"), ("model",)),
    "progress": (("text",), ()),
    "result": (("text",), ()),
    "text": (("text",), ()),
}


class EntryBody(Body):
    """One entry: a `message` has `role` and `text`, a `tool` `name` and maybe `input` and `output`
    (any JSON), a `usage` `inputTokens` and `outputTokens` and maybe `model`, all others `text`."""

    kind: Kind
    role: Literal["assistant", "user", "system", "tool"] | None = None
    text: str | None = None
    name: Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)] | None = None
    input: Any = None
    output: Any = None
    input_tokens: TokensField | None = None
    output_tokens: TokensField | None = None
    model: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)] | None = None

    @model_validator(mode="after")
    def _has_what_its_kind_has(self) -> "EntryBody":
        must, may = _MEMBERS[self.kind]
        given = self.members()
        missing = [name for name in must if given[name] is None]
        foreign = [
            name
            for name, value in given.items()
            if value is not None and name not in must and name not in may
        ]
        if missing:
            raise ValueError(f"an entry of kind {self.kind} has {' and '.join(missing)}")
        if foreign:
            raise ValueError(f"an entry of kind {self.kind} has no {' and no '.join(foreign)}")
        return self

    def members(self) -> dict[str, Any]:
        """All but the kind, by the names that they have in JSON."""
        return {
            "role": self.role,
            "text": self.text,
            "name": self.name,
            "input": self.input,
            "output": self.output,
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "model": self.model,
        }


class TranscriptBody(Body):
    """`PUT /v1/sessions/{key}/transcript`."""

    entries: Annotated[
        list[EntryBody],
        Field(max_length=ENTRIES_MAX, description="The whole conversation, the oldest first."),
    ]
    total_tokens: Annotated[
        TokensField | None, Field(description="How many tokens it is, when that is known.")
    ] = None


def provided_entries(body: TranscriptBody) -> tuple[ProvidedEntry, ...]:
    """The entries as they are kept."""
    return tuple(map(provided_entry, body.entries))


def provided_entry(entry: EntryBody) -> ProvidedEntry:
    """An entry as a runtime's would be kept: what is no string becomes compact JSON."""
    must, may = _MEMBERS[entry.kind]
    given = entry.members()
    members = {name: given[name] for name in (*must, *may)}
    for name in ("input", "output"):
        if members.get(name) is not None:
            members[name] = text_of(members[name])
    return ProvidedEntry(entry.kind, members)
