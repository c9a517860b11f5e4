"""The files that a spawn attaches, as they lie in the workspace of the child."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import EffectiveAgent
from domain.context.attachments import AcceptedFiles

RemovalOutcome = Literal["undone", "nothing_there", "left_in_place"]
"""`left_in_place`: a link or a file is in the place of a folder above, and what is behind it is
not ours."""


class AttachmentsNotWritten(Exception):
    """The files cannot be written, and what was made of them was removed again as far as could be.
    `reason` says why in words for the caller, without a path of this machine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AttachmentsNotRemoved(Exception):
    """Files are left that should be gone; asking again goes on with it. `reason` says why, without
    a path of this machine."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AttachmentFiles(Protocol):
    """Writes the files of a run into `<root>/.openclaw/attachments/<run id>/`, and removes them.

    `root` is the workspace of the child, absolute and with every link resolved: a link in it by the
    time of a call is not followed, nor is any below it. Nothing outside of it is ever made,
    changed or removed.
    """

    async def write(
        self,
        root: str,
        run_id: UUID,
        judged: AcceptedFiles,
        *,
        is_resumed: bool,
        timeout_seconds: float,
        during: Callable[[], None] | None = None,
    ) -> None:
        """Write all files and the manifest, safe from a crash of the machine; all or nothing.

        The folder of the run is made anew. One that is there already refuses the first attempt; for
        a resumed preparation (`is_resumed`) it is what an earlier attempt left, and removed before.
        `during` is called once per attached file when that is written, in a thread of its own.
        No file is begun after `timeout_seconds`. Raises `AttachmentsNotWritten`. When the call is
        cancelled, it ends once nothing more will be written.
        """
        ...

    async def remove(self, root: str, run_id: UUID, *, timeout_seconds: float) -> RemovalOutcome:
        """Remove the folder of the run with all that is in it by now. May be repeated. The folders
        above it, up to the root, go when nothing else is in them.

        Raises `AttachmentsNotRemoved`, also when it took longer than `timeout_seconds`.
        """
        ...


# Bootstrap files: what a workspace tells every child that works in it.


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


# Files that a request brought, from its admission until they are written or not wanted.


class StagedFiles(Protocol):
    """Reads and drops what admissions have kept. None of it is part of the log."""

    async def read(self, run_id: UUID) -> tuple[bytes, ...]:
        """The run's files in their order; none when they were dropped."""
        ...

    async def drop(self, run_id: UUID) -> None:
        """They are written, or will never be."""
        ...

    async def sweep(self, limit: int) -> int:
        """Drop the files of at most `limit` runs that are not being prepared any more; gives of
        how many they were."""
        ...


# The folders that children work in, as they are made and, when all was in vain, unmade.


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


class WorkspaceForbidden(OSError):
    """The folder that a request names may not be used. The text says so in the words of whoever
    asked, and what to do."""


class Workspaces(Protocol):
    """Which folders children work in."""

    def workspace_of(
        self,
        pinned: PinnedConfiguration,
        agent: EffectiveAgent,
        *,
        recorded: str | None = None,
        requested: str | None = None,
    ) -> str:
        """The folder that a child of this agent works in.

        Its agent's own: as configured, else one in the data directory; it need not be there. A
        child of its requester's own agent inherits: `recorded` is the folder on record for the
        requester, `requested` the one that the request says it works in, which has to be in the
        recorded one; without a record, in the agent's own or below a configured root. Links are
        resolved first, and nothing of it is created.

        Raises OSError for a folder that cannot be used, `WorkspaceForbidden` for one that may not:
        also one on record that leads elsewhere by now.
        """
        ...
