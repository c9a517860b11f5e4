"""A server that is killed or frozen at any step with the append lock blocks no other and loses
nothing.

Covers every statement of taking, holding and passing the lock: before, during and after it.
"""

import asyncio
import signal
import time
from itertools import product
from pathlib import Path

import pytest

from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from tests.support.builders.submissions import key, observe
from tests.support.faults.lock_steps import MOMENTS, StepOrder, stepping
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but

WAIT_SECONDS_MAX = 4.0
"""Half a second of the holder, after which the database ends its session, with reserve for a busy
machine. A lock that is never released would block for 10 s.
"""

pytestmark = pytest.mark.kill
CASES = [
    (how, f"{moment} lock:{step}") for how, (moment, step) in product(("killed", "frozen"), MOMENTS)
]
IN_THE_GATE = [
    ("killed", "during lock:store"),
    ("killed", "before lock:give_up"),
    ("frozen", "before lock:store"),
    ("frozen", "during lock:wait"),
]


@pytest.mark.parametrize(("how", "step"), nightly_but(CASES, IN_THE_GATE))
async def test_server_stopped_with_the_lock_stops_nobody(
    running: RunningLog, tmp_path: Path, how: str, step: str
) -> None:
    moment, _, statement = step.replace(" lock:", ":").partition(":")
    by = signal.SIGKILL if how == "killed" else signal.SIGSTOP
    confirmed: dict[str, int] = {}
    is_over = asyncio.Event()

    async def write_on() -> float:
        longest = 0.0
        while not is_over.is_set():
            began = time.monotonic()
            (appended,) = await observe(running.log, [len(confirmed)])
            longest = max(longest, time.monotonic() - began)
            confirmed[key(len(confirmed))] = appended.position
        return longest

    writing = asyncio.create_task(write_on())
    async with stepping(StepOrder(running.url, moment, statement, by)) as stopped:
        await stopped.stopped()
        await observe(running.log, ["behind"])
        if by == signal.SIGSTOP:
            await stopped.go_on()
        await stopped.end()
        is_over.set()
        assert await writing < WAIT_SECONDS_MAX
    events = await running.events()
    recorded = {event.envelope.stream: event.envelope.position for event in events}
    assert len(recorded) == len(events)
    for name, position in (confirmed | stopped.confirmed).items():
        assert recorded[f"session:{name}"] == position
    order = VerifyOrder(state_file=tmp_path / "state")
    found = await asyncio.to_thread(run_verification, running.url, order)
    assert found.difference is None
