"""Announcements are sent to webhooks at least once, with one key, also after a kill."""

import base64
import hmac
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import KEYS, SECRETS, Call, HookServer, Reply
from tests.support.servers.hooked import ORIGIN, hooked, threaded
from tests.support.servers.server import Server, serving
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

ATTEMPTS_MAX = 4


@pytest.fixture(scope="module")
def one_announcing(databases: Databases, one_outside: HookServer) -> Iterator[Server]:
    webhook = one_outside.webhook
    webhooks = [
        webhook("all", secrets=list(SECRETS)),
        webhook("discord", origin={"channel": "discord", "to": "channel:*"}),
        webhook("ops", agents=["ops"]),
        webhook("metadata", agents=["main"], origin={"channel": "inside"})
        | {"url": "http://169.254.169.254/latest"},
    ]
    announce = {"webhooks": webhooks, "attemptsMax": ATTEMPTS_MAX, "retrySecondsMax": 1}

    def config(folder: Path) -> dict[str, Any]:
        return hooked(folder, {}, announce=announce)

    with serving(databases, config, dies=True) as running:
        yield running


@pytest.fixture
def server(one_announcing: Server, outside: HookServer) -> Server:
    one_announcing.ensure_running()
    return one_announcing


def delivery(server: Server, session_key: str, webhook_id: str, state: str) -> dict[str, Any]:
    """Return the one announcement of a session, once its delivery has this state."""

    def found() -> dict[str, Any] | None:
        for entry in server.inbox(session_key):
            for one in entry["deliveries"]:
                if (one["webhook"], one["state"]) == (webhook_id, state):
                    return entry
        return None

    return wait_for(f"{webhook_id} of {session_key} is {state}", found)


def is_signed(call: Call, key: bytes) -> bool:
    """Return True if a receiver that knows this key takes the message for ours."""
    at = call.headers["webhook-timestamp"]
    signed = b".".join((call.headers["webhook-id"].encode(), at.encode(), call.sent))
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return f"v1,{expected}" in call.headers["webhook-signature"].split(" ")


def spawned(server: Server, name: str, **origin: Any) -> tuple[str, str]:
    """A run that a session asked for, there; gives its id and the session's key."""
    body = threaded(name, thread=False)
    body["requester"] = {"sessionKey": f"agent:main:{name}", **origin}
    return server.accepted(**body), f"agent:main:{name}"


def without_webhooks(config: dict[str, Any]) -> None:
    config["spawnlog"]["announce"]["webhooks"] = []


def attempts(server: Server, run_id: str, name: str) -> list[dict[str, Any]]:
    """What is on record of a delivery, without the errors' texts."""
    items = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    return [
        {"type": one["type"], **one["payload"]}
        for one in items
        if one["type"].startswith("Effect") and one["payload"]["name"] == name
    ]


@pytest.mark.server
def test_a3_a40_a_result_is_sent_where_its_asker_is_and_to_nobody_else(
    server: Server, outside: HookServer
) -> None:
    run_id, key = spawned(server, "where", **ORIGIN)
    entry = delivery(server, key, "discord", "delivered")
    delivery(server, key, "all", "delivered")
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


@pytest.mark.server
def test_a_message_is_signed_with_each_secret(server: Server, outside: HookServer) -> None:
    spawned(server, "signed")
    (call,) = outside.called("all")
    assert [is_signed(call, key) for key in KEYS] == [True, True]
    assert not is_signed(call, b"another key of 24 bytes.")
    assert call.headers["content-type"] == "application/json"


@pytest.mark.server
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
    server: Server, outside: HookServer, reply: Reply, said: str
) -> None:
    outside.replies("all", reply, Reply(204))
    name = f"again-{reply.status}-{reply.is_held}-{reply.breaks_off}".lower()
    run_id, key = spawned(server, name)
    entry = delivery(server, key, "all", "delivered")
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


@pytest.mark.server
def test_a_receiver_that_asks_for_a_pause_is_left_alone_for_it(
    server: Server, outside: HookServer
) -> None:
    outside.replies("all", Reply(503, headers={"Retry-After": "3600"}))
    run_id, key = spawned(server, "pause")

    def failed() -> list[dict[str, Any]]:
        return attempts(server, run_id, "all")

    outside.called("all")
    entry = delivery(server, key, "all", "due")
    server.wait_steps(run_id, "webhook:all:failed")
    (first,) = failed()
    assert first["retryAfterSeconds"] == 3600
    assert entry["deliveries"][0]["state"] == "due"


@pytest.mark.server
def test_what_was_not_taken_often_enough_is_parked_told_and_redriven_with_a_reason(
    server: Server, outside: HookServer
) -> None:
    outside.replies("all", Reply(500))
    run_id, key = spawned(server, "parked")
    server.run(run_id, "announced")
    path = f"/v1/sessions/{key}/announcements/{run_id}/ack"
    assert server.http.post(path, json={}).is_success
    entry = delivery(server, key, "all", "parked")
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
    delivered = delivery(server, key, "all", "delivered")
    assert delivered["deliveries"][0]["attempts"] == ATTEMPTS_MAX + 1
    ledger = server.http.get("/v1/announcements", params={"state": "parked"}).json()["items"]
    assert run_id not in [one["runId"] for one in ledger]
    nothing = server.http.post(redrive, json={"reason": "once more"})
    problem_of(nothing, 409, "no_announcement")
    assert [one["runId"] for one in server.inbox(key)] == [run_id]


@pytest.mark.server
def test_what_was_to_go_to_a_webhook_that_is_taken_away_is_parked_and_redriven_when_it_is_back(
    server: Server, outside: HookServer
) -> None:
    outside.replies("all", Reply(503, headers={"Retry-After": "2"}))
    run_id, key = spawned(server, "taken-away")
    outside.called("all")
    with server.configured(without_webhooks):
        entry = delivery(server, key, "all", "parked")
        (own,) = [one for one in entry["deliveries"] if one["webhook"] == "all"]
        assert own["parkedFor"] == "not_configured"
    outside.replies("all", Reply(204))
    redrive = f"/v1/announcements/{run_id}/redrive"
    assert server.http.post(redrive, json={"reason": "it is back"}).is_success
    delivery(server, key, "all", "delivered")


@pytest.mark.server
def test_an_answer_that_is_for_good_is_not_waited_for(server: Server, outside: HookServer) -> None:
    outside.replies("all", Reply(410))
    run_id, key = spawned(server, "gone")
    delivery(server, key, "all", "parked")
    assert len(outside.calls("all")) == 1
    assert [one.get("reason") for one in attempts(server, run_id, "all")] == [None, "refused"]


@pytest.mark.server
def test_a_receiver_that_hangs_is_not_in_the_way_of_another_one(
    server: Server, outside: HookServer
) -> None:
    outside.replies("all", Reply(503, headers={"Retry-After": "3600"}))
    outside.replies("discord", Reply(500), Reply(204))
    run_id, key = spawned(server, "beside", **ORIGIN)
    delivery(server, key, "discord", "delivered")
    # The one that wants to be left alone is left alone while the other is sent it again.
    assert len(outside.calls("all")) == 1
    (pause,) = attempts(server, run_id, "all")
    assert pause["retryAfterSeconds"] == 3600


@pytest.mark.server
def test_an_address_at_which_machines_tell_their_secrets_is_never_called(
    server: Server, outside: HookServer
) -> None:
    _, key = spawned(server, "inside", channel="inside", to="x")
    entry = delivery(server, key, "metadata", "parked")
    (own,) = [one for one in entry["deliveries"] if one["webhook"] == "metadata"]
    assert own["error"] == (
        "the webhook resolves to a link-local address, and those are never called"
    )


SENDING = (
    "before RunAnnounced",
    "after RunAnnounced",
    "before webhook:all",
    "after webhook:all",
    "before EffectAttempted:webhook",
    "after EffectAttempted:webhook",
)


def name_of(moment: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in moment.lower())


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(SENDING, ["after webhook:all"]))
def test_a_result_arrives_when_its_server_is_killed_while_it_is_sent(
    server: Server, outside: HookServer, moment: str
) -> None:
    body = threaded(name_of(moment), thread=False)
    server.die_during(moment, key=moment, **body)
    server.restart()
    run_id = str(server.spawn_again(key=moment, **body).json()["runId"])
    key = body["requester"]["sessionKey"]
    delivery(server, key, "all", "delivered")
    calls = outside.calls("all")
    assert {call.key for call in calls} == {f"announcement-{run_id}"}
    assert 1 <= len(calls) <= 2
    assert len({call.sent for call in calls}) == 1
    assert [one["runId"] for one in server.inbox(key)] == [run_id]
    assert len(attempts(server, run_id, "all")) == 1


@pytest.mark.kill
@pytest.mark.parametrize(
    "moment",
    nightly_but(["before EffectParked", "after EffectParked"], ["after EffectParked"]),
)
def test_what_is_parked_is_told_once_when_its_server_is_killed_meanwhile(
    server: Server, outside: HookServer, moment: str
) -> None:
    outside.replies("all", Reply(410))
    body = threaded(name_of(moment), thread=False)
    server.die_during(moment, key=moment, **body)
    server.restart()
    run_id = str(server.spawn_again(key=moment, **body).json()["runId"])
    key = body["requester"]["sessionKey"]
    entry = delivery(server, key, "all", "parked")
    assert len(server.payloads(run_id, "EffectParked")) == 1
    assert [one["runId"] for one in server.inbox(key)] == [run_id]
    assert entry["deliveries"][0]["attempts"] == 1 < ATTEMPTS_MAX


@pytest.mark.kill
@pytest.mark.parametrize(
    "moment",
    nightly_but(["before EffectRedriven", "after EffectRedriven"], ["after EffectRedriven"]),
)
def test_what_is_redriven_arrives_when_its_server_is_killed_meanwhile(
    server: Server, outside: HookServer, moment: str
) -> None:
    outside.replies("all", Reply(410))
    body = threaded(name_of(moment), thread=False)
    run_id, key = server.accepted(**body), body["requester"]["sessionKey"]
    delivery(server, key, "all", "parked")
    outside.replies("all", Reply(204))
    server.die_at(moment)
    path = f"/v1/announcements/{run_id}/redrive"
    with suppress(httpx2.TransportError):
        server.http.post(path, json={"reason": "it is back"})
    server.wait_death()
    server.restart()
    if moment.startswith("before"):
        # Nothing was recorded, and nobody was told that it was.
        assert server.http.post(path, json={"reason": "it is back"}).is_success
    delivery(server, key, "all", "delivered")
    assert len(server.payloads(run_id, "EffectRedriven")) == 1
    assert {call.key for call in outside.calls("all")} == {f"announcement-{run_id}"}
