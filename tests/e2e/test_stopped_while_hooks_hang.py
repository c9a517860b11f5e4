"""A server that is told to stop ends in time, whoever does not answer it."""

from collections.abc import Iterator

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import hooked_on, threaded

pytestmark = pytest.mark.server


@pytest.fixture
def outside() -> Iterator[HookServer]:
    with HookServer() as server:
        yield server


def test_a_hook_that_hangs_holds_up_neither_other_runs_nor_the_end(
    databases: Databases, outside: HookServer
) -> None:
    hooks = outside.hooks("subagentDeliveryTarget", timeoutSeconds=60)
    outside.replies("subagentDeliveryTarget", Reply(is_held=True))
    with hooked_on(databases, hooks) as server:
        slow = server.asked_for(threaded("slow", thread=False))
        outside.called("subagentDeliveryTarget")
        outside.replies("subagentDeliveryTarget", Reply(204))
        quick = server.asked_for(threaded("quick", thread=False))
        assert server.run(quick, "announced")["outcome"] == "success"
        assert server.run(slow)["stage"] == "ended"
        assert server.stop() == 0
        assert "announce: what is due is left to the next start" in server.log()
