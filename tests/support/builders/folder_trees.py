"""All that is in a folder, told so that two moments of it can be compared."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path


def tree_of(folder: Path) -> Mapping[str, str]:
    """Every entry below the folder and itself (`.`): its kind, mode, and content or target. No link
    is followed."""
    return {os.path.relpath(path, folder): _told(path) for path in _below(folder)}


def _below(folder: Path) -> Iterator[str]:
    yield str(folder)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.path.join(place, name)


def _told(path: str) -> str:
    state = os.lstat(path)
    mode = f"{stat.S_IMODE(state.st_mode):04o}"
    if stat.S_ISDIR(state.st_mode):
        return f"folder {mode}"
    if stat.S_ISLNK(state.st_mode):
        return f"link to {os.readlink(path)}"
    if stat.S_ISREG(state.st_mode):
        return f"file {mode} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    return f"other {mode}"
