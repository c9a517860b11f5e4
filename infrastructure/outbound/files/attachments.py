"""The files of a run below the workspace of its child."""

import errno
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from uuid import UUID

from application.ports.files import AttachmentsNotRemoved, AttachmentsNotWritten, RemovalOutcome
from domain.context.attachment_manifest import FOLDERS, manifest_text, relative_dir
from domain.context.attachments import MANIFEST_NAME, AcceptedFiles
from infrastructure.outbound.files.deadline import AttachmentThreads, Deadline, DeadlineExceeded
from infrastructure.outbound.files.remove import remove_entry
from infrastructure.outbound.files.rooted_folder import FileState, NotAFolder, RootedFolder

OPENCLAW, ATTACHMENTS = FOLDERS
ATTEMPTS_MAX = 20
_NO_FOLDER = (
    f"a link or a file is in the place of the workspace, of {OPENCLAW} in it or of"
    f" {OPENCLAW}/{ATTACHMENTS}"
)
_CONTESTED = (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST)
_TAKEN = "a folder of this run is there already"
_REPLACED = "the folder was changed by somebody else while it was written"


class WorkspaceAttachments:
    """Implements `AttachmentFiles`. Blocking work is done in threads that nothing else is done in,
    so that whoever is about to write finds one free."""

    def __init__(self) -> None:
        self._threads = AttachmentThreads()

    def close(self) -> None:
        """Nothing is written or removed afterwards."""
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
        """Write all files and the manifest; all or nothing."""

        def work(allowance: Deadline) -> None:
            writing = _WriteAttempt(root, run_id, judged, allowance, during or _do_nothing)
            writing.carry_out(is_resumed=is_resumed)

        try:
            await self._threads.write(work, seconds=timeout_seconds)
        except DeadlineExceeded as spent:
            raise AttachmentsNotWritten(str(spent)) from None
        except OSError as error:
            raise AttachmentsNotWritten(_reason(error)) from error

    async def remove(self, root: str, run_id: UUID, *, timeout_seconds: float) -> RemovalOutcome:
        """Remove the folder of the run, and those above it that are empty then."""

        def work(allowance: Deadline) -> RemovalOutcome:
            return _remove(root, str(run_id), allowance)

        try:
            return await self._threads.remove(work, seconds=timeout_seconds)
        except DeadlineExceeded as spent:
            raise AttachmentsNotRemoved(str(spent)) from None
        except OSError as error:
            raise AttachmentsNotRemoved(_reason(error)) from error


_Above = tuple[RootedFolder, RootedFolder, RootedFolder]
"""The folder of all runs, the one around it, the workspace."""


class _WriteAttempt:
    """One attempt."""

    def __init__(
        self,
        root: str,
        run_id: UUID,
        judged: AcceptedFiles,
        allowance: Deadline,
        during: Callable[[], None],
    ) -> None:
        self._root = root
        self._name = str(run_id)
        self._manifest = manifest_text(relative_dir(run_id), judged.files).encode()
        self._judged = judged
        self._allowance = allowance
        self._during = during
        self._made: dict[str, FileState] = {}

    def carry_out(self, *, is_resumed: bool) -> None:
        with ExitStack() as held:
            above, folder = self._open_file(held, is_resumed=is_resumed)
            try:
                self._fill(folder)
                for changed in (folder, *above):
                    changed.sync()
                self._must_be_in_place(folder)
                self._allowance.go_on()
            except BaseException:
                self._undo(above[0], folder)
                raise

    def _open_file(self, held: ExitStack, *, is_resumed: bool) -> tuple[_Above, RootedFolder]:
        """The folders above and the new one of this run. Another run that removes its own may take
        those that are empty away in between, so nothing slow is done there."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            self._allowance.go_on()
            with ExitStack() as opened:
                try:
                    above = opened.enter_context(_ensure_folders(self._root))
                    if is_resumed:
                        remove_entry(above[0], self._name, self._allowance.go_on)
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
                self._allowance.go_on()
                self._made[file.name] = folder.write_new(file.name, file.content)
                self._during()
            self._allowance.go_on()
            self._made[MANIFEST_NAME] = folder.write_new(MANIFEST_NAME, self._manifest)
        except FileExistsError:
            raise _FolderChanged from None

    def _must_be_in_place(self, folder: RootedFolder) -> None:
        """What was written is found where it will be said to be, and nothing else is there."""
        found = [folder.state_of(name) for name in folder.names()]
        with _open_runs_folder(self._root) as attachments:
            in_place = attachments.identity_of(self._name) == folder.identity
        if not in_place or Counter(found) != Counter(self._made.values()):
            raise _FolderChanged

    def _undo(self, attachments: RootedFolder, folder: RootedFolder) -> None:
        """What was made, wherever somebody moved the folder. What somebody put beside it stays, and
        so do the folders around that: the record has the step undone once more."""
        for name in self._made:
            with suppress(OSError):
                folder.unlink(name)
        with suppress(OSError):
            attachments.remove_empty(self._name)
            _remove_empty_parents(self._root)


class _FolderChanged(OSError):
    """Somebody else was at work in the folder."""

    def __init__(self) -> None:
        super().__init__(errno.EEXIST, _REPLACED)


def _remove(root: str, name: str, allowance: Deadline) -> RemovalOutcome:
    for attempt in range(1, ATTEMPTS_MAX + 1):
        allowance.go_on()
        with ExitStack() as opened:
            try:
                attachments = opened.enter_context(_open_runs_folder(root))
            except FileNotFoundError:
                _remove_empty_parents(root)
                return "nothing_there"
            except NotAFolder:
                return "left_in_place"
            try:
                was_there = remove_entry(attachments, name, allowance.go_on)
            except OSError as error:
                # Another server may be at the same folder, or a writer that was given up.
                if error.errno in _CONTESTED and attempt < ATTEMPTS_MAX:
                    continue
                raise
            attachments.sync()
        _remove_empty_parents(root)
        return "undone" if was_there else "nothing_there"
    raise AssertionError("the last attempt raises or returns")


@contextmanager
def _open_runs_folder(root: str) -> Iterator[RootedFolder]:
    """The folder of the folders of all runs."""
    with (
        RootedFolder.open_root(root) as workspace,
        workspace.enter(OPENCLAW) as openclaw,
        openclaw.enter(ATTACHMENTS) as attachments,
    ):
        yield attachments


@contextmanager
def _ensure_folders(root: str) -> Iterator[_Above]:
    """The same, made where it is missing, with those above it."""
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
    """Remove the folders above that are empty by now."""
    with suppress(OSError), RootedFolder.open_root(root) as workspace:
        with suppress(OSError), workspace.enter(OPENCLAW) as openclaw:
            openclaw.remove_empty(ATTACHMENTS)
            openclaw.sync()
        workspace.remove_empty(OPENCLAW)
        workspace.sync()


def _reason(error: OSError) -> str:
    if isinstance(error, NotAFolder):
        return _NO_FOLDER
    if isinstance(error, FileExistsError):
        return _TAKEN
    return error.strerror or type(error).__name__


def _do_nothing() -> None:
    pass
