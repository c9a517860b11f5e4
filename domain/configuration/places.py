"""Places of a configuration that may say the same thing, and which of them does."""

from dataclasses import dataclass

from pydantic import BaseModel

BUILT_IN = "built-in"
"""What holds where no place of the configuration says anything."""


@dataclass(frozen=True, slots=True)
class Place:
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


def source_of(field: str, *places: Place) -> str:
    """Where the first place that says something for a field says it, else `built-in`."""
    return next((place.at(field) for place in places if place.says(field)), BUILT_IN)
