"""Attached files are written below the workspace, private, whole, or not at all."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from application.ports.files import AttachmentFiles, AttachmentsNotWritten
from domain.context.attachments import AcceptedFiles, accept_file, check_attachments
from tests.support.builders.folders import (
    FILES,
    RUN,
    SECONDS,
    Ground,
    expected_contents,
    ground_in,
)
from tests.support.faults.hostile_attachments import (
    LIMITS,
    PLANTED,
    HostileRequest,
    hostile_requests,
)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return ground_in(tmp_path)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def refusal_of(ground: Ground, judged: AcceptedFiles = FILES) -> str:
    with pytest.raises(AttachmentsNotWritten) as refused:
        await ground.write(judged)
    assert str(ground.workspace) not in str(refused.value)
    return refused.value.reason


async def test_files_and_manifest_are_written_below_the_workspace(ground: Ground) -> None:
    files: AttachmentFiles = ground.files
    assert files
    before = ground.tree()
    await ground.write()
    assert ground.contents() == expected_contents()
    made = ground.tree().keys() - before.keys()
    folder = f".openclaw/attachments/{RUN}"
    assert made == {
        ".openclaw",
        ".openclaw/attachments",
        folder,
        *(f"{folder}/{name}" for name in expected_contents()),
    }


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o277, 0o777], ids=oct)
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


async def test_modes_are_private_whatever_the_process_masks(ground: Ground, mask: int) -> None:
    await ground.write()
    assert mode_of(ground.folder) == 0o700
    assert mode_of(ground.folder.parent) == mode_of(ground.folder.parent.parent) == 0o700
    for name in expected_contents():
        assert mode_of(ground.folder / name) == 0o600
    assert await ground.remove() == "undone"


async def test_folders_that_are_there_keep_what_is_theirs(ground: Ground) -> None:
    (ground.workspace / ".openclaw").mkdir(mode=0o755)
    (ground.workspace / ".openclaw" / "state.json").write_text("{}")
    before = ground.tree()
    await ground.write()
    assert before.items() <= ground.tree().items()
    assert await ground.remove() == "undone"
    assert ground.tree() == before


@pytest.mark.long
async def test_runs_of_one_workspace_do_not_meet(ground: Ground) -> None:
    async def life() -> None:
        run_id = uuid4()
        await ground.files.write(
            ground.root, run_id, FILES, is_resumed=False, timeout_seconds=SECONDS
        )
        assert await ground.files.remove(ground.root, run_id, timeout_seconds=SECONDS) == "undone"

    before = ground.tree()
    for _ in range(10):
        await asyncio.gather(*(life() for _ in range(8)))
    assert ground.tree() == before


async def test_a_folder_of_the_run_that_is_there_refuses_a_first_attempt(ground: Ground) -> None:
    await ground.write()
    before = ground.tree()
    assert await refusal_of(ground) == "a folder of this run is there already"
    assert ground.tree() == before


async def test_a_resumed_preparation_removes_what_an_earlier_attempt_left(ground: Ground) -> None:
    ground.folder.mkdir(parents=True)
    (ground.folder / "a.txt").write_text("hal")
    (ground.folder / "left").symlink_to(ground.outside)
    outer = ground.outer_tree()
    await ground.write(is_resumed=True)
    assert ground.contents() == expected_contents()
    assert mode_of(ground.folder) == 0o700
    assert ground.outer_tree() == outer
    await ground.write(is_resumed=True)
    assert ground.contents() == expected_contents()


async def test_a_resumed_preparation_may_find_nothing(ground: Ground) -> None:
    await ground.write(is_resumed=True)
    assert ground.contents() == expected_contents()


@pytest.mark.parametrize("title", PLANTED)
@pytest.mark.parametrize("is_resumed", [False, True])
async def test_what_was_planted_before_is_neither_followed_nor_replaced(
    ground: Ground, title: str, is_resumed: bool
) -> None:
    PLANTED[title](ground.workspace, ground.outside)
    before, outer = ground.tree(), ground.outer_tree()
    with pytest.raises(AttachmentsNotWritten, match="a link or a file is in the place of"):
        await ground.write(is_resumed=is_resumed)
    assert (ground.tree(), ground.outer_tree()) == (before, outer)


async def test_a_link_in_the_place_of_the_runs_folder_is_not_followed(ground: Ground) -> None:
    ground.folder.parent.mkdir(parents=True)
    ground.folder.symlink_to(ground.outside)
    outer = ground.outer_tree()
    assert await refusal_of(ground) == "a folder of this run is there already"
    assert ground.outer_tree() == outer
    await ground.write(is_resumed=True)
    assert not ground.folder.is_symlink()
    assert ground.contents() == expected_contents()
    assert ground.outer_tree() == outer


async def test_a_root_that_a_link_leads_to_is_refused(ground: Ground) -> None:
    link = ground.workspace.parent / "link"
    link.symlink_to(ground.outside)
    (ground.outside / "deep").mkdir()
    before = ground.outer_tree()
    for root in (link, link / "deep", ground.outside / ".." / "outside", "workspace", ""):
        with pytest.raises(AttachmentsNotWritten, match="in the place of the workspace"):
            await ground.files.write(
                str(root), RUN, FILES, is_resumed=False, timeout_seconds=SECONDS
            )
    assert ground.outer_tree() == before


async def test_a_workspace_that_is_gone_or_a_file_is_refused(ground: Ground) -> None:
    for root, reason in (
        (ground.workspace / "missing", "No such file"),
        (ground.workspace / "own.txt", "in the place of the workspace"),
    ):
        with pytest.raises(AttachmentsNotWritten, match=reason):
            await ground.files.write(
                str(root), RUN, FILES, is_resumed=False, timeout_seconds=SECONDS
            )


@pytest.mark.parametrize("hostile", hostile_requests(), ids=str)
async def test_a_hostile_request_is_stored_inside_or_not_at_all(
    ground: Ground, hostile: HostileRequest
) -> None:
    verdict = check_attachments(hostile.asked, LIMITS)
    before, outer = ground.tree(), ground.outer_tree()
    if isinstance(verdict, AcceptedFiles):
        await ground.write(verdict)
        assert ground.contents() == expected_contents(verdict)
        assert set(hostile.names) == ground.contents().keys() - {".manifest.json"}
        inside = f".openclaw/attachments/{RUN}"
        made = ground.tree().keys() - before.keys() - {".openclaw", ".openclaw/attachments", inside}
        assert all(os.path.dirname(path) == inside for path in made)
        assert await ground.remove() == "undone"
    assert (ground.tree(), ground.outer_tree()) == (before, outer)


async def test_a_name_that_was_not_judged_leads_nowhere(ground: Ground) -> None:
    before, outer = ground.tree(), ground.outer_tree()
    for name in ("../b", "/b", "..", ".", "", "a\0"):
        with pytest.raises(ValueError, match="no name of an entry"):
            await ground.write(AcceptedFiles((accept_file("a", b""), accept_file(name, b"x"))))
    assert (ground.tree(), ground.outer_tree()) == (before, outer)
