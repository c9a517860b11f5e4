"""Files of transcripts, mode 0600: under another name until they are whole."""

import os
from pathlib import Path
from typing import BinaryIO


def open_part(target: Path) -> tuple[Path, BinaryIO]:
    """An empty file beside the target, which nobody else has open for this process's id."""
    # Parents made on the way get the common mode, so the private one is made first.
    target.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.parent.mkdir(mode=0o700, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    # What lies there is of an attempt that failed, or of a process that died under the same id.
    part.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return part, os.fdopen(os.open(part, flags, 0o600), "wb")


def finish(file: BinaryIO, part: Path, target: Path) -> None:
    """The file is whole: it gets its name."""
    with file:
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)
