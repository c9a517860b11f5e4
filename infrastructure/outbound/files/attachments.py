"""Attachment files of a run, below the workspace of its child."""

import errno
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from uuid import UUID

from application.ports.files import AttachmentRemovalError, AttachmentWriteError, RemovalOutcome
from domain.context.attachment_manifest import FOLDERS, manifest_text, relative_dir
from domain.context.attachments import MANIFEST_NAME, AcceptedFiles
from infrastructure.outbound.files.deadline import (
    AttachmentThreads,
    Deadline,
    DeadlineExceededError,
)
from infrastructure.outbound.files.remove import remove_entry
from infrastructure.outbound.files.rooted_folder import FileState, NotAFolderError, RootedFolder

OPENCLAW, ATTACHMENTS = FOLDERS
ATTEMPTS_MAX = 20
_NO_FOLDER = (
    f"the workspace, {OPENCLAW} in it or {OPENCLAW}/{ATTACHMENTS} is a link or a file, not a folder"
)
_CONTESTED = (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST)
_TAKEN = "the folder of this run already exists"
_REPLACED = "another process changed the folder during the write"


class WorkspaceAttachments:
    """Implementation of `AttachmentFiles`. Blocking work runs in its own threads, so that a write
    always finds one free."""

    def __init__(self) -> None:
        self._threads = AttachmentThreads()

    def close(self) -> None:
        """Shut down. Nothing is written or removed afterward."""
        self._threads.close()

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
        """Write all files and the manifest, or nothing.

        Args:
            root: The workspace.
            run_id: Id of the run; names the folder.
            judged: The accepted files.
            is_resumed: Remove the folder of an earlier attempt first.
            timeout_seconds: Time limit.
            during: Called after each file.

        Raises:
            AttachmentWriteError: A file system error or timeout; files written so far are removed.
        """

        def work(deadline: Deadline) -> None:
            writing = _WriteAttempt(root, run_id, judged, deadline, during or _do_nothing)
            writing.carry_out(is_resumed=is_resumed)

        try:
            await self._threads.write(work, seconds=timeout_seconds)
        except DeadlineExceededError as spent:
            raise AttachmentWriteError(str(spent)) from None
        except OSError as error:
            raise AttachmentWriteError(_reason(error)) from error

    async def remove(self, root: str, run_id: UUID, *, timeout_seconds: float) -> RemovalOutcome:
        """Remove the folder of the run, then the folders above it that are empty.

        Raises:
            AttachmentRemovalError: A file system error or timeout.
        """

        def work(deadline: Deadline) -> RemovalOutcome:
            return _remove(root, str(run_id), deadline)

        try:
            return await self._threads.remove(work, seconds=timeout_seconds)
        except DeadlineExceededError as spent:
            raise AttachmentRemovalError(str(spent)) from None
        except OSError as error:
            raise AttachmentRemovalError(_reason(error)) from error


_Above = tuple[RootedFolder, RootedFolder, RootedFolder]
"""The folder of all runs, its parent, and the workspace."""


class _WriteAttempt:
    """One attempt to write the files of a run."""

    def __init__(
        self,
        root: str,
        run_id: UUID,
        judged: AcceptedFiles,
        deadline: Deadline,
        during: Callable[[], None],
    ) -> None:
        self._root = root
        self._name = str(run_id)
        self._manifest = manifest_text(relative_dir(run_id), judged.files).encode()
        self._judged = judged
        self._deadline = deadline
        self._during = during
        self._made: dict[str, FileState] = {}

    def carry_out(self, *, is_resumed: bool) -> None:
        with ExitStack() as held:
            above, folder = self._open_file(held, is_resumed=is_resumed)
            try:
                self._fill(folder)
                for changed in (folder, *above):
                    changed.sync()
                self._require_in_place(folder)
                self._deadline.go_on()
            except BaseException:
                self._undo(above[0], folder)
                raise

    def _open_file(self, held: ExitStack, *, is_resumed: bool) -> tuple[_Above, RootedFolder]:
        """Open the parent folders and create the folder of the run.

        Another run may remove empty parents in between, so nothing slow is done there.
        """
        for attempt in range(1, ATTEMPTS_MAX + 1):
            self._deadline.go_on()
            with ExitStack() as opened:
                try:
                    above = opened.enter_context(_ensure_folders(self._root))
                    if is_resumed:
                        remove_entry(above[0], self._name, self._deadline.go_on)
                    folder = opened.enter_context(above[0].made(self._name))
                except FileNotFoundError:
                    if attempt == ATTEMPTS_MAX:
                        raise
                    continue
                held.push(opened.pop_all())
                return above, folder
        raise AssertionError("the last attempt raises or returns")

    def _fill(self, folder: RootedFolder) -> None:
        try:
            for file in self._judged.files:
                self._deadline.go_on()
                self._made[file.name] = folder.write_new(file.name, file.content)
                self._during()
            self._deadline.go_on()
            self._made[MANIFEST_NAME] = folder.write_new(MANIFEST_NAME, self._manifest)
        except FileExistsError:
            raise _FolderChangedError from None

    def _require_in_place(self, folder: RootedFolder) -> None:
        """Require that the written files are at their path, and that nothing else is in the
        folder."""
        found = [folder.state_of(name) for name in folder.names()]
        with _open_runs_folder(self._root) as attachments:
            in_place = attachments.identity_of(self._name) == folder.identity
        if not in_place or Counter(found) != Counter(self._made.values()):
            raise _FolderChangedError

    def _undo(self, attachments: RootedFolder, folder: RootedFolder) -> None:
        """Remove the written files, even if the folder was moved.

        Foreign files stay, with the folders around them. The recorded step is then undone again.
        """
        for name in self._made:
            with suppress(OSError):
                folder.unlink(name)
        with suppress(OSError):
            attachments.remove_empty(self._name)
            _remove_empty_parents(self._root)


class _FolderChangedError(OSError):
    """Another process changed the folder during the write."""

    def __init__(self) -> None:
        super().__init__(errno.EEXIST, _REPLACED)


def _remove(root: str, name: str, deadline: Deadline) -> RemovalOutcome:
    for attempt in range(1, ATTEMPTS_MAX + 1):
        deadline.go_on()
        with ExitStack() as opened:
            try:
                attachments = opened.enter_context(_open_runs_folder(root))
            except FileNotFoundError:
                _remove_empty_parents(root)
                return "nothing_there"
            except NotAFolderError:
                return "left_in_place"
            try:
                was_there = remove_entry(attachments, name, deadline.go_on)
            except OSError as error:
                # Another server, or an abandoned writer, may work on the same folder.
                if error.errno in _CONTESTED and attempt < ATTEMPTS_MAX:
                    continue
                raise
            attachments.sync()
        _remove_empty_parents(root)
        return "undone" if was_there else "nothing_there"
    raise AssertionError("the last attempt raises or returns")


@contextmanager
def _open_runs_folder(root: str) -> Iterator[RootedFolder]:
    """Yield the parent folder of the folders of all runs."""
    with (
        RootedFolder.open_root(root) as workspace,
        workspace.enter(OPENCLAW) as openclaw,
        openclaw.enter(ATTACHMENTS) as attachments,
    ):
        yield attachments


@contextmanager
def _ensure_folders(root: str) -> Iterator[_Above]:
    """Yield the same folder and those above it; create them if they are missing."""
    with RootedFolder.open_root(root) as workspace:
        with (
            _ensure_folder(workspace, OPENCLAW) as openclaw,
            _ensure_folder(openclaw, ATTACHMENTS) as attachments,
        ):
            yield attachments, openclaw, workspace


@contextmanager
def _ensure_folder(parent: RootedFolder, name: str) -> Iterator[RootedFolder]:
    with suppress(FileExistsError), parent.made(name):
        pass
    with parent.enter(name) as folder:
        yield folder


def _remove_empty_parents(root: str) -> None:
    """Remove the parent folders that are empty."""
    with suppress(OSError), RootedFolder.open_root(root) as workspace:
        with suppress(OSError), workspace.enter(OPENCLAW) as openclaw:
            openclaw.remove_empty(ATTACHMENTS)
            openclaw.sync()
        workspace.remove_empty(OPENCLAW)
        workspace.sync()


def _reason(error: OSError) -> str:
    if isinstance(error, NotAFolderError):
        return _NO_FOLDER
    if isinstance(error, FileExistsError):
        return _TAKEN
    return error.strerror or type(error).__name__


def _do_nothing() -> None:
    pass
