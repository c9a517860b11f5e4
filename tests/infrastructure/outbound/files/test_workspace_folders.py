"""An agent's folder is made private, one component after the other, and goes only while empty."""

import os
from pathlib import Path

import pytest

from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders

FOLDERS = LocalWorkspaceFolders()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


async def test_what_is_there_of_a_path_is_told_from_what_is_not(root: Path) -> None:
    (root / "a").mkdir()
    assert await FOLDERS.missing(str(root / "a" / "b" / "c")) == (str(root / "a"), "b/c")
    assert await FOLDERS.missing(str(root / "a")) is None


async def test_a_path_through_a_file_cannot_be_made(root: Path) -> None:
    (root / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        await FOLDERS.missing(str(root / "file" / "b"))


async def test_every_folder_that_is_made_is_private_whatever_the_process_masks(root: Path) -> None:
    before = os.umask(0)
    try:
        assert await FOLDERS.make(str(root), "a/b") is True
    finally:
        os.umask(before)
    assert [os.stat(one).st_mode & 0o777 for one in (root / "a", root / "a/b")] == [0o700] * 2


async def test_what_was_there_already_was_not_made(root: Path) -> None:
    assert await FOLDERS.make(str(root), "a/b") is True
    assert await FOLDERS.make(str(root), "a/b") is False
    assert await FOLDERS.make(str(root), "a/b/c") is True


async def test_no_link_is_followed_wherever_it_was_put(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "a").symlink_to(root / "elsewhere")
    with pytest.raises(OSError, match="Not a directory"):
        await FOLDERS.make(str(root), "a/b")
    assert await FOLDERS.remove_if_empty(str(root), "a/b") == "left_in_place"
    assert list((root / "elsewhere").iterdir()) == []


async def test_empty_folders_go_and_what_others_use_stays(root: Path) -> None:
    await FOLDERS.make(str(root), "a/b/c")
    (root / "a" / "kept").write_text("by somebody")
    assert await FOLDERS.remove_if_empty(str(root), "a/b/c") == "left_in_place"
    assert [one.name for one in (root / "a").iterdir()] == ["kept"]


async def test_nothing_is_removed_while_something_is_in_it(root: Path) -> None:
    await FOLDERS.make(str(root), "a/b")
    (root / "a" / "b" / "file").write_text("by the child")
    assert await FOLDERS.remove_if_empty(str(root), "a/b") == "left_in_place"
    assert (root / "a" / "b" / "file").exists()


async def test_removing_twice_is_as_good_as_once(root: Path) -> None:
    await FOLDERS.make(str(root), "a/b")
    assert await FOLDERS.remove_if_empty(str(root), "a/b") == "undone"
    assert await FOLDERS.remove_if_empty(str(root), "a/b") == "nothing_there"
    assert await FOLDERS.remove_if_empty(str(root / "gone"), "a") == "nothing_there"


async def test_what_was_made_half_is_removed(root: Path) -> None:
    await FOLDERS.make(str(root), "a")
    assert await FOLDERS.remove_if_empty(str(root), "a/b") == "undone"
    assert not (root / "a").exists()


async def test_a_folder_is_still_there_unless_a_link_leads_to_it(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "link").symlink_to(root / "a")
    (root / "file").write_text("")
    assert await FOLDERS.is_still(str(root / "a" / "b")) is True
    for one in ("link", "link/b", "file", "file/b", "gone", "a/../a", "a/", "a//b", "a/.", "a\0"):
        assert await FOLDERS.is_still(f"{root}/{one}") is False, one
    for path in ("", ".", "a", f"/{root}"):
        assert await FOLDERS.is_still(path) is False, path
    assert await FOLDERS.is_still("/") is True
