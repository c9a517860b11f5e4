"""Workspace folders of agents: created level by level, and removed while they are empty."""

import asyncio
import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from domain.values.text import replace_unstorable
from infrastructure.outbound.files.rooted_folder import (
    NotAFolderError,
    RootedFolder,
    open_without_links,
)

FolderRemoval = Literal["undone", "nothing_there", "left_in_place"]

# The folder is not empty, or is no longer a folder.
_NOT_OURS = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.ENOTDIR)


class LocalWorkspaceFolders:
    """Implementation of `WorkspaceFolders`. Slow file operations run in threads."""

    async def missing(self, path: str) -> tuple[str, str] | None:
        """Return the existing and the missing part of a path; None if nothing is missing."""
        # Usually nothing is missing, and a thread costs more than this check.
        if _is_there(path):
            return None
        return await asyncio.to_thread(_missing, path)

    async def is_still(self, path: str) -> bool:
        """Return True if a folder is at the path and no part of the path is a link."""
        return is_unlinked_folder(path)

    async def make(self, root: str, relative: str) -> bool:
        """Create the missing folders. Return True if any was created here."""
        return await asyncio.to_thread(_make, root, relative)

    async def remove_if_empty(self, root: str, relative: str) -> FolderRemoval:
        """Remove the created folders as far as they are empty."""
        return await asyncio.to_thread(_remove, root, relative)


def _is_there(path: str) -> bool:
    return os.path.isdir(path)


def is_unlinked_folder(path: str) -> bool:
    """Return True if a folder is at a normalized absolute path and no part of the path is a link.

    Called for each run on the event loop.
    """
    descriptor = open_without_links(path)
    if descriptor is None:
        return _is_unlinked_on_the_way(path)
    os.close(descriptor)
    return True


def _is_unlinked_on_the_way(path: str) -> bool:
    if not os.path.isabs(path) or path.startswith("//") or os.path.normpath(path) != path:
        return False
    end = 0
    try:
        while end >= 0:
            end = path.find("/", end + 1)
            mode = os.lstat(path if end < 0 else path[:end]).st_mode
            # S_ISDIR is False for a link, because of lstat.
            if not stat.S_ISDIR(mode):
                return False
    except (OSError, ValueError):
        return False
    return True


def _missing(path: str) -> tuple[str, str] | None:
    existing, missing = path, list[str]()
    while not os.path.lexists(existing):
        existing, name = os.path.split(existing)
        missing.append(name)
    if not os.path.isdir(existing):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return (existing, "/".join(reversed(missing))) if missing else None


def _make(root: str, relative: str) -> bool:
    with RootedFolder.open_root(root) as folder:
        return _make_below(folder, relative.split("/"))


def _make_below(folder: RootedFolder, names: Sequence[str]) -> bool:
    name, *further = names
    try:
        with folder.made(name) as inner:
            if further:
                _make_below(inner, further)
        folder.sync()
        return True
    except FileExistsError:
        # Another run of the agent created it, or an earlier attempt of this one.
        with folder.enter(name) as inner:
            return _make_below(inner, further) if further else False


def _remove(root: str, relative: str) -> FolderRemoval:
    try:
        with RootedFolder.open_root(root) as folder:
            return _remove_below(folder, relative.split("/"))
    except FileNotFoundError:
        return "nothing_there"
    except NotAFolderError:
        return "left_in_place"


def _remove_below(folder: RootedFolder, names: Sequence[str]) -> FolderRemoval:
    name, *further = names
    below: FolderRemoval = "nothing_there"
    try:
        if further:
            with folder.enter(name) as inner:
                below = _remove_below(inner, further)
            if below == "left_in_place":
                return below
        folder.remove_empty(name)
    except FileNotFoundError:
        return below
    except OSError as error:
        if error.errno in _NOT_OURS:
            return "left_in_place"
        raise
    return "undone"


def resolve_own_workspace(folder: Path) -> str:
    """Return the agent's own folder with every link resolved. It need not exist.

    Raises:
        OSError: No folder can be there: a file is in its place, or a dangling link.
    """
    plain = str(folder)
    if is_unlinked_folder(plain) and replace_unstorable(plain) == plain:
        return plain
    existing, missing = folder, list[str]()
    while not os.path.lexists(existing):
        missing.append(existing.name)
        existing = existing.parent
    if ".." in missing:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    root = resolve_existing(os.path.realpath(existing, strict=True))
    return os.path.join(root, *reversed(missing))


def resolve_existing(path: str) -> str:
    """Return an existing folder.

    Raise OSError if it does not exist, is not a folder, or its path cannot be recorded.
    """
    if replace_unstorable(path) != path:
        raise OSError(errno.EILSEQ, "its path is not UTF-8")
    if not os.path.isdir(path):
        os.stat(path)
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return path
