"""A folder that is held by its descriptor, so that no link can lead out of it.

Every name is that of one entry of the folder; no link is followed, wherever it was put and
whenever. All methods raise `OSError`.
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

# Who may pass through a folder may not always read it. Systems without O_PATH need both.
PASSED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NOT_A_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)


class NotAFolder(OSError):
    """A link or a file is in the place of a folder."""


FolderIdentity = tuple[int, int]
"""What a folder is, whatever it is called, for as long as it is held: its device and number."""


class FileState(NamedTuple):
    """What a file is, and when it was last changed: its number alone would be that of another one,
    made after it was removed."""

    device: int
    number: int
    mode: int
    size: int
    changed_ns: int


class RootedFolder:
    """Closed by leaving the `with` that `opened`, `passed`, `entered`, `made` or `had` begins."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.identity: FolderIdentity = _identity(os.fstat(descriptor))

    @classmethod
    @contextmanager
    def open_root(cls, path: str) -> Iterator[Self]:
        """The folder at an absolute path in which no component is a link or `..`; `NotAFolder` for
        any other path."""
        with cls._held(_open_path(path, _FOLDER)) as folder:
            yield folder

    @classmethod
    @contextmanager
    def open_to_pass(cls, path: str) -> Iterator[Self]:
        """The same for whoever may not list it; it can be neither listed nor made safe."""
        with cls._held(_open_path(path, PASSED)) as folder:
            yield folder

    @contextmanager
    def enter(self, name: str) -> Iterator[Self]:
        """The folder of that name. `NotAFolder` when something else is called so."""
        with self._held(_open_entry(_entry(name), _FOLDER, self._descriptor)) as folder:
            yield folder

    @contextmanager
    def enter_to_empty(self, name: str) -> Iterator[Self]:
        """The folder of that name, opened to its owner first. Not one that is another disk."""
        state = self._stat(name)
        if state.st_dev != self.identity[0]:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        if stat.S_IMODE(state.st_mode) & FOLDER_MODE != FOLDER_MODE:
            self._open_to_owner(name)
        with self.enter(name) as folder:
            yield folder

    @contextmanager
    def made(self, name: str) -> Iterator[Self]:
        """A new folder, private whatever the process masks. `FileExistsError` when the name is
        taken."""
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
        """The folder of that name, made when there is none. `NotAFolder` when something else is
        called so."""
        if self.identity_of(name) is None:
            # Somebody else may be faster.
            with suppress(FileExistsError), self.made(name):
                pass
        with self.enter(name) as folder:
            yield folder

    def create(self, name: str) -> BinaryIO:
        """A new file to be written, private whatever the process masks."""
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
        """Write a new private file in as few calls as possible, and return its identity. A crash of
        the machine, or an error, may leave a part of it."""
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
        """A new file, private as those that are begun, safe from a crash of the machine; whole or
        not at all."""
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
        """A file to be read; `NotAFile` when something else is called so."""
        return os.fdopen(open_to_read(_entry(name), self._descriptor), "rb")

    def rename(self, name: str, called: str, target: "RootedFolder | None" = None) -> None:
        """Rename an entry, maybe into another folder. A file, or a link, that was called so there
        is no more."""
        target = target or self
        os.rename(
            _entry(name),
            _entry(called),
            src_dir_fd=self._descriptor,
            dst_dir_fd=target._descriptor,
        )

    def names(self) -> list[str]:
        """What is in it."""
        return os.listdir(self._descriptor)

    def identity_of(self, name: str) -> FolderIdentity | None:
        """That of an entry itself, a link's too; None when there is none."""
        try:
            return _identity(self._stat(name))
        except FileNotFoundError:
            return None

    def state_of(self, name: str) -> FileState:
        """That of an entry itself, as `written` gave it if it is still that."""
        return _state(self._stat(name))

    def is_folder(self, name: str) -> bool:
        """Whether the entry is a folder; a link to one is none."""
        return stat.S_ISDIR(self._stat(name).st_mode)

    def unlink(self, name: str) -> None:
        """Remove a file, or a link, or whatever is no folder."""
        os.unlink(_entry(name), dir_fd=self._descriptor)

    def remove_empty(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(_entry(name), dir_fd=self._descriptor)

    def move(self, name: str, target: "RootedFolder", called: str) -> None:
        """Move a folder into another one. It has to be writable for that itself."""
        with self.enter_to_empty(name):
            pass
        self.rename(name, called, target)

    def sync(self) -> None:
        """Make what was added and removed safe from a crash of the machine."""
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
        """Only a descriptor of a folder is safe to change, and a folder without any rights for its
        owner gives none: so by its name, and never through a link."""
        try:
            os.chmod(_entry(name), FOLDER_MODE, dir_fd=self._descriptor, follow_symlinks=False)
        except (NotImplementedError, ValueError):
            # What Python raises where the system cannot, and for a link where it can. Most of
            # those that can need /proc for it; without that they say that it is not permitted.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def _entry(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError("that is no name of an entry of one folder")
    return name


def open_without_links(path: str, flags: int = PASSED) -> int | None:
    """Open a folder by one call if no link is on the way to it, or return None.

    Linux tells the path of an open folder with every link resolved. That is the path asked for only
    if it is absolute, in its normal form and without links. None does not say that there are any.
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
        raise NotAFolder(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
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
            raise NotAFolder(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
        raise


def _identity(state: os.stat_result) -> FolderIdentity:
    return state.st_dev, state.st_ino


def _state(state: os.stat_result) -> FileState:
    return FileState(state.st_dev, state.st_ino, state.st_mode, state.st_size, state.st_ctime_ns)
