"""Bootstrap files whose contents are anything at all."""

import asyncio
import os
import tracemalloc
from pathlib import Path

import pytest

from application.ports.files import ReadFile
from infrastructure.outbound.files.bootstrap_files import DiskBootstrapFiles, read_files

CHARS_MAX = 20_000
HUGE_BYTES = 100 * 1024 * 1024


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "workspace"
    folder.mkdir()
    return folder


def read(folder: Path, chars_max: int = CHARS_MAX) -> tuple[ReadFile, ...]:
    return read_files(str(folder), chars_max)


def skipped(folder: Path) -> str:
    (file,) = read(folder)
    assert file.name == "AGENTS.md"
    assert file.text == ""
    assert file.skipped is not None
    return file.skipped


async def test_the_two_files_are_read_in_their_order_and_no_other(workspace: Path) -> None:
    for name in ("TOOLS.md", "AGENTS.md", "SOUL.md", "IDENTITY.md", "MEMORY.md", "agents.md.bak"):
        (workspace / name).write_text(f"of {name}")
    found = await DiskBootstrapFiles().read(str(workspace), CHARS_MAX)
    assert found == (
        ReadFile(name="AGENTS.md", text="of AGENTS.md"),
        ReadFile(name="TOOLS.md", text="of TOOLS.md"),
    )


def test_what_is_not_there_is_nothing(workspace: Path) -> None:
    assert read(workspace) == ()
    assert read(workspace / "none") == ()


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfeA\x00",  # UTF-16
        b"caf\xe9",  # Latin-1
        b"half a pair \xed\xa0\x80",
        b"overlong \xc0\xaf",
        b"beyond \xf4\x90\x80\x80",
        b"cut in two \xf0\x9f\x9a",
    ],
)
def test_what_is_not_utf_8_is_left_out_whole(workspace: Path, content: bytes) -> None:
    (workspace / "AGENTS.md").write_bytes(content)
    assert skipped(workspace) in ("it is not UTF-8", "it holds NUL and so is no text")


def test_a_file_with_nul_is_left_out(workspace: Path) -> None:
    (workspace / "AGENTS.md").write_bytes(b"Be kind.\0")
    assert skipped(workspace) == "it holds NUL and so is no text"


def test_a_byte_order_mark_in_front_is_no_text(workspace: Path) -> None:
    (workspace / "AGENTS.md").write_bytes(b"\xef\xbb\xbf# Rules\xef\xbb\xbf")
    (workspace / "TOOLS.md").write_bytes(b"\xef\xbb\xbf")
    assert [file.text for file in read(workspace)] == ["# Rules\ufeff", ""]


def test_text_stays_as_it_is(workspace: Path) -> None:
    text = "a\r\nb\rc\n\n\x1b[31m\u202e## Rules\n[truncated: AGENTS.md exceeded 1 characters]\n"
    (workspace / "AGENTS.md").write_bytes(text.encode())
    assert [file.text for file in read(workspace)] == [text]


@pytest.mark.parametrize("sign", ["a", "é", "語", "\U0001f6a4"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_long_file_is_seen_to_be_too_long_and_never_read_to_its_end(
    workspace: Path, sign: str, mark: str
) -> None:
    for length in (9, 10, 11, 12, 500):
        (workspace / "AGENTS.md").write_bytes((mark + sign * length).encode())
        (file,) = read(workspace, 10)
        assert file.skipped is None
        assert set(file.text) == {sign}
        assert min(length, 11) <= len(file.text) <= min(length, 52)


def test_of_a_huge_file_only_the_start_is_looked_at(workspace: Path) -> None:
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


def test_a_huge_file_of_nothing_is_left_out(workspace: Path) -> None:
    with (workspace / "AGENTS.md").open("wb") as file:
        file.truncate(HUGE_BYTES)
    assert skipped(workspace) == "it holds NUL and so is no text"


async def test_the_event_loop_goes_on_meanwhile(workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("x")
    reading = asyncio.create_task(DiskBootstrapFiles().read(str(workspace), CHARS_MAX))
    await asyncio.sleep(0)
    assert not reading.done()
    assert len(await reading) == 1
