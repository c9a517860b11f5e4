"""A folder held by its descriptor, so that no link can lead out of it.

Each name is one entry of the folder. No link is followed, wherever and whenever it was created. All
methods raise `OSError`.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import BinaryIO, NamedTuple, Self

from infrastructure.outbound.files.regular_file import open_to_read

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

# Search permission on a folder does not imply read permission. Systems without O_PATH need both.
PASSED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NOT_A_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)


class NotAFolderError(OSError):
    """A link or a file is in the place of a folder."""


FolderIdentity = tuple[int, int]
"""Device and inode. They identify a folder while it is held, whatever its name."""


class FileState(NamedTuple):
    """Identity of a file and its last change. The inode alone may be reused after a removal."""

    device: int
    number: int
    mode: int
    size: int
    changed_ns: int


class RootedFolder:
    """An open folder. Leave the `with` of the method that returned it to close it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.identity: FolderIdentity = _identity(os.fstat(descriptor))

    @classmethod
    @contextmanager
    def open_root(cls, path: str) -> Iterator[Self]:
        """Open the folder at an absolute path without links and `..`. Raise NotAFolder for other
        paths."""
        with cls._held(_open_path(path, _FOLDER)) as folder:
            yield folder

    @classmethod
    @contextmanager
    def open_to_pass(cls, path: str) -> Iterator[Self]:
        """Open a folder without the permission to list it. It can be neither listed nor synced."""
        with cls._held(_open_path(path, PASSED)) as folder:
            yield folder

    @contextmanager
    def enter(self, name: str) -> Iterator[Self]:
        """Open a subfolder. Raise NotAFolder if the entry is something else."""
        with self._held(_open_entry(_entry(name), _FOLDER, self._descriptor)) as folder:
            yield folder

    @contextmanager
    def enter_to_empty(self, name: str) -> Iterator[Self]:
        """Open a subfolder after giving its owner full permission. Refuse one on another file
        system."""
        state = self._stat(name)
        if state.st_dev != self.identity[0]:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        if stat.S_IMODE(state.st_mode) & FOLDER_MODE != FOLDER_MODE:
            self._open_to_owner(name)
        with self.enter(name) as folder:
            yield folder

    @contextmanager
    def made(self, name: str) -> Iterator[Self]:
        """Create a subfolder with mode 0700, independent of the umask.

        Raises:
            FileExistsError: The name is taken.
        """
        os.mkdir(_entry(name), FOLDER_MODE, dir_fd=self._descriptor)
        try:
            descriptor = self._make_private(name)
        except BaseException:
            with suppress(OSError):
                self.remove_empty(name)
            raise
        with self._held(descriptor) as folder:
            yield folder

    @contextmanager
    def enter_or_make(self, name: str) -> Iterator[Self]:
        """Open a subfolder; create it if it is missing. Raise NotAFolder if the entry is something
        else."""
        if self.identity_of(name) is None:
            # Another process may create it first.
            with suppress(FileExistsError), self.made(name):
                pass
        with self.enter(name) as folder:
            yield folder

    def create(self, name: str) -> BinaryIO:
        """Create a file for writing with mode 0600, independent of the umask."""
        file = os.fdopen(os.open(_entry(name), _FILE, FILE_MODE, dir_fd=self._descriptor), "wb")
        try:
            os.fchmod(file.fileno(), FILE_MODE)
            return file
        except BaseException:
            file.close()
            with suppress(OSError):
                self.unlink(name)
            raise

    def write_unsynced(self, name: str, content: bytes) -> FolderIdentity:
        """Write a new private file in as few system calls as possible and return its identity.

        A crash of the machine, or an error, may leave a partial file.
        """
        descriptor = os.open(_entry(name), _FILE, FILE_MODE, dir_fd=self._descriptor)
        try:
            state = os.fstat(descriptor)
            if stat.S_IMODE(state.st_mode) != FILE_MODE:
                os.fchmod(descriptor, FILE_MODE)
            written = os.write(descriptor, content)
            while written < len(content):
                written += os.write(descriptor, memoryview(content)[written:])
        finally:
            os.close(descriptor)
        return _identity(state)

    def write_new(self, name: str, content: bytes) -> FileState:
        """Write a new private file: complete and synced, or not at all."""
        file = self.create(name)
        try:
            with file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                return _state(os.fstat(file.fileno()))
        except BaseException:
            with suppress(OSError):
                self.unlink(name)
            raise

    def read(self, name: str) -> BinaryIO:
        """Open a file for reading. Raise NotAFile if the entry is something else."""
        return os.fdopen(open_to_read(_entry(name), self._descriptor), "rb")

    def rename(self, name: str, called: str, target: "RootedFolder | None" = None) -> None:
        """Rename an entry, optionally into another folder. A file or link with the new name is
        replaced."""
        target = target or self
        os.rename(
            _entry(name),
            _entry(called),
            src_dir_fd=self._descriptor,
            dst_dir_fd=target._descriptor,
        )

    def names(self) -> list[str]:
        """Return the names of all entries."""
        return os.listdir(self._descriptor)

    def identity_of(self, name: str) -> FolderIdentity | None:
        """Return the identity of an entry, without following a link; None if there is no such
        entry."""
        try:
            return _identity(self._stat(name))
        except FileNotFoundError:
            return None

    def state_of(self, name: str) -> FileState:
        """Return the state of an entry; equal to that of `write_new` if the file is unchanged."""
        return _state(self._stat(name))

    def is_folder(self, name: str) -> bool:
        """Return True if the entry is a folder; False for a link to one."""
        return stat.S_ISDIR(self._stat(name).st_mode)

    def unlink(self, name: str) -> None:
        """Remove a file, a link, or any other entry that is not a folder."""
        os.unlink(_entry(name), dir_fd=self._descriptor)

    def remove_empty(self, name: str) -> None:
        os.rmdir(_entry(name), dir_fd=self._descriptor)

    def move(self, name: str, target: "RootedFolder", called: str) -> None:
        """Move a subfolder to another folder. It gets full permission first, because a move needs
        that."""
        with self.enter_to_empty(name):
            pass
        self.rename(name, called, target)

    def sync(self) -> None:
        """Sync the entries of the folder to disk, so that they survive a crash of the machine."""
        os.fsync(self._descriptor)

    @classmethod
    @contextmanager
    def _held(cls, descriptor: int) -> Iterator[Self]:
        try:
            yield cls(descriptor)
        finally:
            os.close(descriptor)

    def _make_private(self, name: str) -> int:
        if stat.S_IMODE(self._stat(name).st_mode) != FOLDER_MODE:
            self._open_to_owner(name)
        descriptor = _open_entry(name, _FOLDER, self._descriptor)
        try:
            os.fchmod(descriptor, FOLDER_MODE)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _stat(self, name: str) -> os.stat_result:
        return os.stat(_entry(name), dir_fd=self._descriptor, follow_symlinks=False)

    def _open_to_owner(self, name: str) -> None:
        """Give the owner full permission, by name and never through a link.

        A descriptor would be safer, but a folder without permission for its owner cannot be opened.
        """
        try:
            os.chmod(_entry(name), FOLDER_MODE, dir_fd=self._descriptor, follow_symlinks=False)
        except (NotImplementedError, ValueError):
            # Python raises these if the system cannot do it, and for a link if it can. Most
            # systems need /proc for it; without that they report a lack of permission.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def _entry(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError("this is not the name of an entry of a folder")
    return name


def open_without_links(path: str, flags: int = PASSED) -> int | None:
    """Open a folder with one system call if its path contains no link; else return None.

    On Linux, /proc shows the path of an open folder with every link resolved. It equals the
    requested path only if that is absolute, normalized and without links. None does not prove that
    there is a link.
    """
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError):
        return None
    try:
        if os.readlink(f"/proc/self/fd/{descriptor}") == path:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _open_path(path: str, flags: int) -> int:
    opened = open_without_links(path, flags)
    if opened is not None:
        return opened
    components = PurePosixPath(path).parts
    if not components or components[0] != "/" or ".." in components or "\0" in path:
        raise NotAFolderError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    descriptor = os.open("/", PASSED if len(components) > 1 else flags)
    for place, name in enumerate(components[1:], start=2):
        try:
            inner = _open_entry(name, flags if place == len(components) else PASSED, descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _open_entry(name: str, flags: int, descriptor: int) -> int:
    try:
        return os.open(name, flags, dir_fd=descriptor)
    except OSError as error:
        if error.errno in _NOT_A_FOLDER:
            raise NotAFolderError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
        raise


def _identity(state: os.stat_result) -> FolderIdentity:
    return state.st_dev, state.st_ino


def _state(state: os.stat_result) -> FileState:
    return FileState(state.st_dev, state.st_ino, state.st_mode, state.st_size, state.st_ctime_ns)
