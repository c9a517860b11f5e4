"""Files that a request brought: kept with its admission, gone when they are not wanted any more."""

from typing import Any

import pytest

from application.log.event_log import Decision, StagedFile, Submission
from application.ports.files import StagedFiles
from infrastructure.outbound.log.append.writer import BATCH_TEXT_BYTES_MAX
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import run_id
from tests.support.builders.submissions import at_once, key, seen, submission
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog

FILES = (b"first", b"", bytes(range(256)) * 5_000)


@pytest.fixture
def staged(running: ServedLog) -> StagedFiles:
    return running.staged()


def keeping(number: int, *bodies: bytes) -> Submission[Any]:
    files = [StagedFile(run_id(number), ordinal, body) for ordinal, body in enumerate(bodies)]
    change = seen(key(f"keeping-{number}"))
    return submission(lambda _: Decision(None, [change], staged=files))


async def test_files_are_read_until_dropped(running: ServedLog, staged: StagedFiles) -> None:
    await at_once(running.log, keeping(1, *FILES), keeping(2, b"another"))
    assert await staged.read(run_id(1)) == FILES
    await staged.drop(run_id(1))
    await staged.drop(run_id(1))
    assert await staged.read(run_id(1)) == ()
    assert await staged.read(run_id(2)) == (b"another",)


async def test_files_need_events_of_their_append(running: ServedLog, staged: StagedFiles) -> None:
    files = [StagedFile(run_id(1), 0, b"alone")]
    with pytest.raises(ValueError, match="with events"):
        await running.log.submit(submission(lambda _: Decision(None, staged=files)))
    assert await staged.read(run_id(1)) == ()


async def test_files_of_a_batch_are_limited(postgres: RunningLog) -> None:
    large = bytes(BATCH_TEXT_BYTES_MAX // 2 + 1)
    await at_once(postgres.log, *(keeping(number, large) for number in range(1, 6)))
    # Two fill a batch.
    assert await postgres.commits() == 3
    kept = await postgres.ask("SELECT sum(length(body)) FROM staged_files")
    assert kept == [(5 * len(large),)]


async def test_files_are_swept_once_prepared(
    running: ServedLog, staged: StagedFiles, family: LoggedFamily
) -> None:
    names = ("requested", "furnished", "refused", "queued", "over")
    for name in names:
        await family.spawn(name)
    for name in names:
        await running.log.submit(keeping(family.id(name).int % 2**32, b"one", b"two"))
    assert {len(await staged.read(family.id(name))) for name in names} == {2}
    assert await staged.sweep(9) == 0
    await family.tell("refused", ask.refuse(family.run("refused").epoch))
    for name in ("queued", "over"):
        await family.create(name)
    await family.tell("over", ask.stop())
    assert await staged.sweep(2) == 2
    assert await staged.sweep(9) == 1
    assert await staged.sweep(9) == 0
    left = {name for name in names if await staged.read(family.id(name))}
    assert left == {"requested", "furnished"}


async def test_files_of_unrecorded_run_are_kept(running: ServedLog, staged: StagedFiles) -> None:
    await running.log.submit(keeping(77, b"whose"))
    assert await staged.sweep(9) == 0
    assert await staged.read(run_id(77)) == (b"whose",)
