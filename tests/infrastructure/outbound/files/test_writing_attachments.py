"""Attached files are written below the workspace, private, whole, or not at all."""

import asyncio
import gc
import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from application.ports.files import AttachmentWriteError
from application.steps.step import STEPS_AT_ONCE_MAX
from domain.context.attachments import AcceptedFiles, accept_file, check_attachments
from tests.support.builders.folders import (
    OTHER_RUN,
    RUN,
    SECONDS,
    Ground,
    expected_contents,
)
from tests.support.faults.hostile_attachments import (
    LIMITS,
    PLANTED,
    HostileRequest,
    hostile_requests,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def refusal_of(ground: Ground) -> str:
    with pytest.raises(AttachmentWriteError) as refused:
        await ground.write()
    assert str(ground.workspace) not in str(refused.value)
    return refused.value.reason


async def test_files_and_manifest_are_written(ground: Ground) -> None:
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


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


async def test_modes_are_private_under_any_mask(ground: Ground, mask: int) -> None:
    await ground.write()
    assert mode_of(ground.folder) == 0o700
    assert mode_of(ground.folder.parent) == mode_of(ground.folder.parent.parent) == 0o700
    for name in expected_contents():
        assert mode_of(ground.folder / name) == 0o600
    assert await ground.remove() == "undone"


async def test_folders_that_are_there_stay(ground: Ground) -> None:
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
        await ground.write(run_id=run_id)
        assert await ground.remove(run_id) == "undone"

    before = ground.tree()
    for _ in range(10):
        await asyncio.gather(*(life() for _ in range(8)))
    assert ground.tree() == before


async def test_folder_of_the_run_refuses_first_attempt(ground: Ground) -> None:
    await ground.write()
    before = ground.tree()
    assert await refusal_of(ground) == "the folder of this run already exists"
    assert ground.tree() == before


async def test_resumed_preparation_removes_earlier_attempt(ground: Ground) -> None:
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
    assert await ground.remove() == "undone"
    await ground.write(is_resumed=True)
    assert ground.contents() == expected_contents()


@pytest.mark.parametrize("title", PLANTED)
@pytest.mark.parametrize("is_resumed", [False, True])
async def test_planted_entry_is_not_followed_or_replaced(
    ground: Ground, title: str, is_resumed: bool
) -> None:
    PLANTED[title](ground.workspace, ground.outside)
    before, outer = ground.tree(), ground.outer_tree()
    with pytest.raises(AttachmentWriteError, match="is a link or a file, not a folder"):
        await ground.write(is_resumed=is_resumed)
    assert (ground.tree(), ground.outer_tree()) == (before, outer)


async def test_link_in_place_of_folder_is_not_followed(ground: Ground) -> None:
    ground.folder.parent.mkdir(parents=True)
    ground.folder.symlink_to(ground.outside)
    outer = ground.outer_tree()
    assert await refusal_of(ground) == "the folder of this run already exists"
    assert ground.outer_tree() == outer
    await ground.write(is_resumed=True)
    assert not ground.folder.is_symlink()
    assert ground.contents() == expected_contents()
    assert ground.outer_tree() == outer


async def test_root_behind_link_is_refused(ground: Ground) -> None:
    link = ground.workspace.parent / "link"
    link.symlink_to(ground.outside)
    (ground.outside / "deep").mkdir()
    before = ground.outer_tree()
    for root in (link, link / "deep", ground.outside / ".." / "outside", "workspace", ""):
        with pytest.raises(AttachmentWriteError, match="a link or a file, not a folder"):
            await ground.write(root=str(root))
    assert ground.outer_tree() == before


async def test_missing_workspace_is_refused(ground: Ground) -> None:
    for root, reason in (
        (ground.workspace / "missing", "No such file"),
        (ground.workspace / "own.txt", "a link or a file, not a folder"),
    ):
        with pytest.raises(AttachmentWriteError, match=reason):
            await ground.write(root=str(root))


@pytest.mark.parametrize("hostile", hostile_requests(), ids=str)
async def test_hostile_request_is_stored_inside_or_not_at_all(
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


async def test_unjudged_name_leads_nowhere(ground: Ground) -> None:
    before, outer = ground.tree(), ground.outer_tree()
    for name in ("../b", "/b", "..", ".", "", "a\0"):
        with pytest.raises(ValueError, match="not the name of an entry"):
            await ground.write(AcceptedFiles((accept_file("a", b""), accept_file(name, b"x"))))
    assert (ground.tree(), ground.outer_tree()) == (before, outer)


async def test_file_not_written_whole_leaves_none(ground: Ground) -> None:
    # A resource limit of the process applies to root too.
    before = ground.tree()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    large = AcceptedFiles((accept_file("small", b"x"), accept_file("large", bytes(3_000_000))))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    try:
        with pytest.raises(AttachmentWriteError, match=r"^File too large$"):
            await ground.write(large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ground.tree() == before
    await ground.write(large)


async def test_file_system_that_takes_no_folder_is_told(ground: Ground) -> None:
    # `/proc` takes none, of root neither.
    if not Path("/proc/self").exists():
        pytest.skip("this system has no /proc: nothing else takes no folder of root either")
    with pytest.raises(AttachmentWriteError) as refused:
        await ground.write(root="/proc")
    assert refused.value.reason


async def test_no_file_is_begun_after_its_time(ground: Ground) -> None:
    before, ready = ground.tree(), threading.Event()
    calls: list[int] = []

    def during() -> None:
        calls.append(1)
        ready.wait(0.3)

    with pytest.raises(AttachmentWriteError, match=r"longer than 0\.2 seconds"):
        await ground.write(timeout_seconds=0.2, during=during)
    assert calls == [1]
    assert ground.tree() == before
    with pytest.raises(AttachmentWriteError, match="longer than 0 seconds"):
        await ground.write(timeout_seconds=0)
    assert ground.tree() == before


async def test_interrupted_write_leaves_nothing(ground: Ground) -> None:
    before, result = ground.tree(), list[dict[str, object]]()
    begun, go_on = threading.Event(), threading.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: result.append(context))

    def during() -> None:
        begun.set()
        go_on.wait(SECONDS)

    try:
        writing = asyncio.create_task(ground.write(during=during))
        assert await asyncio.to_thread(begun.wait, SECONDS)
        writing.cancel()
        await asyncio.sleep(0)
        assert not writing.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert ground.tree() == before
        gc.collect()
        assert result == [], "what was interrupted is no failure to tell"
    finally:
        asyncio.get_running_loop().set_exception_handler(None)


async def test_failure_in_between_leaves_other_runs_alone(ground: Ground) -> None:
    await ground.write(run_id=OTHER_RUN)
    before = ground.tree()

    def during() -> None:
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        await ground.write(during=during)
    assert ground.tree() == before


THREADS = 40

"""More threads than the event loop has."""


async def test_files_do_not_wait_for_busy_threads(ground: Ground) -> None:
    go_on = threading.Event()
    others = [asyncio.create_task(asyncio.to_thread(go_on.wait, SECONDS)) for _ in range(THREADS)]
    try:
        await asyncio.wait_for(ground.write(), SECONDS / 2)
        assert await asyncio.wait_for(ground.remove(), SECONDS / 2) == "undone"
    finally:
        go_on.set()
        await asyncio.gather(*others)


async def test_wait_for_a_thread_is_no_time_of_removal(ground: Ground) -> None:
    runs = [RUN, OTHER_RUN] * (STEPS_AT_ONCE_MAX * 5)
    await ground.write()
    removed = await asyncio.gather(*(ground.remove(run) for run in runs))
    assert removed.count("undone") == 1


async def test_closed_files_leave_no_thread(ground: Ground) -> None:
    before = set(threading.enumerate())
    await ground.write()
    await ground.remove()
    ground.files.close()
    for item in set(threading.enumerate()) - before:
        await asyncio.to_thread(item.join, SECONDS)
        assert not item.is_alive()
