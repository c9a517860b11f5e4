"""Places that may say the same thing, how people call them, and which of them does."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

BUILT_IN = "built-in"
"""What holds where no place of the configuration says anything."""
DEFAULTS = "agents.defaults"


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A place that decides of a spawn, as people call it, and the model that it names.

    `section` is where it stands in a file, with `{agent}` for the section of the agent
    (`agents.list[2]`); blank for what stands in none.
    """

    words: str
    model_words: str
    section: str = ""


NAMED_SOURCES: Mapping[str, NamedSource] = {
    "argument": NamedSource("the request", "the model argument"),
    "agent_subagents": NamedSource(
        "the agent's subagents", "the agent's subagents.model", "{agent}.subagents"
    ),
    "defaults_subagents": NamedSource(
        f"{DEFAULTS}.subagents", f"{DEFAULTS}.subagents.model", f"{DEFAULTS}.subagents"
    ),
    "caller": NamedSource("the caller", "the caller's active model"),
    "agent": NamedSource("the agent", "the agent's model", "{agent}"),
    "defaults": NamedSource(DEFAULTS, f"{DEFAULTS}.model", DEFAULTS),
    "runtime": NamedSource("the runtime", "the runtime"),
}
"""By the word that stands for the place in a record (`modelSource`, `takenFrom`)."""


@dataclass(frozen=True, slots=True)
class SectionSource:
    """A section and how people write where it stands (`agents.list[2].subagents`)."""

    section: BaseModel
    name: str

    def says(self, field: str) -> bool:
        """Whether the section gives the field a value; null is none."""
        given = field in self.section.model_fields_set
        return given and getattr(self.section, field) is not None

    def at(self, field: str) -> str:
        """Where the field stands."""
        return f"{self.name}.{self.key_of(field)}"

    def key_of(self, field: str) -> str:
        """The field as the file writes it."""
        return type(self.section).model_fields[field].alias or field


def source_of(field: str, *places: SectionSource) -> str:
    """Where the first place that says something for a field says it, else `built-in`."""
    return next((place.at(field) for place in places if place.says(field)), BUILT_IN)
