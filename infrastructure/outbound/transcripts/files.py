"""Files of transcripts, a folder for each agent. Whatever link is planted there, and whenever, none
is followed: a folder is held while something is done in it, and what was planted is refused.

All functions block and raise `OSError`, whose `strerror` says what is in the way.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from infrastructure.outbound.files.regular_file import NotAFile
from infrastructure.outbound.files.rooted_folder import FILE_MODE, NotAFolder, RootedFolder

PART = ".part"
ARCHIVED_MARK = ".deleted."


class TranscriptFolders:
    """The folders below `path`, which is absolute. Where its parent is, links on the way included,
    is found once: the data directory may have been named by a link."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parent = os.path.realpath(path.parent)

    @contextmanager
    def enter(self, agent_id: str) -> Iterator[RootedFolder]:
        """The folder of an agent."""
        with ExitStack() as held:
            with self._translate_errors(agent_id):
                root = self._parent_of_all(held)
                root = held.enter_context(root.enter(self.path.name))
                folder = held.enter_context(root.enter(agent_id))
            yield folder

    @contextmanager
    def enter_or_make(self, agent_id: str) -> Iterator[RootedFolder]:
        """The same, made when it is not there."""
        with ExitStack() as held:
            with self._translate_errors(agent_id):
                root = self._parent_of_all(held)
                root = held.enter_context(root.enter_or_make(self.path.name))
                folder = held.enter_context(root.enter_or_make(agent_id))
            yield folder

    def must_be_in_place(self, agent_id: str, folder: RootedFolder) -> None:
        """Somebody may have moved the folder since it was entered."""
        with self.enter(agent_id) as found:
            if found.identity == folder.identity:
                return
        text = f"the folder {self.path.name}/{agent_id} was replaced while it was written"
        raise NotAFolder(errno.ENOTDIR, text)

    def _parent_of_all(self, held: ExitStack) -> RootedFolder:
        return held.enter_context(RootedFolder.open_to_pass(self._parent))

    @contextmanager
    def _translate_errors(self, agent_id: str) -> Iterator[None]:
        try:
            yield
        except NotAFolder:
            place = f"{self.path.name}, {self.path.name}/{agent_id} or a folder above it"
            text = f"a link or a file is in the place of {place}"
            raise NotAFolder(errno.ENOTDIR, text) from None


def has_content(folders: TranscriptFolders, agent_id: str, name: str, content: bytes) -> bool:
    """Whether a file is there, private, and has just this content."""
    try:
        with folders.enter(agent_id) as folder, folder.read(name) as file:
            state = os.fstat(file.fileno())
            is_private = stat.S_IMODE(state.st_mode) == FILE_MODE
            return is_private and file.read(len(content) + 1) == content
    except (FileNotFoundError, PermissionError, NotAFile):
        return False


def drop_file(folders: TranscriptFolders, agent_id: str, name: str) -> bool:
    """Remove a file, and what was left of attempts to write it; whether it was there."""
    try:
        with folders.enter(agent_id) as folder:
            for part in folder.names():
                if part.startswith(f"{name}.") and part.endswith(PART):
                    with suppress(FileNotFoundError):
                        folder.unlink(part)
            folder.unlink(name)
    except FileNotFoundError:
        return False
    return True


def archive_file(folders: TranscriptFolders, path: str, stamp: str) -> str:
    """Rename the file that a path on record ends in, `<agent id>/<name>`, to `<name>.deleted.
    <stamp>`; gives the new path. What was put away before keeps its name."""
    agent_id, name = _ends_of(path)
    called = f"{name}{ARCHIVED_MARK}{stamp}"
    try:
        with folders.enter(agent_id) as folder:
            try:
                folder.rename(name, called)
            except FileNotFoundError:
                earlier = [
                    one for one in folder.names() if one.startswith(f"{name}{ARCHIVED_MARK}")
                ]
                called = min(earlier, default=called)
    except FileNotFoundError:
        pass
    return str(folders.path / agent_id / called)


def restore_file(folders: TranscriptFolders, path: str) -> None:
    """Rename the file that was put away to `path` as it was called before, if it is there."""
    agent_id, called = _ends_of(path)
    name, was_put_away, _ = called.partition(ARCHIVED_MARK)
    if was_put_away:
        with suppress(FileNotFoundError), folders.enter(agent_id) as folder:
            folder.rename(called, name)


def _ends_of(path: str) -> tuple[str, str]:
    agent_id, name = Path(path).parts[-2:] if len(Path(path).parts) > 2 else ("", "")
    if {agent_id, name} & {"", "..", "/"} or "\0" in path:
        raise OSError(errno.EINVAL, "that is the path of no file of a transcript")
    return agent_id, name
