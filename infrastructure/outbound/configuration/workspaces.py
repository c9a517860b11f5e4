"""Workspace of a child: the folder of its agent or of its requester."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from application.ports.configurations import PinnedConfiguration
from application.ports.files import WorkspaceForbiddenError
from domain.configuration.configuration import EffectiveAgent
from domain.configuration.problems import ConfigurationError
from infrastructure.outbound.configuration.files import RevisionFiles
from infrastructure.outbound.files.workspaces import resolve_existing, resolve_own_workspace

_BELOW_NO_ROOT = (
    "The workspace that the request names is not below a configured root. Add its root to "
    "spawnlog.workspaceRoots, or leave workspaceDir out."
)
_REPLACED = (
    "The workspace recorded for the requester is now a link to another folder. Replace the link"
    " with the folder, or ask from another session."
)
_NOT_IN_THE_RECORDED = (
    "The workspace that the request names is outside the one recorded for its requester. Name a"
    " folder inside it, or leave workspaceDir out."
)


def verify_recorded_workspace(recorded: str) -> str:
    """Return the recorded folder.

    It was recorded with every link resolved. If it resolves to another folder now, a link was put
    there later, perhaps by a child that works in it.

    Raises:
        WorkspaceForbiddenError: The path resolves to another folder.
        OSError: The folder does not exist.
    """
    if os.path.realpath(recorded) != recorded:
        raise WorkspaceForbiddenError(_REPLACED)
    return resolve_existing(recorded)


def resolve_below_recorded(requested: str, recorded: str) -> str:
    """Return the requested folder. Raise WorkspaceForbidden if it is outside the recorded one."""
    return _resolve_below(
        requested, [Path(verify_recorded_workspace(recorded))], _NOT_IN_THE_RECORDED
    )


def resolve_below_roots(requested: str, roots: Iterable[Path]) -> str:
    """Return the requested folder. Raise WorkspaceForbidden if it is not below one of the roots."""
    return _resolve_below(requested, roots, _BELOW_NO_ROOT)


def _resolve_below(requested: str, roots: Iterable[Path], refused: str) -> str:
    """Return the folder with every link resolved; that is the path that was compared.

    Existence is checked last, so a caller without permission does not learn about it.
    """
    if not os.path.isabs(requested) or "\0" in requested:
        raise WorkspaceForbiddenError(refused)
    folder = Path(os.path.realpath(requested))
    if not any(folder.is_relative_to(os.path.realpath(root)) for root in roots):
        raise WorkspaceForbiddenError(refused)
    return resolve_existing(str(folder))


class WorkspaceUnusableError(OSError):
    """The configured workspace of an agent cannot be resolved."""


class ConfiguredWorkspaces:
    """Implementation of `Workspaces`. `folder` holds the workspaces of agents without a configured
    one."""

    def __init__(self, files: RevisionFiles, folder: Path) -> None:
        self._files = files
        self._folder = folder

    def workspace_of(
        self,
        pinned: PinnedConfiguration,
        agent: EffectiveAgent,
        *,
        recorded: str | None = None,
        requested: str | None = None,
    ) -> str:
        """Return the workspace of a child of this agent, with every link resolved.

        Args:
            pinned: Configuration revision of the decision.
            agent: The agent.
            recorded: Recorded workspace of the requester, or None.
            requested: Workspace named in the request, or None. It must be inside `recorded`;
                without that, inside the agent's own workspace or a configured root.

        Returns:
            The folder. It exists, unless it is the agent's own.

        Raises:
            WorkspaceForbiddenError: The folder is not permitted.
            OSError: The folder cannot be used.
        """
        if requested is not None and recorded is not None:
            return resolve_below_recorded(requested, recorded)
        if requested is not None:
            return resolve_below_roots(requested, self._roots(pinned, agent))
        if recorded is not None:
            return verify_recorded_workspace(recorded)
        return resolve_own_workspace(self._own_workspace(pinned, agent))

    def _own_workspace(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> Path:
        given = agent.workspace
        return self._folder_of(pinned, given) if given else self._folder / agent.id

    def _roots(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> list[Path]:
        configured = pinned.configuration.spawnlog.workspace_roots
        own = self._own_workspace(pinned, agent)
        return [own, *(self._folder_of(pinned, root) for root in configured)]

    def _folder_of(self, pinned: PinnedConfiguration, given: str) -> Path:
        loaded = self._files.file_of(pinned)
        try:
            return loaded.path_of(loaded.resolve(given))
        except ConfigurationError as error:
            raise WorkspaceUnusableError(errno.EINVAL, str(error)) from error
