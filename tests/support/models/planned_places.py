"""Model of the folders that children work in, and the same on disk.

Names are relative to one folder. `places/a` changes between three states: `there`, `gone`, and
`moved`, with a link to `elsewhere`.
"""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.support.models import plan_words as words

THERE = ("places", "places/a", "places/a/deep", "places/b", "elsewhere", "elsewhere/deep")
SHAKEN = "places/a"
FILE = "places/file"
STATES = ("there", "gone", "moved")
MISSING, NO_FOLDER = "No such file or directory", "Not a directory"
NAMED = (
    "places/a",
    "places/a/deep",
    "places/b",
    "link/deep",
    "elsewhere/deep",
    "places/b/../../elsewhere",
    "places/none",
    "places-b",
    FILE,
    f"{words.WORKSPACES}/main",
    f"{words.WORKSPACES}/worker",
)


"""Folders that a request may name."""


Folder = tuple[str, None] | tuple[None, str]


"""Folder with every link resolved, or the text of a refusal."""


class Places:
    """Model of the folders."""

    def __init__(self) -> None:
        self.state = "there"
        self._folders = set(THERE)

    def put(self, state: str) -> None:
        """Move `places/a`."""
        self.state = state
        kept = {name for name in self._folders if not _is_in(name, SHAKEN)}
        self._folders = kept | {SHAKEN, f"{SHAKEN}/deep"} if state == "there" else kept

    def own(self, agent: str, written: str) -> Folder:
        """Return an agent's own folder, which is created if it is missing."""
        if written == FILE:
            return None, words.cannot_be_made(agent, NO_FOLDER)
        folder = self._real(written)
        parts = folder.split("/")
        self._folders |= {"/".join(parts[: end + 1]) for end in range(len(parts))}
        return folder, None

    def recorded(self, recorded: str) -> Folder:
        """Return the recorded folder of a requester."""
        if self._real(recorded) != recorded:
            return None, words.LEADS_ELSEWHERE
        if recorded not in self._folders:
            return None, words.cannot_be_inherited(MISSING)
        return recorded, None

    def named(self, named: str, recorded: str | None, roots: Iterable[str]) -> Folder:
        """Return the folder that a request names; it must be inside the recorded one, if any."""
        if recorded is not None:
            if self._real(recorded) != recorded:
                return None, words.LEADS_ELSEWHERE
            if recorded not in self._folders:
                return None, words.cannot_be_named(MISSING)
        folder = self._real(named)
        within = roots if recorded is None else [recorded]
        if not any(_is_in(folder, self._real(root)) for root in within):
            return None, words.BELOW_NO_ROOT if recorded is None else words.NOT_IN_RECORDED
        if folder in self._folders:
            return folder, None
        return None, words.cannot_be_named(NO_FOLDER if folder == FILE else MISSING)

    def _real(self, name: str) -> str:
        name = {"places/b/../../elsewhere": "elsewhere"}.get(name, name)
        name = _in_place_of("link", SHAKEN, name)
        return _in_place_of(SHAKEN, "elsewhere", name) if self.state == "moved" else name


def _is_in(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder}/")


def _in_place_of(link: str, target: str, name: str) -> str:
    return target + name.removeprefix(link) if _is_in(name, link) else name


class PlacesOnDisk:
    """The same on disk, in a folder of its own."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="spawnlog-")).resolve()
        for name in (*THERE, "places-b"):
            (self.home / name).mkdir()
        (self.home / FILE).touch()
        (self.home / "link").symlink_to(SHAKEN)

    def put(self, state: str) -> None:
        """Move `places/a`."""
        shaken = self.home / SHAKEN
        if shaken.is_symlink():
            shaken.unlink()
        elif shaken.exists():
            shutil.rmtree(shaken)
        if state == "there":
            (shaken / "deep").mkdir(parents=True)
        elif state == "moved":
            shaken.symlink_to(self.home / "elsewhere")

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.home)
