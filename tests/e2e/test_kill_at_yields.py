"""A server is killed at each step of a yield, a wake, a queue and a steer: nothing is lost, and
nothing is there twice."""

from collections import Counter
from contextlib import suppress
from itertools import product
from typing import Any

import httpx2
import pytest

from tests.support.servers.yielding_server import Yielding
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server

MOMENTS = ("before", "after")
OF_A_YIELD = (
    "YieldRequested",
    "RunEnded",
    "RunAnnounced",
    "ChildrenReported",
    "RunContinued",
    "SessionContinued",
    "ContinuationPlanned",
    "RunStarted",
)
OF_A_STEER = ("MessageQueued", "RunEnded", "RunContinued", "RunStarted")
OF_A_QUEUE = ("MessageQueued", "RunAnnounced", "RunContinued", "RunQueued")


@pytest.fixture
def server(one_yielding: Yielding) -> Yielding:
    one_yielding.alive()
    return one_yielding


def name_of(moment: str, event: str) -> str:
    return f"{moment}-{event.lower()}"


def settled(server: Yielding, name: str) -> list[dict[str, Any]]:
    """The runs of a session when all is over, and every one is in an inbox once at most."""
    first = server.http.get("/v1/runs", params={"label": name, "order": "asc"}).json()["items"][0]
    runs = server.runs_of(str(first["runId"]))
    entries = server.announcements(name)
    assert max(Counter(one["runId"] for one in entries).values()) == 1
    session = server.session(f"agent:actor:{name}")
    assert (session["activeChildren"], session["pendingDescendants"]) == (0, 0)
    for one in runs:
        events = Counter(server.types(str(one["runId"])))
        assert {events[name] for name in ("RunEnded", "RunAnnounced")} == {1}, events
    return runs


@pytest.mark.parametrize(
    ("moment", "event"),
    nightly_but(product(MOMENTS, OF_A_YIELD), [("after", "ChildrenReported")]),
)
def test_a_yield_survives_a_kill(server: Yielding, moment: str, event: str) -> None:
    name = name_of(moment, event)
    child = {"awaits": f"{name}.go"}
    server.asks(name, {"children": [child], "turns": 1, "awaits": f"{name}.yields"})
    server.turn(name, 1)
    server.is_to_die(f"{moment} {event}")
    server.lets(f"{name}.yields")
    server.lets(f"{name}.go")
    server.has_died()
    server.again()
    server.announcements(name)
    runs = settled(server, name)
    woken = [one for one in runs if one["cause"] == "wake"]
    told = [one for run in woken for one in reports_in(server, str(run["runId"]))]
    assert max(Counter(told).values(), default=0) <= 1, "a report was told twice"
    # Whatever died with the server, its requester has heard of the end of the session, once.
    assert [one["announcement"]["state"] for one in runs].count("delivered") == 1
    if any(one["yielded"] for one in runs):
        assert told or runs[-1]["outcome"] == "error"


@pytest.mark.parametrize(
    ("moment", "event"), nightly_but(product(MOMENTS, OF_A_STEER), [("after", "MessageQueued")])
)
def test_a_steer_survives_a_kill(server: Yielding, moment: str, event: str) -> None:
    name = "steer-" + name_of(moment, event)
    first = server.asks(name, {"awaits": f"{name}.go"})
    server.turn(name, 1)
    server.is_to_die(f"{moment} {event}")
    with suppress(httpx2.TransportError):
        server.message(first, "do this instead", "steer")
    server.has_died()
    server.lets(f"{name}.go")
    server.again()
    server.announcements(name)
    runs = settled(server, name)
    queued = server.types(first).count("MessageQueued")
    assert [one["cause"] for one in runs] == [None, "steer"][: 1 + queued]


@pytest.mark.parametrize(
    ("moment", "event"), nightly_but(product(MOMENTS, OF_A_QUEUE), [("after", "RunAnnounced")])
)
def test_a_message_that_waits_survives_a_kill(server: Yielding, moment: str, event: str) -> None:
    name = "queue-" + name_of(moment, event)
    first = server.asks(name, {"awaits": f"{name}.go"})
    server.turn(name, 1)
    is_asked_late = event == "MessageQueued"
    if not is_asked_late:
        assert server.message(first, "and then?").status_code == 202
    server.is_to_die(f"{moment} {event}")
    if is_asked_late:
        with suppress(httpx2.TransportError):
            server.message(first, "and then?")
    server.lets(f"{name}.go")
    server.has_died()
    server.again()
    queued = server.types(first).count("MessageQueued")
    server.announcements(name, 1 + queued)
    runs = settled(server, name)
    assert [one["cause"] for one in runs] == [None, "message"][: 1 + queued]


def reports_in(server: Yielding, run_id: str) -> list[str]:
    """The children that the message of a run tells of, by the event."""
    items = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    return [str(one) for one in items[0]["payload"]["completions"]]
