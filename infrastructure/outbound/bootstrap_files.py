"""Bootstrap files from the disk, where whoever worked in the folder may have put anything."""

import asyncio
import codecs
import errno
import os
import stat
from pathlib import PurePath

from application.ports.bootstrap_files import ReadFile
from domain.bootstrap_files import BOOTSTRAP_NAMES

UTF8_BYTES_MAX = 4
"""Bytes that one character takes at most."""

# Whoever may pass through a folder need not be able to list it.
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
# A pipe must not be waited for, and a terminal must not become ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_A_LINK = "it is a symbolic link"
_NOT_REGULAR = "it is no regular file"


class _Unusable(Exception):
    """The file is there and cannot be used; the text is the reason."""


class DiskBootstrapFiles:
    """Implements `BootstrapFiles`."""

    async def read(self, folder: str, chars_max: int) -> tuple[ReadFile, ...]:
        """The files that are there; read off the event loop."""
        # Most workspaces have none, and a thread costs more than this question.
        if not _has_any(folder):
            return ()
        return await asyncio.to_thread(read_files, folder, chars_max)


def _has_any(folder: str) -> bool:
    return any(os.path.lexists(os.path.join(folder, name)) for name in BOOTSTRAP_NAMES)


def read_files(folder: str, chars_max: int) -> tuple[ReadFile, ...]:
    """The same, at once."""
    try:
        opened = _opened(folder)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        why = f"its folder cannot be opened ({_reason(error)})"
        return tuple(ReadFile(name=name, skipped=why) for name in BOOTSTRAP_NAMES)
    try:
        found = [_read(opened, name, chars_max) for name in BOOTSTRAP_NAMES]
    finally:
        os.close(opened)
    return tuple(file for file in found if file is not None)


def _opened(folder: str) -> int:
    """The folder, reached through no link: the path on record had none, so one that is in it by
    now was put there to lead elsewhere."""
    root, *names = PurePath(folder).parts or ("",)
    if root != os.sep or os.pardir in names:
        raise ValueError(folder)
    at = os.open(root, _FOLDER)
    try:
        for name in names:
            inner = os.open(name, _FOLDER, dir_fd=at)
            os.close(at)
            at = inner
    except BaseException:
        os.close(at)
        raise
    return at


def _read(folder: int, name: str, chars_max: int) -> ReadFile | None:
    try:
        # One character more than may stay, behind a mark and before one that is cut in two.
        bytes_max = len(codecs.BOM_UTF8) + (chars_max + 2) * UTF8_BYTES_MAX
        content = _start_of(folder, name, bytes_max)
        return ReadFile(name=name, text=_text(content, is_all=len(content) < bytes_max))
    except FileNotFoundError:
        return None
    except _Unusable as unusable:
        return ReadFile(name=name, skipped=str(unusable))
    except OSError as error:
        why = _A_LINK if error.errno == errno.ELOOP else f"it cannot be read ({_reason(error)})"
        return ReadFile(name=name, skipped=why)


def _start_of(folder: int, name: str, bytes_max: int) -> bytes:
    # Asked before opening, for to open a device may already do something to it.
    _must_be_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        _must_be_regular(os.fstat(file))
        content = bytearray()
        while more := os.read(file, bytes_max - len(content)):
            content += more
        return bytes(content)
    finally:
        os.close(file)


def _must_be_regular(found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise _Unusable(_A_LINK)
    if not stat.S_ISREG(found.st_mode):
        raise _Unusable(_NOT_REGULAR)


def _text(content: bytes, *, is_all: bool) -> str:
    """The characters; at the end of a mere start, one that was cut in two is left out."""
    if b"\0" in content:
        raise _Unusable("it holds NUL and so is no text")
    try:
        text, _ = codecs.utf_8_decode(content.removeprefix(codecs.BOM_UTF8), "strict", is_all)
    except UnicodeDecodeError:
        raise _Unusable("it is not UTF-8") from None
    return text


def _reason(error: Exception) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "no valid path"
