"""The secrets that a log of context scripts must not show."""

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
    """Implements `ScriptSecrets`: what stands in the file as a secret, and what the variables hold
    that a revision refers to. Values of less than eight characters are found everywhere by chance,
    and are not masked."""

    def __init__(self, file_of: FileOf, variables: Mapping[str, str] = os.environ) -> None:
        self._file_of = file_of
        self._variables = variables
        self._made: tuple[int, LoadedConfiguration, Masker] | None = None

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        """That of one revision is kept, for making it takes time."""
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
                # A number, or in another place by now.
                continue
        for name in set(variables_in(compact_json(pinned.redacted))) - set(PASSED_VARIABLES):
            yield self._variables.get(name, "")


class ScriptSource(Protocol):
    """The file that a revision was read from, as far as scripts need it. Relative paths of scripts
    start in `folder`."""

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        ...

    def resolve(self, value: str, /) -> str:
        """The text with each `${NAME}` replaced. Raises `ConfigurationError`."""
        ...


SourceOf = Callable[[PinnedConfiguration], ScriptSource]
"""Gives the file of a revision; of one that another server read, the same places here."""
