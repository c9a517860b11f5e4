"""Bootstrap files from the disk. A child that worked in the folder may have put anything there."""

import asyncio
import codecs
import os

from application.ports.files import ReadFile
from domain.context.bootstrap_files import BOOTSTRAP_NAMES
from infrastructure.outbound.files.regular_file import NotAFileError
from infrastructure.outbound.files.rooted_folder import RootedFolder

UTF8_BYTES_MAX = 4
"""Maximum bytes of one character."""


class _UnusableError(Exception):
    """The file exists and cannot be used. The text is the reason."""


class DiskBootstrapFiles:
    """Implementation of `BootstrapFiles`."""

    async def read(self, folder: str, chars_max: int) -> tuple[ReadFile, ...]:
        """Return the bootstrap files of a folder. They are read in a thread.

        Args:
            folder: The workspace.
            chars_max: Maximum characters of a file. If a file is longer, at least one more is
                returned.
        """
        # Most workspaces have none, and a thread costs more than this check.
        if not _has_any(folder):
            return ()
        return await asyncio.to_thread(read_files, folder, chars_max)


def _has_any(folder: str) -> bool:
    return any(os.path.lexists(f"{folder}/{name}") for name in BOOTSTRAP_NAMES)


def read_files(folder: str, chars_max: int) -> tuple[ReadFile, ...]:
    """Return the bootstrap files of a folder. Blocks."""
    try:
        with RootedFolder.open_to_pass(folder) as opened:
            found = [_read(opened, name, chars_max) for name in BOOTSTRAP_NAMES]
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        why = f"its folder cannot be opened ({_reason(error)})"
        return tuple(ReadFile(name=name, skipped=why) for name in BOOTSTRAP_NAMES)
    return tuple(file for file in found if file is not None)


def _read(folder: RootedFolder, name: str, chars_max: int) -> ReadFile | None:
    # Room for a BOM, one character more than the limit, and one that is cut in two.
    bytes_max = len(codecs.BOM_UTF8) + (chars_max + 2) * UTF8_BYTES_MAX
    try:
        with folder.read(name) as file:
            content = file.read(bytes_max)
        return ReadFile(name=name, text=_text(content, is_all=len(content) < bytes_max))
    except FileNotFoundError:
        return None
    except (_UnusableError, NotAFileError) as unusable:
        why = str(unusable.strerror if isinstance(unusable, NotAFileError) else unusable)
    except OSError as error:
        why = f"it cannot be read ({_reason(error)})"
    return ReadFile(name=name, skipped=why)


def _text(content: bytes, *, is_all: bool) -> str:
    """Decode the content. If it is only a prefix, drop a character cut in two at its end."""
    if b"\0" in content:
        raise _UnusableError("it contains NUL, so it is not text")
    try:
        text, _ = codecs.utf_8_decode(content.removeprefix(codecs.BOM_UTF8), "strict", is_all)
    except UnicodeDecodeError:
        raise _UnusableError("it is not UTF-8") from None
    return text


def _reason(error: Exception) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "invalid path"
