"""Files of lines: an output file that is renamed when it is complete, and input with a line length
limit."""

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.transfer.lines import LineFormatError

LINE_BYTES_MAX = 256 * 1024 * 1024
"""Limit of a line, for reading and writing. Any text that a log accepts fits."""

PART_SUFFIX = ".part"
_BUFFER_BYTES = 1024 * 1024


class OutputFile:
    """A file that appears under its name only when it is complete.

    Until then it is `<name>.part`, locked by its writer and readable only by its owner. Close it
    after use.
    """

    def __init__(self, path: Path, *, resume: bool, force: bool) -> None:
        self.path = path
        self.part = path.with_name(path.name + PART_SUFFIX)
        self._force = force
        if not force and os.path.lexists(path):
            raise UserError(f"{path} already exists; name another file, or give --force")
        self._file = self._open(resume)
        self._is_finished = False
        self.digest = hashlib.sha256()

    def _open(self, resume: bool) -> BinaryIO:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        if not (resume or self._force):
            flags |= os.O_EXCL
        try:
            descriptor = os.open(self.part, flags, 0o600)
        except FileExistsError:
            raise UserError(
                f"{self.part} is left from an unfinished export; give --resume to continue it, or"
                " --force to start over"
            ) from None
        except OSError as error:
            raise UserError(f"{self.part} cannot be written: {error.strerror}") from error
        file = os.fdopen(descriptor, "r+b", buffering=_BUFFER_BYTES)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UserError(f"{self.part} is not a plain file; name another file")
            os.fchmod(descriptor, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{self.part} is being written by another process") from None
            if not resume:
                file.truncate(0)
        except BaseException:
            file.close()
            raise
        return file

    @property
    def reading(self) -> BinaryIO:
        """Return the part file, positioned at its beginning."""
        self._file.seek(0)
        return self._file

    def go_on_from(self, offset: int, digest: "hashlib._Hash") -> None:
        """Truncate the file at `offset`. `digest` is the hash state of the bytes before it."""
        self._file.seek(offset)
        self._file.truncate()
        self.digest = digest

    def write(self, data: bytes) -> None:
        """Append whole lines."""
        self.digest.update(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failure(error) from error

    def finish(self) -> None:
        """Flush the file to disk and rename it to its final name."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            if self._force:
                self.part.replace(self.path)
            else:
                # Unlike a rename, a link never replaces a file that was created in the meantime.
                os.link(self.part, self.path)
                self.part.unlink()
            self._is_finished = True
            folder = os.open(self.path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except FileExistsError:
            raise UserError(
                f"{self.path} was created in the meantime; the export is in {self.part}"
            ) from None
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> UserError:
        return UserError(f"{self.part} cannot be written: {error.strerror}; continue with --resume")

    def close(self) -> None:
        """Close the file, complete or not. An empty part file is removed."""
        with contextlib.suppress(OSError):
            self._file.flush()
            if not self._is_finished and os.fstat(self._file.fileno()).st_size == 0:
                self.part.unlink()
        with contextlib.suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OutputStream:
    """Standard output instead of a file: it cannot be resumed or replaced."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Append whole lines."""
        self.digest.update(data)
        self._stream.write(data)

    def finish(self) -> None:
        """Flush the stream."""
        self._stream.flush()


def open_input(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        UserError: It cannot be read or is not a regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path} is not a plain file")
    return os.fdopen(descriptor, "rb", buffering=_BUFFER_BYTES)


def bounded_lines(file: BinaryIO, *, bytes_max: int = LINE_BYTES_MAX) -> Iterator[bytes]:
    """Yield the lines of a file with their line ends; the last one may lack its end.

    Raises:
        LineFormatError: A line is longer than `bytes_max`.
    """
    while line := file.readline(bytes_max + 1):
        if len(line) > bytes_max:
            raise LineFormatError(f"it has more than {bytes_max} bytes")
        yield line


TAIL_BYTES = 4_096


def last_line(file: BinaryIO) -> bytes:
    """Return the last line of a file if it is short, without moving the file position."""
    offset = file.tell()
    try:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        return file.read(TAIL_BYTES).rstrip(b"\n").rpartition(b"\n")[2] + b"\n"
    finally:
        file.seek(offset)
