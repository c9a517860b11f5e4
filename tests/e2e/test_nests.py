"""Nests of orchestrators, each of which yields for the one below, on two servers in lanes of one;
one of the servers is killed."""

import os
from collections import Counter

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.running_server import wait_for
from tests.support.servers.yielding_server import Yielding, yielding_on

pytestmark = pytest.mark.server

NESTS = int(os.environ.get("SPAWNLOG_TEST_NESTS", "12"))
"""How many: a longer run takes 200."""

SECONDS_MAX = 30 + 3 * NESTS
NEST = {"turns": 1, "children": [{"turns": 1, "children": [{"turns": 1, "children": [{}]}]}]}


@pytest.mark.nightly
@pytest.mark.timeout(60 + SECONDS_MAX)
def test_nests_that_yield_finish_though_a_server_is_killed(databases: Databases) -> None:
    with yielding_on(databases, maxChildrenPerAgent=20) as one:
        two = one.twin()
        two.start()
        try:
            names = [f"nest-{number}" for number in range(NESTS)]
            for number, name in enumerate(names):
                (two if number % 2 else one).asks(name, NEST)
            wait_for("a nest to be woken", lambda: list(one.folder.glob("nest-*.turn-2")))
            two.kill()
            wait_for(
                "every nest to be announced",
                lambda: all(_is_announced(one, name) for name in names),
                seconds=SECONDS_MAX,
            )
            log = one.whole_log()
        finally:
            two.stop()
        ends = [event for event in log if event["type"] == "RunEnded"]
        lost = [event for event in ends if event["payload"]["reason"] == "interrupted"]
        woken = Counter(
            told
            for event in log
            if event["type"] == "MessageReceived"
            for told in event["payload"]["completions"]
        )
        assert set(woken.values()) == {1}
        # Of a nest that lost nobody each of the three orchestrators was woken once.
        assert len(woken) >= 3 * (NESTS - len(lost))
        for name in names:
            (entry,) = one.announcements(name)
            assert entry["status"] in ("success", "error")
            session = one.session(f"agent:actor:{name}")
            assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)


def _is_announced(server: Yielding, name: str) -> bool:
    path = f"/v1/sessions/agent:actor:{name}/announcements"
    return bool(server.http.get(path).json()["items"])
