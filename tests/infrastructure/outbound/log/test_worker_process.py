"""A process that works on the log in parallel: a fork, unless this one has other threads."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infrastructure.outbound.log.process import send_answer

PROJECT = Path(__file__).parents[4]
_PROGRAM = """
import asyncio, json, os, signal, sys, threading
from infrastructure.outbound.log.process import WorkerProcess
from tests.infrastructure.outbound.log.test_worker_process import work

os.set_inheritable(os.open(sys.argv[1], os.O_RDONLY), True)
end = threading.Event()
for _ in range(int(sys.argv[2])):
    threading.Thread(target=end.wait).start()

async def look():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
    with WorkerProcess(work, {"says": "this"}) as one, WorkerProcess(work, {"says": "that"}) as two:
        return [[each.receive(), each.receive(), each.wait()] for each in (one, two)]

found = asyncio.run(look())
end.set()
print(json.dumps(found))
"""


def work(order: dict[str, Any]) -> None:
    """Describe this process, and fail."""
    command = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (os.getpid(), os.getppid())]
    kept = [
        os.readlink(request.path)
        for request in os.scandir("/proc/self/fd")
        if int(request.name) > 2
    ]
    files = [text for text in kept if not text.startswith("/proc/")]
    ends = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and signal.set_wakeup_fd(-1) == -1
    send_answer([order, command[0] == command[1], files, os.getsid(0) == os.getpid(), ends])
    raise LookupError("what happens here")


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize("threads", [0, 1])
def test_worker_has_its_order_and_nothing_of_its_holder(tmp_path: Path, threads: int) -> None:
    (tmp_path / "kept").touch()
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "kept"), str(threads)],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(ran.stdout) == [
        [[{"says": says}, threads == 0, [], True, True], None, 1] for says in ("this", "that")
    ]
    assert ran.stderr.count("LookupError: what happens here") == 2
