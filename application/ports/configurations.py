"""Configuration revisions that decisions are made under."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from domain.configuration.configuration import Configuration
from domain.values.refusals import ConfigurationMoved


@dataclass(frozen=True, slots=True)
class PinnedConfiguration:
    """A configuration revision of the log, pinned for one decision.

    Attributes:
        revision: Number of the revision.
        configuration: The parsed configuration.
        redacted: The whole configuration with secrets replaced by references. Context scripts see
            it as `cfg`.
        is_chosen: True if the caller asked for this revision, even if another is in force.
    """

    revision: int
    configuration: Configuration
    redacted: Mapping[str, object] = field(repr=False)
    is_chosen: bool = False

    @property
    def session_naming(self) -> tuple[str, str, str]:
        """Return the settings that map a session key to a session: main key, scope and default
        agent.
        """
        session = self.configuration.session
        return session.main_key, session.scope, self.configuration.default_agent_id

    def chosen(self) -> Self:
        """Return a copy marked as chosen, to decide under it although it is not in force."""
        return replace(self, is_chosen=True)

    def require_current(self, revision: int) -> None:
        """Raise `ConfigurationMoved` if the log is at a later revision, unless this one was
        chosen."""
        if revision > self.revision and not self.is_chosen:
            raise ConfigurationMoved(revision)


class RevisionErasedError(RuntimeError):
    """The text of a revision was erased."""


class NoActiveConfigurationError(LookupError):
    """No configuration was active at that position."""


class MissingSecretError(Exception):
    """A secret that the configuration refers to cannot be resolved here. The message names it."""


class ConfigurationFile(Protocol):
    """A parsed configuration file that can become a revision. It holds references instead of
    secrets."""

    @property
    def configuration(self) -> Configuration: ...

    @property
    def stored(self) -> Mapping[str, object]:
        """Return the whole configuration as JSON, as a revision stores it."""
        ...

    @property
    def stored_text(self) -> str:
        """Return `stored` as a text."""
        ...

    @property
    def source(self) -> str:
        """Return the absolute path of the file, or `built-in`.

        It is recorded with the revision, so that a server started without a file can resolve the
        secrets that the revision refers to.
        """
        ...


class Configurations(Protocol):
    """The active revision and earlier revisions."""

    def current(self) -> PinnedConfiguration:
        """Return the active revision."""
        ...

    async def at(self, revision: int) -> PinnedConfiguration:
        """Return an earlier revision, for work that began under it.

        Raises:
            RevisionErasedError: If its text was erased.
            ConfigurationError: If this release cannot read it.
        """
        ...

    async def in_force(self, position: int) -> PinnedConfiguration:
        """Return the revision that was activated last at or before a position of the log.

        It is found even if this process has not seen that revision yet.

        Raises:
            NoActiveConfigurationError: If no configuration was active by then.
            RevisionErasedError: If its text was erased.
            ConfigurationError: If this release cannot read it.
        """
        ...

    async def is_kept(self, revision: int) -> bool:
        """Return True if the text of a revision is still stored.

        A process that has read a revision keeps working under it after it is erased. Queries about
        the past must not use an erased revision, so they ask first.
        """
        ...


class CandidateReader(Protocol):
    """Reader for a configuration text that does not become a revision.

    It resolves no references, and replaces secrets by references.
    """

    def read(self, text: str, name: str) -> tuple[Configuration, Mapping[str, object]]:
        """Parse a JSON5 text.

        Args:
            text: The configuration.
            name: Name of the text to show in errors.

        Returns:
            The configuration, and the whole of it as a revision would store it.

        Raises:
            ConfigurationError: If the text is invalid. It says where.
        """
        ...
