"""Announcements that are sent to webhooks: to whom, how often, and what is known of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.announcing_server import (
    ATTEMPTS_MAX,
    KEYS,
    SECRETS,
    Announcing,
    announce,
    announcing_on,
    is_signed,
    webhook,
)
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import ORIGIN, threaded

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def one_announcing(databases: Databases, outside: HookServer) -> Iterator[Announcing]:
    section = announce(
        webhook(outside, "all", secrets=list(SECRETS)),
        webhook(outside, "discord", origin={"channel": "discord", "to": "channel:*"}),
        webhook(outside, "ops", agents=["ops"]),
        webhook(outside, "metadata", agents=["main"], origin={"channel": "inside"})
        | {"url": "http://169.254.169.254/latest"},
    )
    with announcing_on(databases, section) as server:
        yield server


@pytest.fixture
def server(one_announcing: Announcing, outside: HookServer) -> Iterator[Announcing]:
    outside.forget()
    yield one_announcing
    outside.let_go()


def spawned(server: Announcing, name: str, **origin: Any) -> tuple[str, str]:
    """A run that a session asked for, there; gives its id and the session's key."""
    body = threaded(name, thread=False)
    body["requester"] = {"sessionKey": f"agent:main:{name}", **origin}
    return server.asked_for(body), f"agent:main:{name}"


def without_webhooks(config: dict[str, Any]) -> None:
    config["spawnlog"]["announce"]["webhooks"] = []


def attempts(server: Announcing, run_id: str, name: str) -> list[dict[str, Any]]:
    """What is on record of a delivery, without the errors' texts."""
    items = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    return [
        {"type": one["type"], **one["payload"]}
        for one in items
        if one["type"].startswith("Effect") and one["payload"]["name"] == name
    ]


def test_a3_a40_a_result_is_sent_where_its_asker_is_and_to_nobody_else(
    server: Announcing, outside: HookServer
) -> None:
    run_id, key = spawned(server, "where", **ORIGIN)
    entry = server.delivery(key, "discord", "delivered")
    server.delivery(key, "all", "delivered")
    assert {call.hook for call in outside.calls()} == {"all", "discord"}
    (call,) = outside.calls("discord")
    assert call.body["type"] == "announcement"
    assert call.body["timestamp"] == entry["createdAt"]
    sent = call.body["data"]
    assert (sent["runId"], sent["text"], sent["dedupeKey"]) == (
        run_id,
        entry["text"],
        entry["dedupeKey"],
    )
    assert sent["origin"] == ORIGIN
    assert sent["requester"] == {"sessionKey": key, "agentId": "main", "depth": 0}
    assert sent["position"] == entry["position"]
    assert attempts(server, run_id, "discord") == [
        {
            "type": "EffectAttempted",
            "kind": "webhook",
            "name": "discord",
            "attempt": 1,
            "statusCode": 204,
            "outcome": None,
            "error": None,
            "retryAfterSeconds": None,
        }
    ]


def test_a_message_is_signed_with_each_secret(server: Announcing, outside: HookServer) -> None:
    spawned(server, "signed")
    (call,) = outside.called("all")
    assert [is_signed(call, key) for key in KEYS] == [True, True]
    assert not is_signed(call, b"another key of 24 bytes.")
    assert call.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(500), "the webhook answered HTTP 500"),
        (Reply(429), "the webhook answered HTTP 429"),
        (Reply(is_held=True), "the webhook did not answer in 2 s"),
        (Reply(breaks_off=True), "the webhook broke the connection off"),
    ],
)
def test_what_a_receiver_does_not_take_is_sent_again_with_one_key(
    server: Announcing, outside: HookServer, reply: Reply, said: str
) -> None:
    outside.replies("all", reply, Reply(204))
    name = f"again-{reply.status}-{reply.is_held}-{reply.breaks_off}".lower()
    run_id, key = spawned(server, name)
    entry = server.delivery(key, "all", "delivered")
    calls = outside.calls("all")
    assert {call.key for call in calls} == {f"announcement-{run_id}"}
    assert len(calls) == 2
    assert calls[0].sent == calls[1].sent
    failed, taken = attempts(server, run_id, "all")
    assert (failed["attempt"], taken["attempt"]) == (1, 2)
    assert failed["retryAfterSeconds"] == 1
    assert failed["error"]["bytes"] == len(said)
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    assert [one["texts"]["error"] for one in events if "texts" in one] == [said]
    assert [one["runId"] for one in server.inbox(key)] == [run_id]
    assert entry["acknowledgedAt"] is None


def test_a_receiver_that_asks_for_a_pause_is_left_alone_for_it(
    server: Announcing, outside: HookServer
) -> None:
    outside.replies("all", Reply(503, headers={"Retry-After": "3600"}))
    run_id, key = spawned(server, "pause")

    def failed() -> list[dict[str, Any]]:
        return attempts(server, run_id, "all")

    outside.called("all")
    entry = server.delivery(key, "all", "due")
    server.comes_to(run_id, "webhook:all:failed")
    (first,) = failed()
    assert first["retryAfterSeconds"] == 3600
    assert entry["deliveries"][0]["state"] == "due"


def test_what_was_not_taken_often_enough_is_parked_told_and_redriven_with_a_reason(
    server: Announcing, outside: HookServer
) -> None:
    outside.replies("all", Reply(500))
    run_id, key = spawned(server, "parked")
    server.run(run_id, "announced")
    path = f"/v1/sessions/{key}/announcements/{run_id}/ack"
    assert server.http.post(path, json={}).is_success
    entry = server.delivery(key, "all", "parked")
    assert len(outside.calls("all")) == ATTEMPTS_MAX
    story = attempts(server, run_id, "all")
    assert story[-1] == {
        "type": "EffectParked",
        "kind": "webhook",
        "name": "all",
        "attempts": ATTEMPTS_MAX,
        "reason": "attempts",
    }
    # Its reader had taken it, and is told that it did not arrive.
    assert entry["acknowledgedAt"] is None
    assert entry["deliveries"][0]["error"] == "the webhook answered HTTP 500"
    (again,) = server.http.get(
        f"/v1/sessions/{key}/announcements", params={"after": entry["position"] - 1}
    ).json()["items"]
    assert again == entry
    ledger = server.http.get("/v1/announcements", params={"state": "parked"}).json()["items"]
    assert entry in ledger
    outside.replies("all", Reply(204))
    redrive = f"/v1/announcements/{run_id}/redrive"
    answer = server.http.post(redrive, json={"reason": "the gateway is back", "webhook": "all"})
    assert answer.json() == {"runId": run_id, "webhooks": ["all"], "hooks": []}
    delivered = server.delivery(key, "all", "delivered")
    assert delivered["deliveries"][0]["attempts"] == ATTEMPTS_MAX + 1
    ledger = server.http.get("/v1/announcements", params={"state": "parked"}).json()["items"]
    assert run_id not in [one["runId"] for one in ledger]
    nothing = server.http.post(redrive, json={"reason": "once more"})
    problem_of(nothing, 409, "no_announcement")
    assert [one["runId"] for one in server.inbox(key)] == [run_id]


def test_what_was_to_go_to_a_webhook_that_is_taken_away_is_parked_and_redriven_when_it_is_back(
    server: Announcing, outside: HookServer
) -> None:
    outside.replies("all", Reply(503, headers={"Retry-After": "2"}))
    run_id, key = spawned(server, "taken-away")
    outside.called("all")
    with server.configured(without_webhooks):
        entry = server.delivery(key, "all", "parked")
        (own,) = [one for one in entry["deliveries"] if one["webhook"] == "all"]
        assert own["parkedFor"] == "not_configured"
    outside.replies("all", Reply(204))
    redrive = f"/v1/announcements/{run_id}/redrive"
    assert server.http.post(redrive, json={"reason": "it is back"}).is_success
    server.delivery(key, "all", "delivered")


def test_an_answer_that_is_for_good_is_not_waited_for(
    server: Announcing, outside: HookServer
) -> None:
    outside.replies("all", Reply(410))
    run_id, key = spawned(server, "gone")
    server.delivery(key, "all", "parked")
    assert len(outside.calls("all")) == 1
    assert [one.get("reason") for one in attempts(server, run_id, "all")] == [None, "refused"]


def test_a_receiver_that_hangs_is_not_in_the_way_of_another_one(
    server: Announcing, outside: HookServer
) -> None:
    outside.replies("all", Reply(503, headers={"Retry-After": "3600"}))
    outside.replies("discord", Reply(500), Reply(204))
    run_id, key = spawned(server, "beside", **ORIGIN)
    server.delivery(key, "discord", "delivered")
    # The one that wants to be left alone is left alone while the other is sent it again.
    assert len(outside.calls("all")) == 1
    (pause,) = attempts(server, run_id, "all")
    assert pause["retryAfterSeconds"] == 3600


def test_an_address_at_which_machines_tell_their_secrets_is_never_called(
    server: Announcing, outside: HookServer
) -> None:
    _, key = spawned(server, "inside", channel="inside", to="x")
    entry = server.delivery(key, "metadata", "parked")
    (own,) = [one for one in entry["deliveries"] if one["webhook"] == "metadata"]
    assert own["error"] == (
        "the webhook resolves to a link-local address, and those are never called"
    )
