"""Files and folders of children: attachments, bootstrap files, staged uploads and workspaces."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import EffectiveAgent
from domain.context.attachments import AcceptedFiles

RemovalOutcome = Literal["undone", "nothing_there", "left_in_place"]
"""`left_in_place`: a link or a file has replaced a folder on the path, so its content is not
ours."""


class AttachmentWriteError(Exception):
    """The attachments cannot be written. Partial files were removed as far as possible.

    `reason` explains it to the caller, without a path of this machine.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AttachmentRemovalError(Exception):
    """Attachments are left that should be gone; a retry continues the removal.

    `reason` explains it without a path of this machine.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AttachmentFiles(Protocol):
    """Store of attachments, in `<root>/.openclaw/attachments/<run id>/`.

    `root` is the workspace of the child: absolute, with every link resolved. A link in it at the
    time of a call is not followed, nor is any link below it. Nothing outside `root` is ever
    created, changed or removed.
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
        """Write all files and the manifest durably; all or nothing.

        The run's folder is created. If it exists, the first attempt is refused; a resumed attempt
        removes it first, because an earlier attempt left it. If the call is cancelled, it returns
        only when nothing more will be written.

        Args:
            root: Workspace of the child.
            run_id: The run whose folder is written.
            judged: The accepted files.
            is_resumed: Whether an earlier attempt may have left files.
            timeout_seconds: No file is begun after this time.
            during: Called after each attached file, in a separate thread.

        Raises:
            AttachmentWriteError: If any file cannot be written.
        """
        ...

    async def remove(self, root: str, run_id: UUID, *, timeout_seconds: float) -> RemovalOutcome:
        """Remove the run's folder with all its content, and empty folders above it up to the root.

        Idempotent.

        Raises:
            AttachmentRemovalError: If something is left, or `timeout_seconds` have passed.
        """
        ...


# Bootstrap files: instructions that a workspace gives to every child in it.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """A bootstrap file that exists.

    If it cannot be used, `skipped` gives the reason as a clause that can end a sentence, and `text`
    is empty.
    """

    name: str
    text: str = ""
    skipped: str | None = None


class BootstrapFiles(Protocol):
    async def read(self, folder: str, chars_max: int) -> tuple[ReadFile, ...]:
        """Return the files of `domain.context.bootstrap_files.BOOTSTRAP_NAMES` that exist in the
        folder, in that order.

        Never raises. Only regular files are read, and links are not followed. Texts are storable
        and have no byte order mark.

        Args:
            folder: Absolute path with every link resolved.
            chars_max: Length limit. For a longer file, a text beyond the limit is returned, so that
                the caller notices, but never the whole of a huge file.
        """
        ...


# Files that came with a request, kept from admission until they are written or dropped.


class StagedFiles(Protocol):
    """Staged files of admitted requests. They are not part of the log."""

    async def read(self, run_id: UUID) -> tuple[bytes, ...]:
        """Return the run's files in their order; empty if they were dropped."""
        ...

    async def drop(self, run_id: UUID) -> None:
        """Delete the run's files, which are written or no longer needed."""
        ...

    async def sweep(self, limit: int) -> int:
        """Delete the files of at most `limit` runs that are no longer in preparation. Return the
        number of runs."""
        ...


# The folders that children work in: created in preparation, removed if it fails.


class WorkspaceFolders(Protocol):
    """Creator of agents' workspaces. Paths are absolute, with every link resolved."""

    async def missing(self, path: str) -> tuple[str, str] | None:
        """Return the deepest existing folder of the path and the missing rest; None if the path
        exists.

        Raises:
            OSError: If no folder can be created at the path.
        """
        ...

    async def is_still(self, path: str) -> bool:
        """Return True if a folder is at the path and no link on the way to it. False if it cannot
        be reached."""
        ...

    async def make(self, root: str, relative: str) -> bool:
        """Create the folders of `relative` below `root`, private to the user. Return True if any
        was created.

        Links are not followed. Idempotent.

        Raises:
            OSError: If a folder cannot be created.
        """
        ...

    async def remove_if_empty(
        self, root: str, relative: str
    ) -> Literal["undone", "nothing_there", "left_in_place"]:
        """Remove the folders that `make` created, as far as they are empty. Idempotent.

        Raises:
            OSError: If a folder cannot be removed.
        """
        ...


class WorkspaceForbiddenError(OSError):
    """The request may not use the folder that it names. The message gives the reason and the
    fix."""


class Workspaces(Protocol):
    """Rules for the folder that a child works in."""

    def workspace_of(
        self,
        pinned: PinnedConfiguration,
        agent: EffectiveAgent,
        *,
        recorded: str | None = None,
        requested: str | None = None,
    ) -> str:
        """Return the folder that a child of this agent works in. Nothing is created.

        By default it is the agent's own: the configured one, else one in the data directory, which
        need not exist. A child that runs as its requester's own agent inherits the requester's
        folder. Links are resolved first.

        Args:
            pinned: The configuration to decide under.
            agent: The child's agent.
            recorded: The folder on record for the requester, if any.
            requested: The folder that the request names. It must be inside `recorded`; without a
                record, inside the agent's own folder or below a configured workspace root.

        Raises:
            WorkspaceForbiddenError: If the folder may not be used, or a recorded one now leads
                elsewhere.
            OSError: If the folder cannot be used.
        """
        ...
