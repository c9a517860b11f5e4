"""The file that a revision was read from, as far as scripts need it."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from application.ports.configurations import PinnedConfiguration


class ScriptSource(Protocol):
    """Relative paths of scripts start in `folder`."""

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        ...

    def resolve(self, value: str, /) -> str:
        """The text with each `${NAME}` replaced. Raises `ConfigurationError`."""
        ...


SourceOf = Callable[[PinnedConfiguration], ScriptSource]
"""Gives the file of a revision; of one that another server read, the same places here."""
