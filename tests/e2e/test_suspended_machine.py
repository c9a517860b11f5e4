"""A laptop whose lid is closed: servers, children and database stand still, and go on together."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.embedded_servers import postmaster_of
from tests.support.servers.process_table import children, is_alive
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server

pytestmark = pytest.mark.kill


@pytest.fixture
def other(mortal: Server) -> Server:
    """Another server on the same data directory, not started yet."""
    return mortal.twin("other", dies=False)


def with_descendants(pid: int) -> Iterator[int]:
    yield pid
    for child in children(pid):
        yield from with_descendants(child)


def suspend(*servers: Server) -> None:
    """Stop everything for longer than a lease, resume it in the same order, and wait until a holder
    that did not renew its lease would have lost it again."""
    roots = [postmaster_of(servers[0].data_dir / "postgres")]
    roots += [one.process.pid for one in servers if one.process is not None]
    stopped: list[int] = []
    try:
        for root in roots:
            for pid in with_descendants(root):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        threading.Event().wait(QUICK_LEASE_SECONDS * 2)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    threading.Event().wait(QUICK_LEASE_SECONDS * 1.5)


def waiting(server: Server, key: str) -> tuple[str, int]:
    """A run at work, and the process of its child."""
    body: dict[str, Any] = {"requester": {"sessionKey": f"agent:main:{key}"}}
    run_id = server.accepted("waiter", **body)
    return run_id, int(server.note(f"{run_id}.began"))


def test_suspended_server_goes_on_with_its_run(mortal: Server) -> None:
    run_id, pid = waiting(mortal, "lid")
    suspend(mortal)
    assert is_alive(pid)
    mortal.let_go(run_id)
    run = mortal.run(run_id, "announced")
    assert (run["outcome"], run["error"]) == ("success", None)


def test_suspended_servers_leave_each_other_their_runs(mortal: Server, other: Server) -> None:
    with other:
        runs = [(one, *waiting(one, f"lid-{n}")) for n, one in enumerate((mortal, other))]
        suspend(mortal, other)
        for server, run_id, pid in runs:
            assert is_alive(pid)
            server.let_go(run_id)
            run = server.run(run_id, "announced")
            assert (run["outcome"], run["error"]) == ("success", None)
