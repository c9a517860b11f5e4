"""Sources of configured values: their names, and the source that sets a value."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

BUILT_IN = "built-in"
"""Source of values that no section sets."""
DEFAULTS = "agents.defaults"


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source that can decide about a spawn.

    Attributes:
        words: Name of the source in messages.
        model_words: Name of the source's model setting in messages.
        section: Path in the file, with `{agent}` for the agent's section; empty if it is not in a
            file.
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
"""Sources by their recorded name (`modelSource`, `takenFrom`)."""


@dataclass(frozen=True, slots=True)
class SectionSource:
    """A section and its path, such as `agents.list[2].subagents`."""

    section: BaseModel
    name: str

    def says(self, field: str) -> bool:
        """Return True if the section sets the field to a value other than null."""
        given = field in self.section.model_fields_set
        return given and getattr(self.section, field) is not None

    def at(self, field: str) -> str:
        """Return the path of a field."""
        return f"{self.name}.{self.key_of(field)}"

    def key_of(self, field: str) -> str:
        """Return the key of a field in the file."""
        return type(self.section).model_fields[field].alias or field


def source_of(field: str, *places: SectionSource) -> str:
    """Return the path of the field in the first section that sets it, else `built-in`."""
    return next((place.at(field) for place in places if place.says(field)), BUILT_IN)
