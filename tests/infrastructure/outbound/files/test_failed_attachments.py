"""What cannot be written whole leaves nothing behind."""

import asyncio
import gc
import resource
import threading
from pathlib import Path

import pytest

from application.ports.files import AttachmentsNotWritten
from domain.context.attachments import AcceptedFiles, accept_file
from tests.support.builders.folders import (
    FILES,
    OTHER_RUN,
    RUN,
    SECONDS,
    Ground,
    ground_in,
)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return ground_in(tmp_path)


async def refusal_of(ground: Ground, judged: AcceptedFiles = FILES) -> str:
    with pytest.raises(AttachmentsNotWritten) as refused:
        await ground.write(judged)
    assert str(ground.workspace) not in str(refused.value)
    return refused.value.reason


async def test_a_file_that_cannot_be_written_whole_leaves_none(ground: Ground) -> None:
    """A limit of the process holds for root as for anybody."""
    before = ground.tree()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    large = AcceptedFiles((accept_file("small", b"x"), accept_file("large", bytes(3_000_000))))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    try:
        assert await refusal_of(ground, large) == "File too large"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ground.tree() == before
    await ground.write(large)


async def test_a_file_system_that_takes_no_folder_is_told(ground: Ground) -> None:
    """`/proc` takes none, of root neither."""
    if not Path("/proc/self").exists():
        pytest.skip("this system has no /proc: nothing else takes no folder of root either")
    with pytest.raises(AttachmentsNotWritten) as refused:
        await ground.files.write("/proc", RUN, FILES, is_resumed=False, timeout_seconds=SECONDS)
    assert refused.value.reason


async def test_no_file_is_begun_after_the_time_is_over(ground: Ground) -> None:
    before, ready = ground.tree(), threading.Event()
    calls: list[int] = []

    def during() -> None:
        calls.append(1)
        ready.wait(0.3)

    with pytest.raises(AttachmentsNotWritten, match=r"longer than 0\.2 seconds"):
        await ground.files.write(
            ground.root, RUN, FILES, is_resumed=False, timeout_seconds=0.2, during=during
        )
    assert calls == [1]
    assert ground.tree() == before
    with pytest.raises(AttachmentsNotWritten, match="longer than 0 seconds"):
        await ground.files.write(ground.root, RUN, FILES, is_resumed=False, timeout_seconds=0)
    assert ground.tree() == before


async def test_an_interrupted_write_ends_with_nothing_left(ground: Ground) -> None:
    before, told = ground.tree(), list[dict[str, object]]()
    begun, go_on = threading.Event(), threading.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    def during() -> None:
        begun.set()
        go_on.wait(SECONDS)

    try:
        writing = asyncio.create_task(
            ground.files.write(
                ground.root, RUN, FILES, is_resumed=False, timeout_seconds=SECONDS, during=during
            )
        )
        assert await asyncio.to_thread(begun.wait, SECONDS)
        writing.cancel()
        await asyncio.sleep(0)
        assert not writing.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert ground.tree() == before
        gc.collect()
        assert told == [], "what was interrupted is no failure to tell"
    finally:
        asyncio.get_running_loop().set_exception_handler(None)


async def test_during_is_called_once_for_each_attached_file(ground: Ground) -> None:
    found: list[set[str]] = []

    def during() -> None:
        found.append({path.name for path in ground.folder.iterdir()})

    await ground.files.write(
        ground.root, RUN, FILES, is_resumed=False, timeout_seconds=SECONDS, during=during
    )
    assert found == [{"a.txt"}, {"a.txt", "b c"}]


async def test_a_failure_in_between_leaves_other_runs_alone(ground: Ground) -> None:
    await ground.files.write(
        ground.root, OTHER_RUN, FILES, is_resumed=False, timeout_seconds=SECONDS
    )
    before = ground.tree()

    def during() -> None:
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        await ground.files.write(
            ground.root, RUN, FILES, is_resumed=False, timeout_seconds=SECONDS, during=during
        )
    assert ground.tree() == before
