"""Transcript files, one folder per agent. No link is ever followed, whenever it was planted: a
folder is held open while it is used, and planted entries are refused.

All functions block and raise `OSError` whose `strerror` names the obstacle.
"""

import asyncio
import errno
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import BinaryIO, NamedTuple

from application.ports.transcripts import ARCHIVED_MARK
from infrastructure.outbound.files.regular_file import NotAFileError
from infrastructure.outbound.files.rooted_folder import (
    FILE_MODE,
    FolderIdentity,
    NotAFolderError,
    RootedFolder,
)

PART = ".part"
PID_MAX = 2**22
"""Upper limit of process ids on Linux."""
CHUNK_BYTES = 256 * 1024


class TranscriptFolders:
    """Agent folders below `path`, which is absolute. Links above `path` are resolved once, because
    the data directory may have been named by a link."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parent = os.path.realpath(path.parent)

    @contextmanager
    def enter(self, agent_id: str) -> Iterator[RootedFolder]:
        """Open the folder of an agent."""
        with ExitStack() as held:
            with self._translate_errors(agent_id):
                root = self._parent_of_all(held)
                root = held.enter_context(root.enter(self.path.name))
                folder = held.enter_context(root.enter(agent_id))
            yield folder

    @contextmanager
    def enter_or_make(self, agent_id: str) -> Iterator[RootedFolder]:
        """Open the folder of an agent, creating it if it is missing."""
        with ExitStack() as held:
            with self._translate_errors(agent_id):
                root = self._parent_of_all(held)
                root = held.enter_context(root.enter_or_make(self.path.name))
                folder = held.enter_context(root.enter_or_make(agent_id))
            yield folder

    def require_in_place(self, agent_id: str, folder: RootedFolder) -> None:
        """Require that the folder was not moved or replaced since it was entered.

        Raises:
            NotAFolderError: Another folder is in its place.
        """
        with self.enter(agent_id) as found:
            if found.identity == folder.identity:
                return
        text = f"the folder {self.path.name}/{agent_id} was replaced while it was written"
        raise NotAFolderError(errno.ENOTDIR, text)

    def _parent_of_all(self, held: ExitStack) -> RootedFolder:
        return held.enter_context(RootedFolder.open_to_pass(self._parent))

    @contextmanager
    def _translate_errors(self, agent_id: str) -> Iterator[None]:
        try:
            yield
        except NotAFolderError:
            place = f"{self.path.name}, {self.path.name}/{agent_id} or a folder above it"
            text = f"{place} is a link or a file, not a folder"
            raise NotAFolderError(errno.ENOTDIR, text) from None


def has_content(folders: TranscriptFolders, agent_id: str, name: str, content: bytes) -> bool:
    """Return True if the file exists, is private, and has exactly this content."""
    try:
        with folders.enter(agent_id) as folder, folder.read(name) as file:
            state = os.fstat(file.fileno())
            is_private = stat.S_IMODE(state.st_mode) == FILE_MODE
            return is_private and file.read(len(content) + 1) == content
    except (FileNotFoundError, PermissionError, NotAFileError):
        return False


def drop_file(folders: TranscriptFolders, agent_id: str, name: str) -> bool:
    """Delete a file and the part files of attempts to write it. Return True if the file existed."""
    try:
        with folders.enter(agent_id) as folder:
            for part in folder.names():
                if part.startswith(f"{name}.") and part.endswith(PART):
                    with suppress(FileNotFoundError):
                        folder.unlink(part)
            folder.unlink(name)
    except FileNotFoundError:
        return False
    return True


def drop_parts_of_the_dead(folders: TranscriptFolders, path: str) -> None:
    """Delete the part files that dead processes left of a transcript file, including those under
    its name before it was archived."""
    agent_id, name = place_of(path)
    before = name.partition(ARCHIVED_MARK)[0]
    with suppress(FileNotFoundError), folders.enter(agent_id) as folder:
        for part in folder.names():
            if part.startswith(f"{before}.") and part.endswith(PART) and _is_of_the_dead(part):
                with suppress(FileNotFoundError):
                    folder.unlink(part)


def _is_of_the_dead(part: str) -> bool:
    """Return True if no process has the id in the name of the part file."""
    pid = part.removesuffix(PART).rpartition(".")[2]
    if not (pid.isascii() and pid.isdigit() and 0 < int(pid) < PID_MAX):
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


class KnownFile(NamedTuple):
    """A transcript file: its name in the agent's folder, its size, and its `lines` if they are
    known."""

    name: str
    size_bytes: int
    lines: bytes | None


def write_known_files(
    folders: TranscriptFolders, agent_id: str, files: Sequence[KnownFile]
) -> list[bool | OSError]:
    """Write the files of one agent whose lines are known, each atomically. Files without lines are
    only looked for.

    Returns:
        For each file, whether it exists now, or the error.
    """
    results: list[bool | OSError] = []
    with folders.enter_or_make(agent_id) as folder:
        written: dict[str, FolderIdentity] = {}
        for file in files:
            try:
                if file.lines is not None:
                    # Writing costs less than checking whether it exists.
                    written[file.name] = _write_whole(folder, file.name, file.lines)
                    is_there = True
                else:
                    is_there = is_in_place(folder, file.name, file.size_bytes)
                if is_there:
                    _drop_former(folder, file.name)
                results.append(is_there)
            except OSError as failure:
                results.append(failure)
        try:
            folders.require_in_place(agent_id, folder)
        except OSError as replaced:
            for name, own in written.items():
                with suppress(OSError):
                    if folder.identity_of(name) == own:
                        folder.unlink(name)
            return [replaced] * len(files)
    return results


def _write_whole(folder: RootedFolder, name: str, lines: bytes) -> FolderIdentity:
    part = _part_of(name)
    try:
        try:
            own = folder.write_unsynced(part, lines)
        except FileExistsError:
            # A leftover of a failed attempt, or of a dead process with the same id.
            folder.unlink(part)
            own = folder.write_unsynced(part, lines)
        folder.rename(part, name)
    except BaseException:
        with suppress(OSError):
            folder.unlink(part)
        raise
    return own


def _part_of(name: str) -> str:
    """Return the name of a file until it is complete."""
    return f"{name}.{os.getpid()}{PART}"


def _require_same_content(
    folder: RootedFolder, name: str, own: FolderIdentity, digest: Callable[[], bytes]
) -> None:
    """Require that the file is this one or has the same content. Two servers may end the same run;
    both have then written the same."""
    if folder.identity_of(name) != own and _digest_of(folder, name) != digest():
        raise OSError(errno.EEXIST, "another file has taken the place of this one")


def _remove_unless_of_another(folder: RootedFolder, name: str, own: FolderIdentity) -> None:
    """Delete the file unless another server wrote it. Links are deleted."""
    with suppress(OSError):
        if folder.identity_of(name) == own or _digest_of(folder, name) is None:
            folder.unlink(name)


def is_in_place(folder: RootedFolder, name: str, size_bytes: int) -> bool:
    """Return True if the transcript file exists with this size. If it still has its name from
    before it was archived, rename it."""
    before, is_archived, _ = name.partition(ARCHIVED_MARK)
    if _is_whole(folder, name, size_bytes):
        return True
    if is_archived and _is_whole(folder, before, size_bytes):
        folder.rename(before, name)
        return True
    return False


def drop_former(folders: TranscriptFolders, path: str) -> None:
    """Delete the file that still has the name from before the archive, next to an archived file. It
    was cut short, or written by a server that had not yet seen the archive."""
    agent_id, name = place_of(path)
    if ARCHIVED_MARK in name:
        with suppress(FileNotFoundError), folders.enter(agent_id) as folder:
            _drop_former(folder, name)


def _drop_former(folder: RootedFolder, name: str) -> None:
    before, is_archived, _ = name.partition(ARCHIVED_MARK)
    if is_archived:
        with suppress(FileNotFoundError):
            folder.unlink(before)


def _is_whole(folder: RootedFolder, name: str, size: int) -> bool:
    """Return True if it is a private file of this size. Files are renamed only when complete, so it
    can be shorter only after a crash of the machine before the data reached the disk."""
    try:
        state = folder.state_of(name)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(state.mode) and (stat.S_IMODE(state.mode), state.size) == (FILE_MODE, size)


def place_of(path: str) -> tuple[str, str]:
    """Return the agent id and file name at the end of a recorded path."""
    above, _, name = path.rpartition("/")
    agent_id = above.rpartition("/")[2]
    before = name.partition(ARCHIVED_MARK)[0]
    if {agent_id, before} & {"", ".", ".."} or "\0" in path:
        raise OSError(errno.EINVAL, "this is not the path of a transcript file")
    return agent_id, name


def _digest_of(folder: RootedFolder, name: str) -> bytes | None:
    """Return the digest of a private file, or None if there is no such file."""
    digest = hashlib.sha256()
    try:
        with folder.read(name) as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) != FILE_MODE:
                return None
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except (FileNotFoundError, PermissionError, NotAFileError):
        return None
    return digest.digest()


class PartFile:
    """A transcript file, mode 0600, under another name until it is complete.

    A caller may be cancelled while its method continues in a thread. So the methods exclude each
    other, and no descriptor is closed while it is in use. All raise `OSError`.
    """

    def __init__(self, folders: TranscriptFolders, agent_id: str, name: str) -> None:
        self._folders, self._agent_id, self._name = folders, agent_id, name
        self._part = _part_of(name)
        self._digest = hashlib.sha256()
        self._one_at_a_time = Lock()
        self._held = ExitStack()
        self._open: tuple[RootedFolder, BinaryIO] | None = None
        self._is_over = False

    def begin(self) -> None:
        """Create the empty part file. No other process uses its name, which has this process's
        id."""
        with self._one_at_a_time, ExitStack() as opened:
            if self._is_over:
                raise _abandoned_error()
            folder = opened.enter_context(self._folders.enter_or_make(self._agent_id))
            # A leftover of a failed attempt, or of a dead process with the same id.
            with suppress(FileNotFoundError):
                folder.unlink(self._part)
            self._open = folder, opened.enter_context(folder.create(self._part))
            self._held = opened.pop_all()

    def write(self, content: bytes) -> None:
        """Append content."""
        with self._one_at_a_time:
            _, file = self._opened()
            file.write(content)
            self._digest.update(content)

    def finish(self) -> None:
        """Rename the complete file to its final name."""
        with self._one_at_a_time:
            folder, file = self._opened()
            # No fsync: the rows are the source of truth, and a truncated file is written again.
            file.flush()
            state = os.fstat(file.fileno())
            own = (state.st_dev, state.st_ino)
            folder.rename(self._part, self._name)
            try:
                self._folders.require_in_place(self._agent_id, folder)
                _require_same_content(folder, self._name, own, self._digest.digest)
            except BaseException:
                _remove_unless_of_another(folder, self._name, own)
                raise
            self._end()

    def give_up(self) -> None:
        """Delete the part file. No-op if the file was complete already."""
        with self._one_at_a_time:
            if self._open is not None and not self._is_over:
                folder, _ = self._open
                with suppress(OSError):
                    folder.unlink(self._part)
            with suppress(OSError):
                self._end()

    def _opened(self) -> tuple[RootedFolder, BinaryIO]:
        if self._open is None or self._is_over:
            raise _abandoned_error()
        return self._open

    def _end(self) -> None:
        self._is_over = True
        self._held.close()


def _abandoned_error() -> OSError:
    return OSError(errno.ECANCELED, "the file was abandoned in the meantime")


@contextmanager
def atomic_file(folders: TranscriptFolders, agent_id: str, name: str) -> Iterator[PartFile]:
    """Yield a file that exists once the `with` block ends, and not at all if the block fails.
    Blocks."""
    part = PartFile(folders, agent_id, name)
    try:
        part.begin()
        yield part
        part.finish()
    except BaseException:
        part.give_up()
        raise


@asynccontextmanager
async def atomic_file_async(
    folders: TranscriptFolders, agent_id: str, name: str
) -> AsyncIterator[PartFile]:
    """Open a file as `atomic_file` does, without blocking the event loop. Write to it in
    threads."""
    part = PartFile(folders, agent_id, name)
    try:
        await asyncio.to_thread(part.begin)
        yield part
        await asyncio.to_thread(part.finish)
    except BaseException:
        await asyncio.shield(asyncio.to_thread(part.give_up))
        raise
