"""Bootstrap files: what a workspace tells every child that works in it."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """A bootstrap file that is there. `skipped` says why it cannot be used, as a clause that a
    sentence can end with; then there is no text."""

    name: str
    text: str = ""
    skipped: str | None = None


class BootstrapFiles(Protocol):
    """Reads the bootstrap files of a workspace."""

    async def read(self, folder: str, chars_max: int) -> tuple[ReadFile, ...]:
        """Those of `domain.bootstrap_files.BOOTSTRAP_NAMES` that are in the folder, in that order;
        never an error.

        `folder` is absolute and has every link resolved. Of a file with more than `chars_max`
        characters more than `chars_max` are given, so that it is seen to be too long, and never all
        of it whatever its size. Texts are storable and begin behind a byte order mark. Only regular
        files are read, and no link is followed.
        """
        ...
