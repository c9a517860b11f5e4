"""A transcript file exists whole or not at all, whatever happens to its folder meanwhile."""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infrastructure.outbound.files.rooted_folder import RootedFolder
from infrastructure.outbound.transcripts.files import (
    KnownFile,
    PartFile,
    TranscriptFolders,
    atomic_file,
    atomic_file_async,
    drop_file,
    drop_parts_of_the_dead,
    has_content,
    is_in_place,
    write_known_files,
)
from tests.support.builders.folders import tree_of
from tests.support.servers.ordinary_user import Becoming
from tests.support.servers.process_table import open_descriptors


@pytest.fixture
def folders(tmp_path: Path) -> TranscriptFolders:
    return TranscriptFolders(tmp_path / "transcripts")


def write(folders: TranscriptFolders, content: bytes = b"whole\n") -> None:
    with atomic_file(folders, "main", "x.jsonl") as file:
        file.write(content)


def interrupted(folders: TranscriptFolders, act: Callable[[], object]) -> None:
    """Act between the writing of a file and its end."""
    with atomic_file(folders, "main", "x.jsonl") as file:
        file.write(b"half")
        act()


def held_below(folder: Path) -> set[str]:
    """Return the descriptors of this process below the folder; others come and go."""
    return {item for item in open_descriptors() if str(folder) in item}


def test_failed_file_leaves_nothing(folders: TranscriptFolders, tmp_path: Path) -> None:
    write(folders)
    before, descriptors = tree_of(tmp_path), held_below(tmp_path)
    with pytest.raises(ZeroDivisionError):
        interrupted(folders, lambda: 1 / 0)
    assert tree_of(tmp_path) == before
    assert held_below(tmp_path) == descriptors
    file = PartFile(folders, "main", "x.jsonl")
    file.give_up()
    with pytest.raises(OSError, match="abandoned"):
        file.write(b"more")
    with pytest.raises(OSError, match="abandoned"):
        file.begin()


def put_in_place(folders: TranscriptFolders, name: str) -> bool:
    """Rename the file, if it is there, to the name of an archived one."""
    with folders.enter("main") as folder:
        return is_in_place(folder, name, len(b"whole\n"))


class ReplacedMeanwhile(TranscriptFolders):
    """Another server that ends the same run writes its file right after this one's."""

    other_bytes = b""

    def require_in_place(self, agent_id: str, folder: RootedFolder) -> None:
        super().require_in_place(agent_id, folder)
        with atomic_file(TranscriptFolders(self.path), agent_id, "x.jsonl") as file:
            file.write(self.other_bytes)


def test_equal_file_of_another_server_is_as_good(tmp_path: Path) -> None:
    folders = ReplacedMeanwhile(tmp_path / "transcripts")
    folders.other_bytes = b"whole\n"
    write(folders)
    assert (tmp_path / "transcripts" / "main" / "x.jsonl").read_bytes() == b"whole\n"


def test_file_of_another_server_is_not_removed(tmp_path: Path) -> None:
    folders = ReplacedMeanwhile(tmp_path / "transcripts")
    folders.other_bytes = b"whole\nand more\n"
    with pytest.raises(OSError, match="another file has taken the place"):
        write(folders)
    place = tmp_path / "transcripts" / "main"
    assert [path.name for path in place.iterdir()] == ["x.jsonl"]
    assert (place / "x.jsonl").read_bytes() == folders.other_bytes


class MovedMeanwhile(TranscriptFolders):
    """Another process moves the agent's folder while files are written into it."""

    def require_in_place(self, agent_id: str, folder: RootedFolder) -> None:
        (self.path / agent_id).rename(self.path.parent / "moved")
        super().require_in_place(agent_id, folder)


def test_each_of_several_files_is_whole_or_absent(
    folders: TranscriptFolders, tmp_path: Path
) -> None:
    place = tmp_path / "transcripts" / "main"
    place.mkdir(parents=True)
    (place / f"b.jsonl.{os.getpid()}.part").write_bytes(b"of an attempt that failed")
    (place / "c.jsonl").mkdir()
    files = [KnownFile(f"{name}.jsonl", 3, b"ok\n") for name in "abc"]
    in_way, unknown = files.pop(), KnownFile("d.jsonl", 3, None)
    *written, failure, is_there = write_known_files(folders, "main", [*files, in_way, unknown])
    assert (written, is_there) == ([True, True], False)
    assert isinstance(failure, IsADirectoryError)
    assert sorted(path.name for path in place.iterdir()) == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert (place / "b.jsonl").read_bytes() == b"ok\n"


def test_parts_of_the_dead_go(folders: TranscriptFolders, tmp_path: Path) -> None:
    place = tmp_path / "transcripts" / "main"
    place.mkdir(parents=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    archived = "x.jsonl.deleted.2026-03-01T09-00-00-000000Z"
    left = [f"{name}.{gone.pid}.part" for name in ("x.jsonl", archived)]
    kept = [f"x.jsonl.{os.getpid()}.part", f"y.jsonl.{gone.pid}.part", "x.jsonl.no.part", archived]
    for name in (*left, *kept):
        (place / name).write_bytes(b"half")
    drop_parts_of_the_dead(folders, str(place / archived))
    assert sorted(path.name for path in place.iterdir()) == sorted(kept)


def test_folder_moved_under_several_files_keeps_nothing(tmp_path: Path) -> None:
    folders = MovedMeanwhile(tmp_path / "transcripts")
    descriptors = held_below(tmp_path)
    files = [KnownFile(f"{name}.jsonl", 3, b"ok\n") for name in "ab"]
    failures = write_known_files(folders, "main", files)
    assert [isinstance(failure, OSError) for failure in failures] == [True, True]
    assert list((tmp_path / "moved").iterdir()) == []
    assert held_below(tmp_path) == descriptors


@pytest.mark.parametrize("put", ["nothing", "folder", "link"])
def test_moved_folder_keeps_nothing(folders: TranscriptFolders, tmp_path: Path, put: str) -> None:
    place, moved = tmp_path / "transcripts" / "main", tmp_path / "moved"
    descriptors = held_below(tmp_path)

    def move() -> None:
        place.rename(moved)
        if put == "folder":
            place.mkdir()
        elif put == "link":
            place.symlink_to(moved)

    with pytest.raises(OSError, match=r"No such file|was replaced|is a link or a file"):
        interrupted(folders, move)
    assert list(moved.iterdir()) == []
    assert held_below(tmp_path) == descriptors


def test_part_replaced_by_link_becomes_no_transcript(
    folders: TranscriptFolders, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")

    def plant() -> None:
        (part,) = (tmp_path / "transcripts" / "main").iterdir()
        part.unlink()
        part.symlink_to(outside)

    with pytest.raises(OSError, match="another file has taken the place"):
        interrupted(folders, plant)
    assert outside.read_text() == "mine"
    assert list((tmp_path / "transcripts" / "main").iterdir()) == []


class Slow(PartFile):
    """Writes no sooner than it may."""

    def __init__(self, folders: TranscriptFolders) -> None:
        super().__init__(folders, "main", "x.jsonl")
        self.at_it, self.may = threading.Event(), threading.Event()

    def write(self, content: bytes) -> None:
        with self._one_at_a_time:
            self.at_it.set()
            assert self.may.wait(10)
            self._opened()[1].write(content)


async def test_giving_up_waits_for_its_writer(folders: TranscriptFolders, tmp_path: Path) -> None:
    descriptors = held_below(tmp_path)
    part = Slow(folders)
    part.begin()
    writing = asyncio.create_task(asyncio.to_thread(part.write, b"x"))
    assert await asyncio.to_thread(part.at_it.wait, 10)
    writing.cancel()
    giving_up = asyncio.create_task(asyncio.to_thread(part.give_up))
    done, _ = await asyncio.wait({giving_up}, timeout=0.05)
    assert not done, "its descriptors are used"
    part.may.set()
    await giving_up
    assert list((tmp_path / "transcripts" / "main").iterdir()) == []
    assert held_below(tmp_path) == descriptors


async def test_cancelled_write_leaves_nothing(folders: TranscriptFolders, tmp_path: Path) -> None:
    write(folders)
    before, descriptors = tree_of(tmp_path), held_below(tmp_path)

    async def written() -> None:
        async with atomic_file_async(folders, "main", "x.jsonl") as file:
            await asyncio.to_thread(file.write, b"half")
            begun.set()
            await asyncio.Event().wait()

    begun = asyncio.Event()
    for is_at_once in (False, True):
        task = asyncio.create_task(written())
        await (asyncio.sleep(0) if is_at_once else begun.wait())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert tree_of(tmp_path) == before
        assert held_below(tmp_path) == descriptors


@pytest.fixture
def ordinary(becoming_ordinary: Becoming) -> Iterator[Path]:
    """Yield a folder of an ordinary user, because those of pytest are closed to others."""
    with tempfile.TemporaryDirectory() as folder, becoming_ordinary(Path(folder)):
        assert os.geteuid() != 0
        yield Path(folder)


@pytest.mark.parametrize("mask", [0o022, 0o777], ids=oct)
def test_files_of_ordinary_user_are_private(ordinary: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        folders = TranscriptFolders(ordinary / "transcripts")
        write(folders)
    finally:
        os.umask(before)
    agent = ordinary / "transcripts" / "main"
    modes = [path.stat().st_mode & 0o777 for path in (agent.parent, agent, agent / "x.jsonl")]
    assert modes == [0o700, 0o700, 0o600]
    assert has_content(folders, "main", "x.jsonl", b"whole\n")
    assert drop_file(folders, "main", "x.jsonl")


def test_unreadable_file_is_replaced(ordinary: Path) -> None:
    folders = TranscriptFolders(ordinary / "transcripts")
    write(folders)
    (ordinary / "transcripts" / "main" / "x.jsonl").chmod(0o000)
    assert not has_content(folders, "main", "x.jsonl", b"whole\n")
    write(folders)
    assert has_content(folders, "main", "x.jsonl", b"whole\n")


def test_closed_folder_is_told(ordinary: Path) -> None:
    folders = TranscriptFolders(ordinary / "transcripts")
    write(folders)
    agent = ordinary / "transcripts" / "main"
    agent.chmod(0o500)
    for deed in (
        lambda: write(folders),
        lambda: drop_file(folders, "main", "x.jsonl"),
        lambda: put_in_place(folders, "x.jsonl.deleted.now"),
    ):
        with pytest.raises(PermissionError):
            deed()
    agent.chmod(0o700)
    assert has_content(folders, "main", "x.jsonl", b"whole\n")


def test_data_directory_need_not_be_readable(ordinary: Path) -> None:
    if not hasattr(os, "O_PATH"):
        pytest.skip("this system opens no folder without reading it")
    ordinary.chmod(0o300)
    try:
        folders = TranscriptFolders(ordinary / "transcripts")
        write(folders)
        assert put_in_place(folders, "x.jsonl.deleted.now")
    finally:
        ordinary.chmod(0o700)
