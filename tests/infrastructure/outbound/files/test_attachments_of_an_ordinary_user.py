"""Attachments in closed folders, written as an ordinary user, because root may do everything."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from application.ports.files import AttachmentRemovalError, AttachmentWriteError
from tests.support.builders.folders import Ground, expected_contents, ground_in
from tests.support.servers.ordinary_user import Becoming


@pytest.fixture
def ground(becoming_ordinary: Becoming) -> Iterator[Ground]:
    """Yield a ground in a separate folder, because other users cannot enter pytest's."""
    with tempfile.TemporaryDirectory() as folder, becoming_ordinary(Path(folder)):
        assert os.geteuid() != 0
        yield ground_in(Path(folder))


@pytest.fixture(params=[0o022, 0o777], ids=oct)
def mask(request: pytest.FixtureRequest, ground: Ground) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("mask")
async def test_files_are_private_and_go_again(ground: Ground) -> None:
    before = ground.tree()
    await ground.write()
    assert ground.contents() == expected_contents()
    assert ground.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in ground.folder.iterdir()} == {0o600}
    assert await ground.remove() == "undone"
    assert ground.tree() == before


async def test_closed_workspace_is_told_and_left(ground: Ground) -> None:
    ground.workspace.chmod(0o500)
    before = ground.tree()
    with pytest.raises(AttachmentWriteError, match=r"^Permission denied$"):
        await ground.write()
    assert ground.tree() == before


async def test_workspace_below_unreadable_folder_is_reached(ground: Ground) -> None:
    if not hasattr(os, "O_PATH"):
        pytest.skip("this system opens no folder without reading it")
    ground.workspace.parent.chmod(0o100)
    try:
        await ground.write()
        assert await ground.remove() == "undone"
    finally:
        ground.workspace.parent.chmod(0o700)


async def test_folders_closed_by_child_are_removed(ground: Ground) -> None:
    before = ground.tree()
    await ground.write()
    inner = ground.folder / "closed" / "inner" / "most"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    for folder in (inner, inner.parent, inner.parent.parent, ground.folder):
        folder.chmod(0o000)
    assert await ground.remove() == "undone"
    assert ground.tree() == before


async def test_failed_removal_is_told_and_repeated(ground: Ground) -> None:
    before = ground.tree()
    await ground.write()
    ground.folder.parent.chmod(0o500)
    with pytest.raises(AttachmentRemovalError, match=r"^Permission denied$"):
        await ground.remove()
    ground.folder.parent.chmod(0o700)
    assert await ground.remove() == "undone"
    assert ground.tree() == before
