"""Folders for children that cannot be told here, and roots of them that hold back nothing."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError, pointer_of
from domain.configuration.warnings import ConfigurationWarning

_ROOT_IS_WHOLE_MACHINE = (
    "is the whole machine: a request may name any folder as its requester's workspace; write the "
    "folders that are meant"
)
_ROOT_UNRESOLVED = "cannot be told, and requests that name a workspace are refused for it: {why}"
_WORKSPACE_UNRESOLVED = "cannot be told, and a spawn that would work there is refused: {why}"


def workspace_root_warnings(
    roots: Sequence[str], place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    """What is doubtful about `spawnlog.workspaceRoots` here and now; `place` tells the folder that
    a root means, or raises ConfigurationError."""
    for index, root in enumerate(roots):
        pointer = pointer_of(("spawnlog", "workspaceRoots", index))
        try:
            folder = os.path.realpath(place(root))
        except (ConfigurationError, ValueError) as error:
            yield ConfigurationWarning(pointer, _ROOT_UNRESOLVED.format(why=error))
            continue
        if folder == os.path.realpath(os.sep):
            yield ConfigurationWarning(pointer, _ROOT_IS_WHOLE_MACHINE)


def agent_workspace_warnings(
    configuration: Configuration, place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    """The workspaces of agents that cannot be told here and now, each where it stands."""
    default = configuration.agent(configuration.default_agent_id)
    shared = configuration.defaults.workspace
    # That of the defaults is for the default agent alone, where it has none of its own.
    if shared is not None and (default is None or default.workspace is None):
        yield from _unresolved_warnings(
            pointer_of(("agents", "defaults", "workspace")), shared, place
        )
    for index, agent in enumerate(configuration.agents.list):
        if agent.workspace is not None:
            pointer = pointer_of(("agents", "list", index, "workspace"))
            yield from _unresolved_warnings(pointer, agent.workspace, place)


def _unresolved_warnings(
    pointer: str, workspace: str, place: Callable[[str], Path]
) -> Iterator[ConfigurationWarning]:
    try:
        place(workspace)
    except ConfigurationError as error:
        yield ConfigurationWarning(pointer, _WORKSPACE_UNRESOLVED.format(why=error))
