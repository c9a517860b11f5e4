"""Changes of a workspace during a write lead nowhere else."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from application.ports.files import AttachmentRemovalError, AttachmentWriteError
from domain.context.attachments import AcceptedFiles, accept_file
from tests.support.builders.folders import (
    FILES,
    RUN,
    Ground,
    expected_contents,
)

ROUNDS = 50
ROUNDS_MAX = 50 * ROUNDS
"""Maximum number of rounds until one is lost, however the machine divides its time."""
MANY = AcceptedFiles(tuple(accept_file(f"{number}.txt", b"x" * 100) for number in range(8)))
NOT_OURS = (b"not attached", b"canary")
Attack = Callable[[Ground], None]


def folder_for_link(ground: Ground) -> None:
    ground.folder.rename(ground.workspace / "moved")
    ground.folder.symlink_to(ground.outside)


def parent_for_link(ground: Ground) -> None:
    ground.folder.parent.rename(ground.workspace / "moved")
    ground.folder.parent.symlink_to(ground.outside)


def grandparent_for_link(ground: Ground) -> None:
    ground.folder.parent.parent.rename(ground.workspace / "moved")
    ground.folder.parent.parent.symlink_to(ground.outside)


def workspace_for_link(ground: Ground) -> None:
    ground.workspace.rename(ground.workspace.with_name("moved"))
    ground.workspace.symlink_to(ground.outside)


def next_file_for_link(ground: Ground) -> None:
    (ground.folder / "b c").symlink_to(ground.outside / "secret")


def next_file_for_new_link(ground: Ground) -> None:
    (ground.folder / "b c").symlink_to(ground.outside / "new")


def next_file_for_hard_link(ground: Ground) -> None:
    os.link(ground.outside / "secret", ground.folder / "b c")


def next_file_for_file(ground: Ground) -> None:
    (ground.folder / "b c").write_text("not attached")


def manifest_for_link(ground: Ground) -> None:
    (ground.folder / ".manifest.json").symlink_to(ground.outside / "secret")


def written_file_for_link(ground: Ground) -> None:
    (ground.folder / "a.txt").unlink()
    (ground.folder / "a.txt").symlink_to(ground.outside / "secret")


def file_beside(ground: Ground) -> None:
    (ground.folder / "beside").write_text("not attached")


ATTACKS: Mapping[str, Attack] = {
    attack.__name__: attack
    for attack in (
        folder_for_link, parent_for_link, grandparent_for_link, workspace_for_link,
        next_file_for_link, next_file_for_new_link, next_file_for_hard_link,
        next_file_for_file, manifest_for_link, written_file_for_link, file_beside,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
async def test_entry_planted_between_two_files_refuses_all(ground: Ground, name: str) -> None:
    outer = ground.outer_tree()
    attacks = iter([ATTACKS[name]])

    def during() -> None:
        for attack in attacks:
            attack(ground)
            return

    with pytest.raises(AttachmentWriteError):
        await ground.write(during=during)
    assert ground.outer_tree() == outer
    written = [file for file in ground.workspace.parent.rglob("*") if _is_of(file, FILES)]
    assert written == []
    left = [] if ground.folder.is_symlink() else ground.folder.glob("*")
    assert all(path.is_symlink() or path.read_bytes() in NOT_OURS for path in left)
    await ground.remove()
    assert ground.outer_tree() == outer


def _is_of(path: Path, judged: AcceptedFiles) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    return path.read_bytes() in [file.content for file in judged.files]


@contextmanager
def racing(act: Callable[[], None]) -> Iterator[None]:
    """Repeat an act in another thread during the block."""
    over = threading.Event()

    def race() -> None:
        while not over.is_set():
            with suppress(OSError):
                act()

    thread = threading.Thread(target=race)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def swapping(place: Path, target: Path) -> Callable[[], None]:
    """Return a function that replaces a folder by a link, and at the next call removes the link."""
    aside = place.parent.parent / f"aside-{place.name}"

    def act() -> None:
        if place.is_symlink():
            place.unlink()
            return
        with suppress(OSError):
            shutil.rmtree(aside)
        with suppress(OSError):
            os.rename(place, aside)
        with suppress(OSError):
            place.symlink_to(target)

    return act


@pytest.mark.long
@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_race_for_a_folder_gets_nothing_outside(ground: Ground, depth: int) -> None:
    place = [ground.folder, *ground.folder.parents][depth]
    (ground.outside / "attachments" / str(RUN)).mkdir(parents=True)
    (ground.outside / str(RUN)).mkdir()
    outer = ground.outer_tree()
    refused = 0
    with racing(swapping(place, ground.outside)):
        for number in range(ROUNDS_MAX):
            try:
                await ground.write(MANY, is_resumed=True)
            except AttachmentWriteError:
                refused += 1
            with suppress(AttachmentRemovalError):
                await ground.remove()
            assert ground.outer_tree() == outer
            if refused and number >= ROUNDS:
                break
    with suppress(OSError):
        place.unlink()
    await ground.write(MANY, is_resumed=True)
    assert ground.contents() == expected_contents(MANY)
    assert refused, "the race was never lost: it proves nothing"


@pytest.mark.long
async def test_folders_taken_away_are_made_again(ground: Ground) -> None:
    above = ground.folder.parent

    def take_away() -> None:
        time.sleep(0.001)
        above.rmdir()
        above.parent.rmdir()

    with racing(take_away):
        for _ in range(ROUNDS):
            await ground.write()
            assert ground.contents() == expected_contents()
            assert await ground.remove() == "undone"


@pytest.mark.long
async def test_race_for_a_file_gets_nothing_outside(ground: Ground) -> None:
    outer = ground.outer_tree()
    refused = 0

    def plant() -> None:
        (ground.folder / "5.txt").symlink_to(ground.outside / "new")

    with racing(plant):
        for number in range(ROUNDS_MAX):
            try:
                await ground.write(MANY, is_resumed=True)
            except AttachmentWriteError:
                refused += 1
            with suppress(AttachmentRemovalError):
                await ground.remove()
            assert ground.outer_tree() == outer
            if refused and number >= ROUNDS:
                break
    assert refused, "the race was never won: it proves nothing"


@pytest.mark.long
async def test_removal_racing_with_links_stays_inside(ground: Ground) -> None:
    outer = ground.outer_tree()
    inner = ground.folder / "inner"

    def swap() -> None:
        inner.mkdir()
        (inner / "x").write_text("x")
        inner.rename(ground.folder / "aside")
        inner.symlink_to(ground.outside)

    with racing(swap):
        for _ in range(ROUNDS):
            with suppress(AttachmentWriteError):
                await ground.write(is_resumed=True)
            await asyncio.sleep(0)
            with suppress(AttachmentRemovalError):
                await ground.remove()
            assert ground.outer_tree() == outer
    assert await ground.remove() in ("undone", "nothing_there")
    assert not ground.folder.exists()
