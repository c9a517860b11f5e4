"""A file of a transcript, mode 0600: under another name until it is whole."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from threading import Lock
from typing import BinaryIO

from infrastructure.outbound.files.rooted_folder import RootedFolder
from infrastructure.outbound.transcripts.files import PART, TranscriptFolders


class PartFile:
    """Whoever waits for one of its methods may be cancelled while that goes on in a thread, so each
    waits for the one before: no descriptor is closed while it is used. All raise `OSError`."""

    def __init__(self, folders: TranscriptFolders, agent_id: str, name: str) -> None:
        self._folders, self._agent_id, self._name = folders, agent_id, name
        self._part = f"{name}.{os.getpid()}{PART}"
        self._one_at_a_time = Lock()
        self._held = ExitStack()
        self._open: tuple[RootedFolder, BinaryIO] | None = None
        self._is_over = False

    def begin(self) -> None:
        """An empty file beside the one to be, which nobody else has open for this process's id."""
        with self._one_at_a_time, ExitStack() as opened:
            if self._is_over:
                raise _abandoned_error()
            folder = opened.enter_context(self._folders.enter_or_make(self._agent_id))
            # What lies there is of an attempt that failed, or of a process that died under the
            # same id.
            with suppress(FileNotFoundError):
                folder.unlink(self._part)
            self._open = folder, opened.enter_context(folder.begun(self._part))
            self._held = opened.pop_all()

    def write(self, content: bytes) -> None:
        """Add to it."""
        with self._one_at_a_time:
            _, file = self._opened()
            file.write(content)

    def finish(self) -> None:
        """It is whole, and gets its name."""
        with self._one_at_a_time:
            folder, file = self._opened()
            file.flush()
            os.fsync(file.fileno())
            state = os.fstat(file.fileno())
            folder.rename(self._part, self._name)
            try:
                self._folders.must_be_in_place(self._agent_id, folder)
                if folder.identity_of(self._name) != (state.st_dev, state.st_ino):
                    raise OSError(errno.EEXIST, "somebody else's file is in the place of this one")
            except BaseException:
                with suppress(OSError):
                    folder.unlink(self._name)
                raise
            self._end()

    def give_up(self) -> None:
        """Nothing of it stays, unless it was whole already."""
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
    return OSError(errno.ECANCELED, "the file was given up meanwhile")


@contextmanager
def atomic_file(folders: TranscriptFolders, agent_id: str, name: str) -> Iterator[PartFile]:
    """A file that is there when the `with` is left, and not at all when that fails. Blocks."""
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
    """The same, outside of the event loop; to be written to in threads, too."""
    part = PartFile(folders, agent_id, name)
    try:
        await asyncio.to_thread(part.begin)
        yield part
        await asyncio.to_thread(part.finish)
    except BaseException:
        await asyncio.shield(asyncio.to_thread(part.give_up))
        raise
