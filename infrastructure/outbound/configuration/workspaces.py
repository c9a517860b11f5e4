"""Folders that a child is given because its agent or its requester works in them."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from application.ports.configurations import PinnedConfiguration
from application.ports.files import WorkspaceForbidden
from domain.configuration.configuration import EffectiveAgent
from domain.configuration.problems import ConfigurationError
from domain.values.text import replace_unstorable
from infrastructure.outbound.configuration.files import RevisionFiles
from infrastructure.outbound.files.workspaces import is_unlinked_folder

_BELOW_NO_ROOT = (
    "The workspace that the request names is not below a configured root. Add its root to "
    "spawnlog.workspaceRoots, or leave workspaceDir out."
)
_REPLACED = (
    "The workspace on record for the requester is not the folder it was: a link leads from it to "
    "another one. Put the folder back in the place of the link, or ask from another session."
)
_NOT_IN_THE_RECORDED = (
    "The workspace that the request names is not in the one on record for its requester. Name a "
    "folder in that one, or leave workspaceDir out."
)


def resolve_own_workspace(folder: Path) -> str:
    """An agent's own folder with every link resolved, whether it is there or not. OSError when no
    folder can be there: something else is in its place, or a link that leads nowhere."""
    plain = str(folder)
    if is_unlinked_folder(plain) and replace_unstorable(plain) == plain:
        return plain
    there, missing = folder, list[str]()
    while not os.path.lexists(there):
        missing.append(there.name)
        there = there.parent
    if ".." in missing:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    root = _resolve_existing(os.path.realpath(there, strict=True))
    return os.path.join(root, *reversed(missing))


def verify_recorded_workspace(recorded: str) -> str:
    """The folder on record. It was recorded with every link resolved, so one that leads elsewhere
    by now was put there later, maybe by whoever works in it: that is refused."""
    if os.path.realpath(recorded) != recorded:
        raise WorkspaceForbidden(_REPLACED)
    return _resolve_existing(recorded)


def resolve_below_recorded(requested: str, recorded: str) -> str:
    """The folder that a request names, once it is known to be in the one on record."""
    return _resolve_below(
        requested, [Path(verify_recorded_workspace(recorded))], _NOT_IN_THE_RECORDED
    )


def resolve_below_roots(requested: str, roots: Iterable[Path]) -> str:
    """The folder that a request names, once it is known to be below one of these."""
    return _resolve_below(requested, roots, _BELOW_NO_ROOT)


def _resolve_below(requested: str, roots: Iterable[Path], refused: str) -> str:
    """The folder with every link resolved, which is what was compared. Whether it exists is looked
    at last: who may not have it learns nothing of it."""
    if not os.path.isabs(requested) or "\0" in requested:
        raise WorkspaceForbidden(refused)
    folder = Path(os.path.realpath(requested))
    if not any(folder.is_relative_to(os.path.realpath(root)) for root in roots):
        raise WorkspaceForbidden(refused)
    return _resolve_existing(str(folder))


def _resolve_existing(path: str) -> str:
    """Return a folder that has to be there. OSError if it is not, is no folder, or has a path that
    cannot be recorded."""
    if replace_unstorable(path) != path:
        raise OSError(errno.EILSEQ, "its path is not UTF-8")
    if not os.path.isdir(path):
        os.stat(path)
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return path


class WorkspaceUnusable(OSError):
    """The folder that an agent was given cannot be told."""


class ConfiguredWorkspaces:
    """Implements `Workspaces`. `folder` is where agents work that were given no workspace."""

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
        """The folder that a child of this agent works in, with every link resolved; its own need
        not be there."""
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
            raise WorkspaceUnusable(errno.EINVAL, str(error)) from error
