"""The folders that children work in, as they are made and, when all was in vain, unmade."""

from typing import Literal, Protocol


class WorkspaceFolders(Protocol):
    """Makes the folder of an agent. A path is absolute, with every link in it resolved."""

    async def missing(self, path: str) -> tuple[str, str] | None:
        """The deepest folder of the path that is there, and the rest that is not; None when the
        whole is there. Raises OSError for a path that no folder can be made at."""
        ...

    async def is_still(self, path: str) -> bool:
        """Whether a folder is at the path, and no link on the way to it. Of one that cannot be
        reached too it is no."""
        ...

    async def make(self, root: str, relative: str) -> bool:
        """Make the rest below what is there, private, one folder after the other; whether any of
        it was made now. No link is followed. May be repeated. Raises OSError."""
        ...

    async def remove_if_empty(
        self, root: str, relative: str
    ) -> Literal["undone", "nothing_there", "left_in_place"]:
        """Remove what `make` made as far as nothing is in it. May be repeated. Raises OSError."""
        ...
