"""The configuration that an answer is given under: the one in force at its position."""

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import NothingInForce, RevisionErased
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError


async def configuration_of_revision(work: UnitOfWork, revision: int) -> Configuration | None:
    """What a revision says; None when its text was erased or a newer program wrote it."""
    try:
        return (await work.configurations.at(revision)).configuration
    except (RevisionErased, ConfigurationError):
        return None


async def configuration_in_force(work: UnitOfWork, position: int) -> Configuration | None:
    """What was in force at a position, whatever is now; None when nothing was yet, its text was
    erased, or a newer program wrote it."""
    try:
        return (await work.configurations.in_force(position)).configuration
    except (NothingInForce, RevisionErased, ConfigurationError):
        return None
