"""The files that this process has read, by the revisions of the log that they became."""

from collections.abc import Mapping
from typing import Protocol

import orjson

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration
from infrastructure.outbound.configuration.load import (
    LoadedConfiguration,
    configuration_from_stored,
)


class RevisionFiles(Protocol):
    """Where the references of a revision are looked up."""

    def file_of(self, pinned: PinnedConfiguration, /) -> LoadedConfiguration:
        """The file that it was read from, or the one that serves in its place."""
        ...


class LoadedFiles:
    """Implements `ConfigurationFiles` and `RevisionFiles`."""

    def __init__(self) -> None:
        self._loaded: LoadedConfiguration | None = None
        self._files: dict[int, LoadedConfiguration] = {}

    @property
    def loaded(self) -> LoadedConfiguration:
        """The file that this process read last."""
        assert self._loaded is not None
        return self._loaded

    def assign(self, revision: int, file: LoadedConfiguration) -> None:
        """The file that was read last is that of the revision."""
        self._loaded = self._files[revision] = file

    def parse(self, text: str) -> tuple[Configuration, Mapping[str, object]]:
        """What was kept of a file: the configuration, and the whole of it. `ConfigurationError`
        when this program cannot read it."""
        stored = orjson.loads(text)
        return configuration_from_stored(stored), stored

    def file_of(self, pinned: PinnedConfiguration) -> LoadedConfiguration:
        """What the references of a revision are looked up in: a revision of another server's file
        names places, and the same places of our file serve."""
        return self._files.get(pinned.revision, self.loaded)
