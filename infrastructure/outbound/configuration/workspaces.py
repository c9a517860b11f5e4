"""Folders that a child is given because its requester works in them."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from application.ports.configurations import WorkspaceForbidden

_BELOW_NO_ROOT = (
    "The workspace that the request names is not below a configured root. Add its root to "
    "spawnlog.workspaceRoots, or leave workspaceDir out."
)
_NOT_IN_THE_RECORDED = (
    "The workspace that the request names is not in the one on record for its requester. Name a "
    "folder in that one, or leave workspaceDir out."
)


def existing(path: str) -> str:
    """A folder that has to be there. OSError when it is not, or is no folder."""
    if not Path(path).is_dir():
        os.stat(path)
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return path


def below_recorded(requested: str, recorded: str) -> str:
    """The folder that a request names, once it is known to be in the one on record."""
    return _below(requested, [Path(recorded)], _NOT_IN_THE_RECORDED)


def below_roots(requested: str, roots: Iterable[Path]) -> str:
    """The folder that a request names, once it is known to be below one of these."""
    return _below(requested, roots, _BELOW_NO_ROOT)


def _below(requested: str, roots: Iterable[Path], refused: str) -> str:
    """The folder with every link resolved, which is what was compared. Whether it exists is looked
    at last: who may not have it learns nothing of it."""
    if not os.path.isabs(requested) or "\0" in requested:
        raise WorkspaceForbidden(refused)
    folder = Path(os.path.realpath(requested))
    if not any(folder.is_relative_to(os.path.realpath(root)) for root in roots):
        raise WorkspaceForbidden(refused)
    return existing(str(folder))
