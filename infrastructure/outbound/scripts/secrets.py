"""Secrets that the log of context scripts must not show."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import Mask
from domain.configuration.problems import ConfigurationError
from domain.configuration.secrets import variables_in
from domain.values.json_text import compact_json
from infrastructure.outbound.child_processes.program import PASSED_VARIABLES
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.masking.mask import Masker

FileOf = Callable[[PinnedConfiguration], LoadedConfiguration]


class ConfiguredSecrets:
    """Implementation of `ScriptSecrets`.

    The secrets are those in the configuration file, and the values of variables that a revision
    refers to. Values shorter than eight characters are not masked, because they occur everywhere by
    chance.
    """

    def __init__(self, file_of: FileOf, variables: Mapping[str, str] = os.environ) -> None:
        self._file_of = file_of
        self._variables = variables
        self._made: tuple[int, LoadedConfiguration, Masker] | None = None

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        """Return the mask of a revision. The last one is cached, because building it takes time."""
        file = self._file_of(pinned)
        made = self._made
        if made is None or made[0] != pinned.revision or made[1] is not file:
            masking = Masker(set(self._values(pinned, file)))
            made = self._made = (pinned.revision, file, masking)
        return made[2].whole

    def _values(self, pinned: PinnedConfiguration, file: LoadedConfiguration) -> Iterator[str]:
        for pointer in file.secret_pointers:
            try:
                yield file.resolve_secret(pointer)
            except ConfigurationError:
                # The value is a number, or is at another place now.
                continue
        for name in set(variables_in(compact_json(pinned.redacted))) - set(PASSED_VARIABLES):
            yield self._variables.get(name, "")


class ScriptSource(Protocol):
    """The part of a configuration file that scripts need. Relative script paths start in
    `folder`."""

    @property
    def folder(self) -> Path:
        """Return the folder of the file."""
        ...

    def resolve(self, value: str, /) -> str:
        """Replace each `${NAME}` in a text. Raise ConfigurationError if a variable is not set."""
        ...


SourceOf = Callable[[PinnedConfiguration], ScriptSource]
"""Returns the file of a revision. For a file that another server read, that is this server's
file."""
