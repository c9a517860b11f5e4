"""The configuration that decisions are made under."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from domain.configuration.configuration import Configuration
from domain.values.refusals import ConfigurationMoved


@dataclass(frozen=True, slots=True)
class PinnedConfiguration:
    """A revision of the log and what it says. `redacted` is the whole of it with secrets replaced
    by references: what scripts may see as `cfg`. `is_chosen` is whether somebody wants just this
    revision, whichever is in force."""

    revision: int
    configuration: Configuration
    redacted: Mapping[str, object] = field(repr=False)
    is_chosen: bool = False

    @property
    def session_naming(self) -> tuple[str, str, str]:
        """What decides which session a key stands for."""
        session = self.configuration.session
        return session.main_key, session.scope, self.configuration.default_agent_id

    def chosen(self) -> Self:
        """The same, for what is to be decided under it though it is not in force."""
        return replace(self, is_chosen=True)

    def must_be_current(self, revision: int) -> None:
        """Raises `ConfigurationMoved` when the log is at a later revision, unless this one was
        chosen."""
        if revision > self.revision and not self.is_chosen:
            raise ConfigurationMoved(revision)


class RevisionErased(RuntimeError):
    """The text of a revision is no more."""


class NothingInForce(LookupError):
    """No configuration had been activated by then."""


class SecretMissing(Exception):
    """A secret that the configuration refers to cannot be had here; the text says which."""


class ConfigurationFile(Protocol):
    """A file that was read and can become a revision. Of its secrets it has references."""

    @property
    def configuration(self) -> Configuration:
        """What it says."""
        ...

    @property
    def stored(self) -> Mapping[str, object]:
        """The whole of it, as it is kept."""
        ...

    @property
    def stored_text(self) -> str:
        """That as a text."""
        ...

    @property
    def source(self) -> str:
        """The path of the file, absolute, or `built-in`. It is recorded with the revision, so that
        a server without a file finds the secrets that the revision refers to."""
        ...


class Configurations(Protocol):
    """The active revision and earlier ones."""

    def current(self) -> PinnedConfiguration:
        """The active revision."""
        ...

    async def at(self, revision: int) -> PinnedConfiguration:
        """An earlier revision, for what was begun under it. Raises `RevisionErased`, and
        `ConfigurationError` for one that this program cannot read."""
        ...

    async def in_force(self, position: int) -> PinnedConfiguration:
        """The revision that was activated last at or before a position of the log, whichever this
        process has heard of. Raises `NothingInForce`, and what `at` raises."""
        ...

    async def is_kept(self, revision: int) -> bool:
        """Whether the text of a revision is still on record. A process that has read it goes on
        under it when it was erased since; what is answered about the past must not."""
        ...


class CandidateReader(Protocol):
    """Reads a configuration that is nobody's file and becomes no revision. Nothing that it refers
    to is looked up, and secrets in it become references."""

    def read(self, text: str, name: str) -> tuple[Configuration, Mapping[str, object]]:
        """A text of JSON5: the configuration, and the whole of it as a revision would keep it.
        `ConfigurationError` says what is wrong and where, in the text of that name."""
        ...
