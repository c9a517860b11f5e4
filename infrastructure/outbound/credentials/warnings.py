"""Warnings about credential files that cannot be used, or only in part."""

from collections.abc import Callable, Iterator
from pathlib import Path

from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError, pointer_of
from domain.configuration.warnings import ConfigurationWarning
from infrastructure.outbound.credentials.auth_profiles import (
    FILE_NAME,
    UnreadableProfilesError,
    profile_warnings,
    read_profiles,
)

_UNRESOLVED = "cannot be resolved, so spawns of this agent are refused: {why}"
_UNUSABLE = "{file} {why}; spawns of this agent are refused"


def credential_warnings(
    configuration: Configuration, place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    """Yield warnings about the `agentDir` of each agent on this machine.

    They show only the ids of profiles.

    Args:
        configuration: The configuration.
        place: Returns the folder of an `agentDir`, or raises ConfigurationError.
    """
    for path, agent in configuration.agents.placed:
        if agent.agent_dir is None:
            continue
        pointer = pointer_of((*path, "agentDir"))
        try:
            read = read_profiles(place(agent.agent_dir))
        except ConfigurationError as error:
            yield ConfigurationWarning(pointer, _UNRESOLVED.format(why=error))
        except UnreadableProfilesError as error:
            yield ConfigurationWarning(pointer, _UNUSABLE.format(file=FILE_NAME, why=error))
        else:
            for complaint in profile_warnings(read):
                yield ConfigurationWarning(pointer, f"{FILE_NAME} {complaint}")
