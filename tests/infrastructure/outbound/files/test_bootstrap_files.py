"""Bootstrap files of a workspace: any contents, and other entries in their place."""

import asyncio
import os
import socket
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from application.ports.files import ReadFile
from infrastructure.outbound.files.bootstrap_files import DiskBootstrapFiles, read_files
from tests.support.servers.ordinary_user import Becoming
from tests.support.servers.process_table import open_descriptors

CHARS_MAX = 20_000
HUGE_BYTES = 100 * 1024 * 1024
NUL = "it contains NUL, so it is not text"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Return a folder that any user may enter: those of pytest are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="spawnlog-bootstrap-") as place:
        yield Path(os.path.realpath(place))


def read(folder: Path, chars_max: int = CHARS_MAX) -> tuple[ReadFile, ...]:
    return read_files(str(folder), chars_max)


def skipped(folder: Path) -> str:
    (file,) = read(folder)
    assert (file.name, file.text) == ("AGENTS.md", "")
    assert file.skipped is not None
    return file.skipped


async def test_two_files_are_read_in_order(workspace: Path) -> None:
    assert read(workspace) == read(workspace / "none") == ()
    for name in ("TOOLS.md", "AGENTS.md", "SOUL.md", "IDENTITY.md", "MEMORY.md", "agents.md.bak"):
        (workspace / name).write_text(f"of {name}")
    reading = asyncio.create_task(DiskBootstrapFiles().read(str(workspace), CHARS_MAX))
    await asyncio.sleep(0)
    assert not reading.done(), "the event loop continues meanwhile"
    assert await reading == (
        ReadFile(name="AGENTS.md", text="of AGENTS.md"),
        ReadFile(name="TOOLS.md", text="of TOOLS.md"),
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfeA\x00", NUL),  # UTF-16
        (b"caf\xe9", "it is not UTF-8"),  # Latin-1
        (b"half a pair \xed\xa0\x80", "it is not UTF-8"),
        (b"overlong \xc0\xaf", "it is not UTF-8"),
        (b"beyond \xf4\x90\x80\x80", "it is not UTF-8"),
        (b"cut in two \xf0\x9f\x9a", "it is not UTF-8"),
        (b"Be kind.\0", NUL),
    ],
)
def test_content_that_is_no_text_is_skipped(workspace: Path, content: bytes, why: str) -> None:
    (workspace / "AGENTS.md").write_bytes(content)
    assert skipped(workspace) == why


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("\ufeff# Rules\ufeff", "# Rules\ufeff"),
        ("\ufeff", ""),
        ("a\r\nb\rc\n\n\x1b[31m\u202e## Rules\n", "a\r\nb\rc\n\n\x1b[31m\u202e## Rules\n"),
    ],
)
def test_text_stays_but_for_byte_order_mark(workspace: Path, content: str, text: str) -> None:
    (workspace / "AGENTS.md").write_bytes(content.encode())
    assert read(workspace) == (ReadFile(name="AGENTS.md", text=text),)


@pytest.mark.parametrize("sign", ["a", "é", "語", "\U0001f6a4"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_long_file_is_not_read_to_its_end(workspace: Path, sign: str, mark: str) -> None:
    for length in (9, 10, 11, 12, 500):
        (workspace / "AGENTS.md").write_bytes((mark + sign * length).encode())
        (file,) = read(workspace, 10)
        assert file.skipped is None
        assert set(file.text) == {sign}
        assert min(length, 11) <= len(file.text) <= min(length, 52)


def test_only_start_of_huge_file_is_read(workspace: Path) -> None:
    place = workspace / "AGENTS.md"
    place.write_text("x" * 100_000)
    with place.open("r+b") as file:
        file.truncate(HUGE_BYTES)  # holes: it takes no room and reads as NUL
    tracemalloc.start()
    try:
        (found,) = read(workspace)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.skipped is None
    assert CHARS_MAX < len(found.text) <= 4 * (CHARS_MAX + 2) + 3
    assert peak < 2 * 1024 * 1024


def test_folder_need_not_be_listable(reachable: Path, becoming_ordinary: Becoming) -> None:
    folder = reachable / "folder"
    folder.mkdir()
    (folder / "TOOLS.md").write_text("Saw.")
    with becoming_ordinary(reachable, folder, folder / "TOOLS.md"):
        folder.chmod(0o100)
        reachable.chmod(0o100)
        assert [file.text for file in read(folder)] == ["Saw."]
        reachable.chmod(0o700)
        folder.chmod(0o700)


def test_unreadable_file_is_skipped(reachable: Path, becoming_ordinary: Becoming) -> None:
    (reachable / "AGENTS.md").write_text("secret")
    (reachable / "AGENTS.md").chmod(0o000)
    with becoming_ordinary(reachable, reachable / "AGENTS.md"):
        assert skipped(reachable) == "it cannot be read (Permission denied)"


def test_closed_folder_is_reported_for_both_files(
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
def test_link_is_not_followed(workspace: Path, plant: Callable[[Path], None]) -> None:
    plant(workspace / "AGENTS.md")
    assert skipped(workspace) == "it is a symbolic link"


def test_link_to_folder_is_not_followed(workspace: Path) -> None:
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
def test_path_without_folder_is_reported(folder: str) -> None:
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


def _device(place: Path) -> None:
    try:
        os.mknod(place, 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices, and not in this container")


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, _socket, _device])
@pytest.mark.timeout(20)
def test_place_without_regular_file_is_skipped(
    workspace: Path, plant: Callable[[Path], None]
) -> None:
    plant(workspace / "AGENTS.md")
    assert skipped(workspace) == "it is not a regular file"


def test_link_planted_while_reading_is_not_followed(workspace: Path) -> None:
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


def test_no_descriptor_is_left_open(workspace: Path) -> None:
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
