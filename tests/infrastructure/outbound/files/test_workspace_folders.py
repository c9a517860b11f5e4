"""Folders held by descriptors, and an agent's folder: private, and gone only while empty."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infrastructure.outbound.files.rooted_folder import NotAFolderError, RootedFolder
from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders

FOLDERS = LocalWorkspaceFolders()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


async def test_missing_part_of_a_path_is_found(root: Path) -> None:
    (root / "a").mkdir()
    assert await FOLDERS.missing(str(root / "a" / "b" / "c")) == (str(root / "a"), "b/c")
    assert await FOLDERS.missing(str(root / "a")) is None
    (root / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        await FOLDERS.missing(str(root / "file" / "b"))


async def test_made_folders_are_private_under_any_mask(root: Path) -> None:
    before = os.umask(0)
    try:
        assert await FOLDERS.make(str(root), "a/b") is True
        assert await FOLDERS.make(str(root), "a/b") is False
        assert await FOLDERS.make(str(root), "a/b/c") is True
    finally:
        os.umask(before)
    assert [os.stat(item).st_mode & 0o777 for item in (root / "a", root / "a/b")] == [0o700] * 2


async def test_no_link_is_followed(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "a").symlink_to(root / "elsewhere")
    with pytest.raises(OSError, match="Not a directory"):
        await FOLDERS.make(str(root), "a/b")
    assert await FOLDERS.remove_if_empty(str(root), "a/b") == "left_in_place"
    assert list((root / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("kept", ["a/kept", "a/b/kept", "a/b/c/kept"])
async def test_folder_in_use_stays(root: Path, kept: str) -> None:
    await FOLDERS.make(str(root), "a/b/c")
    (root / kept).write_text("by somebody")
    assert await FOLDERS.remove_if_empty(str(root), "a/b/c") == "left_in_place"
    found = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    assert found == [kept]


@pytest.mark.parametrize("made", ["a", "a/b"])
async def test_empty_folders_go(root: Path, made: str) -> None:
    await FOLDERS.make(str(root), made)
    assert await FOLDERS.remove_if_empty(str(root), "a/b") == "undone"
    assert not (root / "a").exists()
    assert await FOLDERS.remove_if_empty(str(root), "a/b") == "nothing_there"
    assert await FOLDERS.remove_if_empty(str(root / "gone"), "a") == "nothing_there"


async def test_folder_is_still_there_unless_behind_link(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "link").symlink_to(root / "a")
    (root / "file").write_text("")
    assert await FOLDERS.is_still(str(root / "a" / "b")) is True
    for text in ("link", "link/b", "file", "file/b", "gone", "a/../a", "a/", "a//b", "a/.", "a\0"):
        assert await FOLDERS.is_still(f"{root}/{text}") is False, text
    for path in ("", ".", "a", f"/{root}"):
        assert await FOLDERS.is_still(path) is False, path
    assert await FOLDERS.is_still("/") is True


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """Prevent any further open file, also for root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/", os.O_RDONLY)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("resting_databases")
def test_folder_that_cannot_be_opened_is_not_left(tmp_path: Path) -> None:
    with RootedFolder.open_root(str(tmp_path.resolve())) as folder:
        with no_more_descriptors(), pytest.raises(OSError, match="Too many open files"):
            with folder.made("new"):
                pass
    assert list(tmp_path.iterdir()) == []


def test_another_disk_is_not_entered_to_be_emptied() -> None:
    """The test only enters that disk; it cannot change it."""
    assert os.path.ismount("/dev/shm"), "this test needs another disk, and knows of no other"
    with RootedFolder.open_root("/dev") as folder, pytest.raises(OSError, match="cross-device"):
        with folder.enter_to_empty("shm"):
            pass


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    (tmp_path / "file").touch()
    probe = os.dup(0)
    os.close(probe)
    for _ in range(3):
        with RootedFolder.open_root(root) as folder, folder.made("new") as new:
            new.write_new("x", b"")
            with pytest.raises(FileExistsError):
                new.write_new("x", b"")
            new.unlink("x")
            with pytest.raises(NotAFolderError), folder.enter("file"):
                pass
            folder.remove_empty("new")
        with pytest.raises(NotAFolderError), RootedFolder.open_root(f"{root}/file/deeper"):
            pass
    again = os.dup(0)
    os.close(again)
    assert again == probe
