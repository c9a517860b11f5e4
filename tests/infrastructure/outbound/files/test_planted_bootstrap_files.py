"""Places of a workspace in which something else than a readable file stands."""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from application.ports.files import ReadFile
from infrastructure.outbound.files.bootstrap_files import read_files
from tests.support.servers.ordinary_user import Becoming
from tests.support.servers.process_table import open_descriptors

CHARS_MAX = 20_000


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that any user gets to: those of pytest are closed to all but who runs it."""
    with tempfile.TemporaryDirectory(prefix="spawnlog-bootstrap-") as place:
        yield Path(os.path.realpath(place))


def read(folder: Path, chars_max: int = CHARS_MAX) -> tuple[ReadFile, ...]:
    return read_files(str(folder), chars_max)


def skipped(folder: Path) -> str:
    (file,) = read(folder)
    assert file.name == "AGENTS.md"
    assert file.text == ""
    assert file.skipped is not None
    return file.skipped


def test_an_ordinary_user_reads_them_too(reachable: Path, becoming_ordinary: Becoming) -> None:
    (reachable / "AGENTS.md").write_text("Be kind.")
    with becoming_ordinary(reachable, reachable / "AGENTS.md"):
        assert [file.text for file in read(reachable)] == ["Be kind."]


def test_a_folder_that_may_be_passed_and_not_listed_is_enough(
    reachable: Path, becoming_ordinary: Becoming
) -> None:
    folder = reachable / "folder"
    folder.mkdir()
    (folder / "TOOLS.md").write_text("Saw.")
    with becoming_ordinary(reachable, folder, folder / "TOOLS.md"):
        folder.chmod(0o100)
        reachable.chmod(0o100)
        assert [file.text for file in read(folder)] == ["Saw."]
        reachable.chmod(0o700)
        folder.chmod(0o700)


def test_a_file_that_may_not_be_read_is_left_out(
    reachable: Path, becoming_ordinary: Becoming
) -> None:
    (reachable / "AGENTS.md").write_text("secret")
    (reachable / "AGENTS.md").chmod(0o000)
    with becoming_ordinary(reachable, reachable / "AGENTS.md"):
        assert skipped(reachable) == "it cannot be read (Permission denied)"


def test_a_folder_that_may_not_be_entered_is_told_of_for_both(
    reachable: Path, becoming_ordinary: Becoming
) -> None:
    folder = reachable / "closed" / "folder"
    folder.mkdir(parents=True)
    with becoming_ordinary(reachable, folder.parent, folder):
        folder.parent.chmod(0o000)
        found = read(folder)
        folder.parent.chmod(0o700)
    assert [file.name for file in found] == ["AGENTS.md", "TOOLS.md"]
    assert {file.skipped for file in found} == {"its folder cannot be opened (Permission denied)"}


def _link_out(place: Path) -> None:
    outside = place.parent.parent / "outside"
    outside.write_text("canary of the outside")
    place.symlink_to(outside)


def _link_in(place: Path) -> None:
    (place.parent / "other").write_text("of the workspace itself")
    place.symlink_to("other")


def _dangling(place: Path) -> None:
    place.symlink_to("nothing")


def _loop(place: Path) -> None:
    place.symlink_to(place.name)


@pytest.mark.parametrize("plant", [_link_out, _link_in, _dangling, _loop])
def test_no_link_is_followed(workspace: Path, plant: Callable[[Path], None]) -> None:
    plant(workspace / "AGENTS.md")
    assert skipped(workspace) == "it is a symbolic link"


def test_a_link_in_the_place_of_the_folder_or_above_it_is_not_followed(workspace: Path) -> None:
    elsewhere = workspace.parent / "elsewhere"
    (elsewhere / "sub").mkdir(parents=True)
    (elsewhere / "sub" / "AGENTS.md").write_text("canary of elsewhere")
    (workspace / "sub").symlink_to(elsewhere / "sub")
    (workspace / "above").symlink_to(elsewhere)
    for folder in (workspace / "sub", workspace / "above" / "sub"):
        assert {file.skipped for file in read(folder)} == {
            "its folder cannot be opened (Not a directory)"
        }


@pytest.mark.parametrize("folder", ["", "relative", "/a\0b", "/etc/../etc", "/etc/passwd"])
def test_what_is_no_folder_is_told_of(folder: str) -> None:
    found = read_files(folder, CHARS_MAX)
    assert len(found) == 2
    assert all((file.skipped or "").startswith("its folder cannot be opened (") for file in found)


def _socket(place: Path) -> None:
    here = Path.cwd()
    os.chdir(place.parent)  # the path of a socket has to be short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(place.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, _socket])
@pytest.mark.timeout(20)
def test_what_is_no_file_is_left_out_and_not_waited_for(
    workspace: Path, plant: Callable[[Path], None]
) -> None:
    plant(workspace / "AGENTS.md")
    assert skipped(workspace) == "it is no regular file"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_left_out(workspace: Path) -> None:
    try:
        os.mknod(workspace / "AGENTS.md", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices cannot be made in this container")
    assert skipped(workspace) == "it is no regular file"


def test_a_link_planted_again_and_again_while_it_is_read_is_never_followed(
    workspace: Path,
) -> None:
    outside, place = workspace.parent / "outside", workspace / "AGENTS.md"
    outside.write_text("canary of the outside")
    honest, spare = workspace / "honest", workspace / "spare"
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            honest.write_text("ours")
            honest.replace(place)
            spare.symlink_to(outside)
            spare.replace(place)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[tuple[str, str | None]] = set()
    until = time.monotonic() + 20
    try:
        for _ in range(2_000):
            seen.update((file.text, file.skipped) for file in read(workspace))
        while len(seen) < 2 and time.monotonic() < until:
            seen.update((file.text, file.skipped) for file in read(workspace))
    finally:
        over.set()
        swapping.join()
    assert seen == {("ours", None), ("", "it is a symbolic link")}


def test_no_descriptor_is_left_open_whatever_is_there(workspace: Path) -> None:
    folders = [workspace / str(number) for number in range(4)]
    for folder in folders[:3]:
        folder.mkdir()
    (folders[0] / "AGENTS.md").write_text("x")
    os.mkfifo(folders[0] / "TOOLS.md")
    (folders[1] / "AGENTS.md").write_bytes(b"\xff")
    _loop(folders[1] / "TOOLS.md")
    before = open_descriptors()
    for folder in (*folders, folders[0] / "AGENTS.md", Path("relative")):
        read(folder)
    assert open_descriptors() == before
