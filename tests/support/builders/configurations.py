"""Configurations without a file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import LoadedConfiguration, load_document, read_text
from infrastructure.outbound.configuration.workspaces import ConfiguredWorkspaces
from tests.support.models.plan_words import WORKSPACES

# Configurations from a text or from values, when a test has no file.


def load_text(
    text: str, source: str, folder: Path | None = None, *, references_allowed: bool = False
) -> LoadedConfiguration:
    """Return the configuration in a JSON5 text, as if it was read from a file."""
    return load_document(
        read_text(text, source), source, folder or Path.cwd(), references_allowed=references_allowed
    )


def load_values(
    values: object, source: str = "config", folder: Path | None = None
) -> LoadedConfiguration:
    """Return the configuration of JSON values, for example of a changed revision. Its problems have
    no lines.
    """
    text = json.dumps(values, ensure_ascii=False)
    try:
        loaded = load_text(text, source, folder, references_allowed=True)
    except ConfigurationError as failure:
        raise ConfigurationError(_without_lines(failure.problems)) from None
    return replace(loaded, warnings=tuple(_without_lines(loaded.warnings)))


def _without_lines(problems: Iterable[ConfigurationProblem]) -> Iterator[ConfigurationProblem]:
    return (replace(problem, line=None, column=None) for problem in problems)


# Revisions of a configuration in memory, and the real rules for the folders of agents.


class PlacedConfigurations:
    """A file in `folder` that is read again and again. There is no log: it holds the revisions."""

    def __init__(self, folder: Path) -> None:
        self.files = LoadedFiles()
        self.workspaces = ConfiguredWorkspaces(self.files, folder / WORKSPACES)
        self._folder = folder
        self._revisions: list[PinnedConfiguration] = []

    def read(self, values: Mapping[str, Any]) -> None:
        stored = dict(values)
        configuration = Configuration.model_validate(stored)
        loaded = LoadedConfiguration(configuration, stored, None, (), self._folder, stored)
        self._revisions.append(PinnedConfiguration(len(self._revisions) + 1, configuration, stored))
        self.files.assign(len(self._revisions), loaded)

    def current(self) -> PinnedConfiguration:
        return self._revisions[-1]

    async def at(self, revision: int) -> PinnedConfiguration:
        """Return the same as `pinned`."""
        return self.pinned(revision)

    async def in_force(self, position: int) -> PinnedConfiguration:
        """Return the active revision: without a log there are no positions."""
        return self.current()

    async def is_kept(self, revision: int) -> bool:
        return revision <= len(self._revisions)

    def pinned(self, revision: int) -> PinnedConfiguration:
        return self._revisions[revision - 1]
