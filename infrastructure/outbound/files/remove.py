"""Removing whatever has an entry's name, however deep and however made: what a child left there may
be made so that it is hard to remove."""

import errno
from collections.abc import Callable

from infrastructure.outbound.files.rooted_folder import RootedFolder

_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_NAMES_TRIED_MAX = 1_000


def remove_entry(parent: RootedFolder, name: str, go_on: Callable[[], None]) -> bool:
    """Remove the entry with all that is in it; False when there is none. A link is removed itself.

    `go_on` is called before each entry and raises to stop; what was removed by then stays so.
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
    """Remove all that is in a folder.

    What is in the folders in it is moved up before they are removed, level by level. So neither
    the depth of a tree nor the length of its paths matters, and three descriptors are enough.
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
    """Empty `inner`: its folders into `folder`, under names counted on from `number`."""
    for name in inner.names():
        go_on()
        if inner.is_folder(name):
            number = _move_entry(inner, name, folder, number)
        else:
            inner.unlink(name)
    return number


def _move_entry(inner: RootedFolder, name: str, folder: RootedFolder, number: int) -> int:
    for tried in range(number + 1, number + _NAMES_TRIED_MAX):
        try:
            inner.move(name, folder, str(tried))
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
        else:
            return tried
    raise OSError(errno.EEXIST, "too many names are taken")
