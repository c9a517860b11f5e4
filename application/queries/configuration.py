"""Reads the configuration in force at the position of an answer."""

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import (
    NoActiveConfigurationError,
    PinnedConfiguration,
    RevisionErasedError,
)
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError


async def revision_on_record(work: UnitOfWork, revision: int) -> PinnedConfiguration:
    """Return a revision as it can be read now, even if this process cached it before it was erased.

    Raises:
        RevisionErasedError: The text was erased.
        ConfigurationError: This program cannot read it.
    """
    return await _on_record(work, await work.configurations.at(revision))


async def configuration_of_revision(work: UnitOfWork, revision: int) -> Configuration | None:
    """Return the configuration of a revision. None if its text was erased or a newer program wrote
    it."""
    try:
        return (await revision_on_record(work, revision)).configuration
    except (RevisionErasedError, ConfigurationError):
        return None


async def configuration_in_force(work: UnitOfWork, position: int) -> Configuration | None:
    """Return the configuration in force at a position.

    None if none was active yet, its text was erased, or a newer program wrote it.
    """
    try:
        pinned = await work.configurations.in_force(position)
        return (await _on_record(work, pinned)).configuration
    except (NoActiveConfigurationError, RevisionErasedError, ConfigurationError):
        return None


async def _on_record(work: UnitOfWork, pinned: PinnedConfiguration) -> PinnedConfiguration:
    if not await work.configurations.is_kept(pinned.revision):
        raise RevisionErasedError(
            f"the text of configuration revision {pinned.revision} was erased"
        )
    return pinned
