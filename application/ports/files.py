"""The files that a spawn attaches, as they lie in the workspace of the child."""

from collections.abc import Callable
from typing import Literal, Protocol
from uuid import UUID

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
