"""Opening a file to read it, where anything may be in its place."""

import errno
import os
import stat

IS_A_LINK = "it is a symbolic link"
NOT_REGULAR = "it is no regular file"

# A pipe must not be waited for, and a terminal must not become ours.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotAFile(OSError):
    """A link, or what is no regular file, is in the place of a file; `strerror` says which."""


def open_to_read(name: str, folder: int) -> int:
    """A descriptor of the regular file of that name in a folder. Raises `OSError`."""
    # Asked before opening, for to open a device may already do something to it.
    _must_be_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))
    try:
        file = os.open(name, _READ, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise NotAFile(errno.ELOOP, IS_A_LINK) from None
        raise
    try:
        _must_be_regular(os.fstat(file))
    except BaseException:
        os.close(file)
        raise
    return file


def _must_be_regular(found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise NotAFile(errno.ELOOP, IS_A_LINK)
    if not stat.S_ISREG(found.st_mode):
        raise NotAFile(errno.EINVAL, NOT_REGULAR)
