"""kill -9 around each attempt of a delivery: its receiver gets it at least once, with one key, and
the inbox has it once."""

from collections.abc import Iterator

import pytest

from tests.support.servers.announcing_server import (
    ATTEMPTS_MAX,
    Announcing,
    announce,
    announcing_on,
    webhook,
)
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import threaded
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

SENDING = (
    "before RunAnnounced",
    "after RunAnnounced",
    "before webhook:all",
    "after webhook:all",
    "before EffectAttempted:webhook",
    "after EffectAttempted:webhook",
)


@pytest.fixture(scope="module")
def one_announcing(databases: Databases, outside: HookServer) -> Iterator[Announcing]:
    with announcing_on(databases, announce(webhook(outside, "all"))) as server:
        yield server


@pytest.fixture
def server(one_announcing: Announcing, outside: HookServer) -> Announcing:
    outside.forget()
    one_announcing.alive()
    return one_announcing


def name_of(moment: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in moment.lower())


@pytest.mark.parametrize("moment", nightly_but(SENDING, ["after webhook:all"]))
def test_a_result_arrives_when_its_server_is_killed_while_it_is_sent(
    server: Announcing, outside: HookServer, moment: str
) -> None:
    body = threaded(name_of(moment), thread=False)
    server.dies(moment, key=moment, **body)
    server.again()
    run_id = str(server.answer_again(key=moment, **body).json()["runId"])
    key = body["requester"]["sessionKey"]
    server.delivery(key, "all", "delivered")
    calls = outside.calls("all")
    assert {call.key for call in calls} == {f"announcement-{run_id}"}
    assert 1 <= len(calls) <= 2
    assert len({call.sent for call in calls}) == 1
    assert [one["runId"] for one in server.inbox(key)] == [run_id]
    assert len(server.recorded(run_id, "EffectAttempted")) == 1


@pytest.mark.parametrize(
    "moment",
    nightly_but(["before EffectParked", "after EffectParked"], ["after EffectParked"]),
)
def test_what_is_parked_is_told_once_when_its_server_is_killed_meanwhile(
    server: Announcing, outside: HookServer, moment: str
) -> None:
    outside.replies("all", Reply(410))
    body = threaded(name_of(moment), thread=False)
    server.dies(moment, key=moment, **body)
    server.again()
    run_id = str(server.answer_again(key=moment, **body).json()["runId"])
    key = body["requester"]["sessionKey"]
    entry = server.delivery(key, "all", "parked")
    assert len(server.recorded(run_id, "EffectParked")) == 1
    assert [one["runId"] for one in server.inbox(key)] == [run_id]
    assert entry["deliveries"][0]["attempts"] == 1 < ATTEMPTS_MAX


@pytest.mark.parametrize(
    "moment",
    nightly_but(["before EffectRedriven", "after EffectRedriven"], ["after EffectRedriven"]),
)
def test_what_is_redriven_arrives_when_its_server_is_killed_meanwhile(
    server: Announcing, outside: HookServer, moment: str
) -> None:
    outside.replies("all", Reply(410))
    body = threaded(name_of(moment), thread=False)
    run_id, key = server.asked_for(body), body["requester"]["sessionKey"]
    server.delivery(key, "all", "parked")
    outside.replies("all", Reply(204))
    server.is_to_die(moment)
    path = f"/v1/announcements/{run_id}/redrive"
    server.posted_in_vain(path, {"reason": "it is back"})
    server.has_died()
    server.again()
    if moment.startswith("before"):
        # Nothing was recorded, and nobody was told that it was.
        assert server.http.post(path, json={"reason": "it is back"}).is_success
    server.delivery(key, "all", "delivered")
    assert len(server.recorded(run_id, "EffectRedriven")) == 1
    assert {call.key for call in outside.calls("all")} == {f"announcement-{run_id}"}
