"""The files that this process has read, by the revisions of the log that they became."""

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
    """Where the references of a revision are looked up."""

    def file_of(self, pinned: PinnedConfiguration, /) -> LoadedConfiguration:
        """Return the file that the revision was read from, or the one that serves in its place."""
        ...


class LoadedFiles:
    """Implements `ConfigurationFiles` and `RevisionFiles`."""

    def __init__(self) -> None:
        self._own: LoadedConfiguration | None = None
        self._found: LoadedConfiguration | None = None
        self._files: dict[int, LoadedConfiguration] = {}

    def assign(self, revision: int, file: LoadedConfiguration) -> None:
        """Note the file that this process was told to read: it became the revision."""
        self._own = file
        self._remember(revision, file)

    def note_found(self, revision: int, file: LoadedConfiguration) -> None:
        """Note the file of a revision, found by its path on record."""
        self._found = file
        self._remember(revision, file)

    async def find(self, revision: int, source: str, text: str, *, again: bool = False) -> None:
        """Look for the file of a revision, whose path on record is `source`, unless it is known.
        If it cannot be used, warn, and go on with the file that this process was told to read, or
        with the `text` of the revision, in which secrets are references."""
        if revision in self._files and not again:
            return
        try:
            # A file system that does not answer must not stop decisions under the revision.
            async with asyncio.timeout(FIND_SECONDS_MAX):
                found = await asyncio.to_thread(load_recorded, revision, source, text)
        except TimeoutError:
            missing = f"{source}: it cannot be read in {FIND_SECONDS_MAX:g} s"
            found = load_without_file(source, text, missing)
        if found.missing is not None and self._own is not None:
            _log.warning(
                "the file of configuration revision %d cannot be used: %s; its secrets are looked"
                " up at the same places of %s",
                revision,
                found.missing,
                self._own.source,
            )
            return
        if found.missing is not None:
            warn_about_missing(revision, found)
        self.note_found(revision, found)

    def parse(self, text: str) -> tuple[Configuration, Mapping[str, object]]:
        """What was kept of a file: the configuration, and the whole of it. `ConfigurationError`
        when this program cannot read it."""
        stored = orjson.loads(text)
        return configuration_from_stored(stored), stored

    def file_of(self, pinned: PinnedConfiguration) -> LoadedConfiguration:
        """Return what the references of a revision are looked up in. An earlier revision, or one
        whose file cannot be used here, names places: the same places of our file serve."""
        file = self._files.get(pinned.revision) or self._own or self._found
        assert file is not None
        return file

    def _remember(self, revision: int, file: LoadedConfiguration) -> None:
        self._files[revision] = file
        forget_oldest(self._files)


def warn_about_missing(revision: int, loaded: LoadedConfiguration) -> None:
    """Log that the file of a revision cannot be used, and what to do."""
    _log.warning(
        "configuration revision %d stays in force, and its file cannot be used: %s; what needs a"
        " secret of it is refused. Put the file back and send SIGHUP, or start with --config",
        revision,
        loaded.missing,
    )
