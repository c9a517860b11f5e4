"""Revisions of a configuration in memory, and the real rules for the folders of agents."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from application.log.event_log import EventLog
from application.log.texts import Contents
from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration
from infrastructure.outbound.configuration.active import ActiveConfigurations
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.plan_words import WORKSPACES


class PlacedConfigurations(ActiveConfigurations):
    """A file in `folder` that is read again and again. There is no log: it holds the revisions."""

    def __init__(self, folder: Path) -> None:
        no_log, no_contents = cast("EventLog", None), cast("Contents", None)
        super().__init__(no_log, no_contents, RandomIdentities(), folder / WORKSPACES)
        self._folder = folder
        self._revisions: list[PinnedConfiguration] = []

    def read(self, values: Mapping[str, Any]) -> None:
        """The next revision, which is active from now on."""
        stored = dict(values)
        configuration = Configuration.model_validate(stored)
        self._loaded = LoadedConfiguration(configuration, stored, None, (), self._folder, stored)
        self._revisions.append(PinnedConfiguration(len(self._revisions) + 1, configuration, stored))

    def current(self) -> PinnedConfiguration:
        """The active revision."""
        return self._revisions[-1]

    def pinned(self, revision: int) -> PinnedConfiguration:
        """This one, for what was begun under it."""
        return self._revisions[revision - 1]
