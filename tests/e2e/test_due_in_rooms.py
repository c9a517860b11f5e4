"""A receiver that hangs is in the way of nothing else, and what is due is done when it is."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import Hooked, threaded
from tests.support.servers.preparing_server import ATTACHED
from tests.support.servers.running_server import wait_for
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server

_UNASKED = """
import runpy, sys
from application.workers import due
due.DUE_BATCH = 1
due.DUE_SECONDS = 3600.0
module, sys.argv[1:] = sys.argv[3], sys.argv[4:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""The same program, which takes what is due one by one, and looks for it only when it is woken."""

TOOLS = {"sessions_spawn": {"attachments": {"enabled": True, "retainOnSessionKeep": False}}}


class Unasked(Hooked):
    """Does what is due one by one, when it is woken."""

    def __init__(self, *places: Any, **more: Any) -> None:
        super().__init__(*places, **more)
        self._prefix = (sys.executable, "-c", _UNASKED)


@pytest.fixture(
    scope="module",
    params=nightly_but([[], ["subagentSpawned"]], [["subagentSpawned"]]),
    ids=["no hook", "a hook"],
)
def server(
    request: pytest.FixtureRequest,
    databases: Databases,
    outside: HookServer,
) -> Iterator[Hooked]:
    url = databases.create()
    hooks = outside.hooks(*request.param, timeoutSeconds=60)
    with new_place() as place:
        data = place / "data"
        with Unasked(data, place / "notes", url, hooks, tools=TOOLS) as server:
            yield server
            outside.let_go()
    databases.drop(url)


def test_files_are_removed_once_a_run_is_announced_whoever_hangs(
    server: Hooked, outside: HookServer
) -> None:
    outside.forget()
    outside.replies("subagentSpawned", Reply(is_held=True), Reply())
    hangs = server.asked_for(threaded("hangs", thread=False))
    body = threaded("quick", thread=False, attachments=ATTACHED)
    quick = server.asked_for(body)
    server.comes_to(quick, "RunAnnounced", "undo:attachments:done")
    assert "hook:subagentSpawned:done" not in server.steps(hangs)
    place = server.folder / "work" / ".openclaw" / "attachments" / quick
    wait_for("the files to be gone", lambda: not place.exists())
