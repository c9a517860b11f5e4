"""Open a file for reading where anything may be in its place."""

import errno
import os
import stat

IS_A_LINK = "it is a symbolic link"
NOT_REGULAR = "it is not a regular file"

# Do not block on a FIFO, and do not make a terminal the controlling one.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotAFileError(OSError):
    """A link or another non-regular file is in the place of a file; `strerror` says which."""


def open_to_read(name: str, folder: int) -> int:
    """Return a descriptor of the regular file with that name in a folder.

    Args:
        name: Name of the entry.
        folder: Descriptor of the folder.

    Raises:
        NotAFileError: The entry is a link or not a regular file.
        OSError: The file cannot be opened.
    """
    # Check before opening: opening a device may have side effects.
    _require_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))
    try:
        file = os.open(name, _READ, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise NotAFileError(errno.ELOOP, IS_A_LINK) from None
        raise
    try:
        _require_regular(os.fstat(file))
    except BaseException:
        os.close(file)
        raise
    return file


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise NotAFileError(errno.ELOOP, IS_A_LINK)
    if not stat.S_ISREG(found.st_mode):
        raise NotAFileError(errno.EINVAL, NOT_REGULAR)
