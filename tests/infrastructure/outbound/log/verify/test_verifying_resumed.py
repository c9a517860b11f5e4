"""A verification goes on where an earlier one ended, in whatever way."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.verify import processes, verify
from infrastructure.outbound.log.verify.processes import RangeWorkers, VerificationStopped
from infrastructure.outbound.log.verify.ranges import Range
from infrastructure.outbound.log.verify.verify import (
    Verification,
    VerifyOrder,
    note_progress,
    read_progress,
    run_verification,
)
from tests.support.builders.damaged_log import tell_all
from tests.support.builders.stored_family import KeptFamily
from tests.support.servers.preloaded import ROOT
from tests.support.servers.process_table import carrying, children, is_alive
from tests.support.servers.running_log import RunningLog
from tests.support.waiting import wait_for

pytestmark = pytest.mark.kill


async def _verify(running: RunningLog, folder: Path, **more: object) -> Verification:
    order = VerifyOrder(**{"state_file": folder / "state.json", **more})  # type: ignore[arg-type]
    return await asyncio.to_thread(run_verification, running.url, order)


async def test_a_verification_goes_on_where_the_last_one_ended(
    running: RunningLog, tmp_path: Path
) -> None:
    first = await _verify(running, tmp_path, resume=True)
    assert first.began == 0, "nothing was noted yet"
    await tell_all(running, tmp_path)
    second = await _verify(running, tmp_path, resume=True)
    family = KeptFamily(running.log, running.pool, tmp_path, root="agent:main:new", first=70_000)
    await family.live("new")
    third = await _verify(running, tmp_path, resume=True)
    whole = await _verify(running, tmp_path)
    assert (third.began, third.difference) == (second.head.position, None)
    assert third.head == whole.head
    assert third.checked == whole.checked
    assert whole.began == 0


@pytest.mark.told("all")
async def test_what_was_verified_before_must_still_be_there(
    running: RunningLog, tmp_path: Path
) -> None:
    end = (await _verify(running, tmp_path)).head.position
    await running.ask("UPDATE events SET chain_hash = sha256('') WHERE position = %s", end)
    await running.ask("UPDATE log_head SET chain_hash = sha256('')")
    found = await _verify(running, tmp_path, resume=True)
    assert str(found.difference) == (
        f"position {end}: its chain hash is not that of the verification that is resumed: the log"
        " was rewritten"
    )


@pytest.mark.told("all")
async def test_progress_of_another_log_or_of_nothing_is_refused(
    running: RunningLog, tmp_path: Path
) -> None:
    found = await _verify(running, tmp_path)
    state = tmp_path / "state.json"
    assert read_progress(state, found.head.log_id) == found.checked
    assert state.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob(".state*")) == []
    await running.ask("UPDATE log_head SET log_id = gen_random_uuid()")
    with pytest.raises(UserError, match="is of another log; name another file with --state"):
        await _verify(running, tmp_path, resume=True)
    state.write_text("{}")
    with pytest.raises(UserError, match="holds no progress of a verification"):
        await _verify(running, tmp_path, resume=True)
    with pytest.raises(UserError, match=r"cannot be noted in .*: No such file.*--state"):
        note_progress(tmp_path / "nowhere" / "state.json", found.checked)


_SLOWLY = """
import json, sys, time
from pathlib import Path
from infrastructure.outbound.log.verify import verify as v
v.RANGE_EVENTS_MAX, v.NOTE_SECONDS = 10, -1.0
def stop_there(began, position, last):
    print(json.dumps(position), flush=True)
    while position >= 40:
        time.sleep(60)
v.run_verification(sys.argv[1], v.VerifyOrder(state_file=Path(sys.argv[2]), on_progress=stop_there))
"""


@pytest.mark.told("all")
async def test_one_that_was_killed_leaves_nothing_and_is_resumed(
    running: RunningLog, tmp_path: Path
) -> None:
    state = tmp_path / "state.json"
    command = [sys.executable, "-c", _SLOWLY, running.url, str(state)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        while (reached := json.loads(killed.stdout.readline())) < 40:
            pass
        workers = children(killed.pid)
        assert len(workers) == verify.PROCESSES - 1
        os.kill(killed.pid, signal.SIGKILL)
    wait_for("the workers' end", lambda: not any(map(is_alive, workers)))
    found = await _verify(running, tmp_path, resume=True)
    assert (found.began, found.difference) == (reached, None)
    assert found.checked == (await _verify(running, tmp_path)).checked


@pytest.mark.told("all")
async def test_a_worker_that_ends_too_early_is_told(running: RunningLog, tmp_path: Path) -> None:
    head = (await _verify(running, tmp_path)).head
    gone = threading.Event()

    def ranges() -> Iterator[Range]:
        yield Range(1, 10)
        assert gone.wait(30)
        yield Range(11, 20)

    with RangeWorkers(running.url, head, [ranges()]) as workers:
        answers = workers.answers(wait=True)
        assert next(answers).chain_hash
        pid = next(
            pid for pid in children(os.getpid()) if pid in carrying(processes.work.__module__)
        )
        os.kill(pid, signal.SIGKILL)
        wait_for("its end", lambda: not is_alive(pid))
        gone.set()
        with pytest.raises(VerificationStopped, match="go on with --resume"):
            next(answers)
    with RangeWorkers("host=/nowhere port=1", head, [iter([Range(1, 10)])]) as workers:
        with pytest.raises(VerificationStopped, match=r"cannot be read: .*; go on with --resume"):
            next(workers.answers(wait=True))
