"""Remove an entry of any kind and depth, even one that a child made hard to remove."""

import errno
from collections.abc import Callable

from infrastructure.outbound.files.rooted_folder import RootedFolder

_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_NAMES_TRIED_MAX = 1_000


def remove_entry(parent: RootedFolder, name: str, go_on: Callable[[], None]) -> bool:
    """Remove an entry and everything in it. A link itself is removed, not its target.

    Args:
        parent: Folder of the entry.
        name: Name of the entry.
        go_on: Called before each entry. It may raise to stop; what was removed stays removed.

    Returns:
        False if there is no such entry.
    """
    if parent.identity_of(name) is None:
        return False
    if not parent.is_folder(name):
        parent.unlink(name)
        return True
    with parent.enter_to_empty(name) as folder:
        _remove_contents(folder, go_on)
    parent.remove_empty(name)
    return True


def _remove_contents(folder: RootedFolder, go_on: Callable[[], None]) -> None:
    """Remove everything in a folder.

    The contents of subfolders are moved up before the subfolders are removed, level by level. So
    neither the depth of a tree nor the length of its paths matters, and three descriptors suffice.
    """
    number = 0
    while names := folder.names():
        for name in names:
            go_on()
            if not folder.is_folder(name):
                folder.unlink(name)
                continue
            with folder.enter_to_empty(name) as inner:
                number = _move_up(inner, folder, number, go_on)
            folder.remove_empty(name)


def _move_up(
    inner: RootedFolder, folder: RootedFolder, number: int, go_on: Callable[[], None]
) -> int:
    """Empty `inner`; move its folders to `folder`, under numbers counted up from `number`."""
    for name in inner.names():
        go_on()
        if inner.is_folder(name):
            number = _move_entry(inner, name, folder, number)
        else:
            inner.unlink(name)
    return number


def _move_entry(inner: RootedFolder, name: str, folder: RootedFolder, number: int) -> int:
    for candidate in range(number + 1, number + _NAMES_TRIED_MAX):
        try:
            inner.move(name, folder, str(candidate))
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return candidate
    raise OSError(errno.EEXIST, "too many names are taken")
