"""Only attachments are removed, even if a child changed them."""

import asyncio
import os

import pytest

from application.ports.files import AttachmentRemovalError, RemovalOutcome
from tests.support.builders.folders import (
    RUN,
    SECONDS,
    Ground,
    expected_contents,
)
from tests.support.faults.hostile_attachments import PLANTED

DEEPER_THAN_DESCRIPTORS = 1_500


async def test_removal_may_be_repeated(ground: Ground) -> None:
    before = ground.tree()
    await ground.write()
    done: list[RemovalOutcome] = ["undone", "nothing_there", "nothing_there"]
    assert [await ground.remove() for _ in done] == done
    assert ground.tree() == before


async def test_empty_folders_above_go_too(ground: Ground) -> None:
    before = ground.tree()
    for above in (None, ground.workspace / ".openclaw", ground.folder.parent):
        if above is not None:
            above.mkdir(parents=True)
        assert await ground.remove() == "nothing_there"
        assert ground.tree() == before
    missing = str(ground.workspace / "missing")
    assert await ground.files.remove(missing, RUN, timeout_seconds=SECONDS) == "nothing_there"


@pytest.mark.parametrize("title", PLANTED)
async def test_files_behind_a_link_are_left_in_place(ground: Ground, title: str) -> None:
    behind = ground.outside / "attachments" / str(RUN)
    behind.mkdir(parents=True)
    (behind / "kept").write_text("kept")
    (ground.outside / str(RUN)).mkdir()
    (ground.outside / str(RUN) / "kept").write_text("kept")
    PLANTED[title](ground.workspace, ground.outside)
    before, outer = ground.tree(), ground.outer_tree()
    assert await ground.remove() == "left_in_place"
    assert (ground.tree(), ground.outer_tree()) == (before, outer)


async def test_link_in_place_of_workspace_is_not_followed(ground: Ground) -> None:
    await ground.write()
    moved = ground.workspace.rename(ground.workspace.with_name("moved"))
    ground.workspace.symlink_to(moved)
    assert await ground.remove() == "left_in_place"
    assert {path.name for path in (moved / ground.folder.relative_to(ground.workspace)).iterdir()}


@pytest.mark.parametrize("kind", ["link to a folder", "link to a file", "file", "pipe"])
async def test_entry_in_place_of_folder_is_removed_itself(ground: Ground, kind: str) -> None:
    before, outer = ground.tree(), ground.outer_tree()
    ground.folder.parent.mkdir(parents=True)
    match kind:
        case "link to a folder":
            ground.folder.symlink_to(ground.outside)
        case "link to a file":
            ground.folder.symlink_to(ground.outside / "secret")
        case "file":
            ground.folder.write_text("x")
        case _:
            os.mkfifo(ground.folder)
    assert await ground.remove() == "undone"
    assert (ground.tree(), ground.outer_tree()) == (before, outer)


async def test_files_of_child_go_and_links_are_not_followed(ground: Ground) -> None:
    before, outer = ground.tree(), ground.outer_tree()
    await ground.write()
    tree = ground.folder / "tree" / "1" / "2"
    tree.mkdir(parents=True)
    (tree / "out").symlink_to(ground.outside)
    (ground.folder / "out").symlink_to(ground.outside / "secret")
    (ground.folder / "1").write_text("a file called as a folder is moved")
    os.link(ground.outside / "secret", tree / "hard")
    os.mkfifo(tree / "pipe")
    os.mkdir(os.fsencode(tree) + b"/\xff")
    (ground.folder / "manifest").mkdir()
    assert await ground.remove() == "undone"
    assert (ground.tree(), ground.outer_tree()) == (before, outer)


@pytest.mark.long
async def test_tree_deeper_than_descriptors_goes(ground: Ground) -> None:
    before = ground.tree()
    await ground.write()
    here = os.open(ground.folder, os.O_RDONLY)
    for _ in range(DEEPER_THAN_DESCRIPTORS):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert await ground.remove() == "undone"
    assert ground.tree() == before


async def test_closed_folders_go(ground: Ground) -> None:
    before = ground.tree()
    await ground.write()
    inner = ground.folder / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0)
    inner.parent.chmod(0o500)
    ground.folder.chmod(0)
    assert await ground.remove() == "undone"
    assert ground.tree() == before


async def test_slow_removal_is_told_and_repeated(ground: Ground) -> None:
    await ground.write()
    with pytest.raises(AttachmentRemovalError, match="longer than 0 seconds"):
        await ground.remove(timeout_seconds=0)
    assert ground.contents() == expected_contents()
    assert await ground.remove() == "undone"


@pytest.mark.long
async def test_two_servers_may_remove_the_same(ground: Ground) -> None:
    before = ground.tree()
    for _ in range(20):
        await ground.write()
        answers = await asyncio.gather(*(ground.remove() for _ in range(4)))
        assert "undone" in answers
        assert set(answers) <= {"undone", "nothing_there"}
        assert ground.tree() == before


async def test_write_after_removal_leaves_nothing(ground: Ground) -> None:
    """A server that lost its claim is slow, and another one has already undone the step."""
    before = ground.tree()

    def during() -> None:
        asyncio.run(ground.remove())

    with pytest.raises(Exception, match="No such file"):
        await ground.write(during=during)
    assert ground.tree() == before
