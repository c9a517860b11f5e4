"""What runs wait for is on record alone: another server goes on with them, with one slot in all."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked_server import threaded
from tests.support.servers.talking_server import Talking

pytestmark = pytest.mark.server


@pytest.fixture
def server(one_talking: Talking, outside: HookServer) -> Iterator[Talking]:
    outside.forget()
    yield one_talking
    outside.let_go()
    one_talking.alive()


def asked(server: Talking, name: str, label: str, agent_id: str = "plain", **more: Any) -> str:
    return server.asked_for(threaded(name, agentId=agent_id, label=label, thread=False, **more))


def test_what_ended_with_its_server_is_settled_by_the_next_one(server: Talking) -> None:
    held = asked(server, "shut", "held", "lingerer")
    server.began(held)
    vain = asked(server, "shut", "vain", dependsOn=["held"])
    behind = asked(server, "shut", "behind", dependsOn=["vain"])
    any_end = asked(server, "shut", "any", dependsOn=[{"run": "held", "require": "ended"}])
    server.stop()
    with server.twin() as other:
        assert other.run(held, "announced")["error"].startswith("interrupted")
        assert other.run(vain, "announced")["error"] == (
            f'it was not started: "held" (run {held}), which it depends on, ended as error'
        )
        assert f'"vain" (run {vain})' in other.run(behind, "announced")["error"]
        assert other.run(any_end, "announced")["outcome"] == "success"
        assert other.session("agent:main:shut")["activeChildren"] == 0
        told = {one["runId"] for one in other.inbox("agent:main:shut")}
        assert told == {held, vain, behind, any_end}


def test_nobody_waits_for_ever_with_one_slot_for_all(server: Talking) -> None:
    """Those in line hold no slot that one before them needs, whoever was asked for first."""
    held = asked(server, "slot", "r0", "lingerer")
    server.began(held)
    runs = [held]
    for number in range(1, 5):
        runs.append(asked(server, "slot", f"r{number}", dependsOn=[f"r{number - 1}"]))
    # It is in line for the one slot before any of those that wait.
    beside = asked(server, "slot-beside", "beside")
    server.let_go(held)
    ends = [server.run(run_id, "announced") for run_id in (*runs, beside)]
    assert {one["outcome"] for one in ends} == {"success"}
    started = [one["startedAt"] for one in ends[:-1]]
    assert started == sorted(started)
