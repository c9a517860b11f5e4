"""Folders of agents, made one below the other and removed while they are empty."""

import asyncio
import errno
import os
import stat
from collections.abc import Sequence
from typing import Literal

from infrastructure.outbound.files.rooted_folder import (
    NotAFolder,
    RootedFolder,
    open_without_links,
)

FolderRemoval = Literal["undone", "nothing_there", "left_in_place"]

# Something is in it, or it is no folder any more.
_NOT_OURS = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.ENOTDIR)


class LocalWorkspaceFolders:
    """Implements `WorkspaceFolders`. Files are looked at and made outside of the event loop."""

    async def missing(self, path: str) -> tuple[str, str] | None:
        """What is there of a path, and what is not."""
        # Hardly ever anything is missing, and a thread costs more than this question.
        if _is_there(path):
            return None
        return await asyncio.to_thread(_missing, path)

    async def is_still(self, path: str) -> bool:
        """Whether a folder is at a path, and no link on the way."""
        return is_unlinked_folder(path)

    async def make(self, root: str, relative: str) -> bool:
        """Make what is missing."""
        return await asyncio.to_thread(_make, root, relative)

    async def remove_if_empty(self, root: str, relative: str) -> FolderRemoval:
        """Remove what was made, as far as it is empty."""
        return await asyncio.to_thread(_remove, root, relative)


def _is_there(path: str) -> bool:
    return os.path.isdir(path)


def is_unlinked_folder(path: str) -> bool:
    """Return True if a folder is at an absolute path in its normal form, and no link is on the way.

    This is asked for each run, on the event loop.
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
            # A link is no folder.
            if not stat.S_ISDIR(mode):
                return False
    except (OSError, ValueError):
        return False
    return True


def _missing(path: str) -> tuple[str, str] | None:
    there, missing = path, list[str]()
    while not os.path.lexists(there):
        there, name = os.path.split(there)
        missing.append(name)
    if not os.path.isdir(there):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return (there, "/".join(reversed(missing))) if missing else None


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
        # Another run of the agent was faster, or an earlier attempt of this one.
        with folder.enter(name) as inner:
            return _make_below(inner, further) if further else False


def _remove(root: str, relative: str) -> FolderRemoval:
    try:
        with RootedFolder.open_root(root) as folder:
            return _remove_below(folder, relative.split("/"))
    except FileNotFoundError:
        return "nothing_there"
    except NotAFolder:
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
