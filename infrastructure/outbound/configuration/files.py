"""Configuration files that this process has read, by log revision."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

import orjson

from application.configuration.activate import forget_oldest
from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration
from infrastructure.outbound.configuration.load import (
    LoadedConfiguration,
    configuration_from_stored,
    load_recorded,
    load_without_file,
)

FIND_SECONDS_MAX = 10.0
_log = logging.getLogger("spawnlog.configuration")


class RevisionFiles(Protocol):
    """Lookup of the file in which the references of a revision are resolved."""

    def file_of(self, pinned: PinnedConfiguration, /) -> LoadedConfiguration:
        """Return the file from which the revision was read, or its substitute."""
        ...


class LoadedFiles:
    """Implementation of `ConfigurationFiles` and `RevisionFiles`."""

    def __init__(self) -> None:
        self._own: LoadedConfiguration | None = None
        self._found: LoadedConfiguration | None = None
        self._files: dict[int, LoadedConfiguration] = {}

    def assign(self, revision: int, file: LoadedConfiguration) -> None:
        """Record that the file given to this process became the revision."""
        self._own = file
        self._remember(revision, file)

    def note_found(self, revision: int, file: LoadedConfiguration) -> None:
        """Record the file of a revision that was found by its recorded path."""
        self._found = file
        self._remember(revision, file)

    async def find(self, revision: int, source: str, text: str, *, again: bool = False) -> None:
        """Load the file of a revision, unless it is known.

        If the file cannot be used, log a warning. Then secrets are resolved in the file given to
        this process, or, without one, in the stored `text` of the revision, in which secrets are
        references.

        Args:
            revision: Number of the revision.
            source: Recorded path of its file.
            text: Stored text of the revision.
            again: Load the file even if it is known.
        """
        if revision in self._files and not again:
            return
        try:
            # A file system that hangs must not block decisions under the revision.
            async with asyncio.timeout(FIND_SECONDS_MAX):
                found = await asyncio.to_thread(load_recorded, revision, source, text)
        except TimeoutError:
            missing = f"{source}: it cannot be read in {FIND_SECONDS_MAX:g} s"
            found = load_without_file(source, text, missing)
        if found.missing is not None and self._own is not None:
            _log.warning(
                "the file of configuration revision %d cannot be used: %s; its secrets are looked"
                " up at the same places in %s",
                revision,
                found.missing,
                self._own.source,
            )
            return
        if found.missing is not None:
            warn_about_missing(revision, found)
        self.note_found(revision, found)

    def parse(self, text: str) -> tuple[Configuration, Mapping[str, object]]:
        """Parse the stored text of a revision.

        Returns:
            The configuration, and all values.

        Raises:
            ConfigurationError: This version cannot read the revision.
        """
        stored = orjson.loads(text)
        return configuration_from_stored(stored), stored

    def file_of(self, pinned: PinnedConfiguration) -> LoadedConfiguration:
        """Return the file in which to resolve the references of a revision.

        An earlier revision, or one whose file cannot be used here, has references by place. They
        are resolved at the same places of this process's file.
        """
        file = self._files.get(pinned.revision) or self._own or self._found
        assert file is not None
        return file

    def _remember(self, revision: int, file: LoadedConfiguration) -> None:
        self._files[revision] = file
        forget_oldest(self._files)


def warn_about_missing(revision: int, loaded: LoadedConfiguration) -> None:
    """Log a warning with the remedy: the file of a revision is unusable."""
    _log.warning(
        "configuration revision %d stays in force, but its file cannot be used: %s; requests that"
        " need one of its secrets are refused. Put the file back and send SIGHUP, or start with"
        " --config",
        revision,
        loaded.missing,
    )
