"""A folder that is held by its descriptor."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infrastructure.outbound.files.rooted_folder import NotAFolder, RootedFolder


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """Nothing more can be opened, by root neither."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/", os.O_RDONLY)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("resting_databases")
def test_a_new_folder_that_cannot_be_opened_is_not_left(tmp_path: Path) -> None:
    with RootedFolder.open_root(str(tmp_path.resolve())) as folder:
        with no_more_descriptors(), pytest.raises(OSError, match="Too many open files"):
            with folder.made("new"):
                pass
    assert list(tmp_path.iterdir()) == []


def test_another_disk_is_not_entered_to_be_emptied() -> None:
    """Entered only: there is nothing in this that would change that disk."""
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
            with pytest.raises(NotAFolder), folder.enter("file"):
                pass
            folder.remove_empty("new")
        with pytest.raises(NotAFolder), RootedFolder.open_root(f"{root}/file/deeper"):
            pass
    again = os.dup(0)
    os.close(again)
    assert again == probe
