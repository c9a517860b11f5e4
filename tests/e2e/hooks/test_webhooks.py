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
from tests.support.servers.hooked import ORIGIN, hooked, name_of, threaded
from tests.support.servers.server import Server, serving
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

ATTEMPTS_MAX = 4
TOKENS = {scope: f"token-of-scope-{scope}-0123456789abcdef" for scope in ("read", "control")}


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
        tokens = []
        for scope, token in TOKENS.items():
            file = folder / scope
            file.write_text(token, "utf-8")
            file.chmod(0o600)
            sessions = ["agent:main:several-0"]
            tokens.append(
                {"id": scope, "scopes": [scope], "sessions": sessions, "token": {"file": str(file)}}
            )
        return hooked(folder, {}, announce=announce, tokens=tokens)

    with serving(databases, config, dies=True) as running:
        yield running


@pytest.fixture
def server(one_announcing: Server, outside: HookServer) -> Server:
    one_announcing.ensure_running()
    return one_announcing


def delivery(
    server: Server, session_key: str, webhook_id: str, state: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the one announcement of a session and its delivery, once that has this state."""

    def found() -> tuple[dict[str, Any], dict[str, Any]] | None:
        for entry in server.inbox(session_key):
            for delivery in entry["deliveries"]:
                if (delivery["webhook"], delivery["state"]) == (webhook_id, state):
                    return entry, delivery
        return None

    return wait_for(f"{webhook_id} of {session_key} is {state}", found)


def is_signed(call: Call, key: bytes) -> bool:
    """Return True if a receiver that knows this key takes the message for ours."""
    at = call.headers["webhook-timestamp"]
    signed = b".".join((call.headers["webhook-id"].encode(), at.encode(), call.sent))
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return f"v1,{expected}" in call.headers["webhook-signature"].split(" ")


def spawned(server: Server, name: str, **origin: Any) -> tuple[str, str]:
    """Spawn a run for a session, which is there. Return its id and the session's key."""
    key = f"agent:main:{name}"
    body = threaded(name, thread=False, requester={"sessionKey": key, **origin})
    return server.accepted(**body), key


def redrive(server: Server, run_id: str, **body: Any) -> httpx2.Response:
    path = f"/v1/announcements/{run_id}/redrive"
    return server.http.post(path, json={"reason": "the gateway is back", **body})


def require_one_key(outside: HookServer, run_id: str) -> None:
    """Require that all calls about a run have one key and one body."""
    calls = outside.calls("all")
    assert {call.key for call in calls} == {f"announcement-{run_id}"}
    assert len({call.sent for call in calls}) == 1


@pytest.mark.server
def test_a3_a40_result_is_sent_where_its_asker_is(server: Server, outside: HookServer) -> None:
    _, key = spawned(server, "where", **ORIGIN)
    entry, _ = delivery(server, key, "discord", "delivered")
    delivery(server, key, "all", "delivered")
    assert {call.hook for call in outside.calls()} == {"all", "discord"}
    (call,) = outside.calls("discord")
    assert (call.body["type"], call.body["timestamp"]) == ("announcement", entry["createdAt"])
    result = ("text", "dedupeKey", "position", "runId")
    assert call.body["data"] == {
        **call.body["data"],
        **{name: entry[name] for name in result},
        "origin": ORIGIN,
        "requester": {"sessionKey": key, "agentId": "main", "depth": 0},
    }
    (signed,) = outside.calls("all")
    assert [is_signed(signed, key) for key in (*KEYS, b"another key of 24 bytes.")] == [
        *(True, True),
        False,
    ]
    assert signed.headers["content-type"] == "application/json"


@pytest.mark.server
@pytest.mark.parametrize(
    ("reply", "error_text"),
    [
        (Reply(429), "the webhook responded with HTTP 429"),
        (Reply(is_held=True), "the webhook did not answer in 2 s"),
        (Reply(breaks_off=True), "the webhook closed the connection"),
    ],
    ids=["429", "slow", "broken"],
)
def test_message_that_is_not_taken_is_sent_again(
    server: Server,
    outside: HookServer,
    request: pytest.FixtureRequest,
    reply: Reply,
    error_text: str,
) -> None:
    outside.replies("all", reply, Reply(204))
    run_id, key = spawned(server, f"again-{request.node.callspec.id}")
    delivery(server, key, "all", "delivered")
    assert len(outside.calls("all")) == 2
    require_one_key(outside, run_id)
    failed, taken = server.payloads(run_id, "EffectAttempted")
    assert (failed["attempt"], failed["retryAfterSeconds"], taken["attempt"]) == (1, 1, 2)
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    assert [event["texts"]["error"] for event in events if "texts" in event] == [error_text]
    assert [run["runId"] for run in server.inbox(key)] == [run_id]


@pytest.mark.server
def test_parked_announcement_is_told_and_redriven(server: Server, outside: HookServer) -> None:
    outside.replies("all", Reply(500))
    run_id, key = spawned(server, "parked")
    server.run(run_id, "announced")
    path = f"/v1/sessions/{key}/announcements"
    assert server.http.post(f"{path}/{run_id}/ack", json={}).is_success
    entry, own = delivery(server, key, "all", "parked")
    assert len(outside.calls("all")) == ATTEMPTS_MAX
    (parked,) = server.payloads(run_id, "EffectParked")
    assert (parked["attempts"], parked["reason"]) == (ATTEMPTS_MAX, "attempts")
    # Its reader had acknowledged it, and is notified that the delivery failed.
    assert (entry["acknowledgedAt"], own["error"]) == (None, "the webhook responded with HTTP 500")
    after = {"after": entry["position"] - 1}
    assert server.http.get(path, params=after).json()["items"] == [entry]
    ledger = {"state": "parked"}
    assert entry in server.http.get("/v1/announcements", params=ledger).json()["items"]
    outside.replies("all", Reply(204))
    assert redrive(server, run_id, webhook="all").json() == {
        "runId": run_id,
        "webhooks": ["all"],
        "hooks": [],
    }
    _, delivered = delivery(server, key, "all", "delivered")
    assert delivered["attempts"] == ATTEMPTS_MAX + 1
    left = server.http.get("/v1/announcements", params=ledger).json()["items"]
    assert run_id not in [run["runId"] for run in left]
    problem_of(redrive(server, run_id), 409, "no_announcement")


@pytest.mark.server
def test_all_parked_announcements_of_a_token_are_redriven_at_once(
    server: Server, outside: HookServer
) -> None:
    outside.replies("all", Reply(410))
    outside.replies("discord", Reply(410))
    made = [spawned(server, f"several-{number}", **ORIGIN) for number in range(3)]
    for _, key in made:
        delivery(server, key, "all", "parked")
        delivery(server, key, "discord", "parked")
    outside.replies("all", Reply(204))
    path, body = "/v1/announcements/redrive", {"reason": "the gateway is back", "webhook": "all"}
    with server.with_token(TOKENS["read"]) as http:
        problem_of(http.post(path, json=body), 403, "not_permitted")
    # A token redrives the announcements to its own sessions, and learns of no others.
    with server.with_token(TOKENS["control"]) as http:
        own = http.post(path, json=body).json()
    assert own.pop("until") <= server.http.get("/v1/log").json()["position"]
    assert own == {
        "redriven": [{"runId": made[0][0], "webhooks": ["all"]}],
        "refused": [],
        "moreAfter": None,
    }
    # They are sent in the order in which they were parked.
    parked = [item["runId"] for item in server.get("/v1/announcements", state="parked")["items"]]
    second, third = sorted((run_id for run_id, _ in made[1:]), key=parked.index)
    headers = {"Idempotency-Key": "several"}
    request = {**body, "limit": 1}
    first = server.http.post(path, json=request, headers=headers).json()
    assert first["redriven"] == [{"runId": second, "webhooks": ["all"]}]
    assert server.http.post(path, json=request, headers=headers).json() == first
    # Nothing that is parked after a position is sent again, also if it was parked again meanwhile.
    bounded = {**request, "after": first["moreAfter"], "until": first["moreAfter"]}
    problem_of(server.http.post(path, json=bounded), 409, "no_announcement")
    last = server.http.post(path, json={**request, "after": first["moreAfter"]}).json()
    assert last["redriven"] == [{"runId": third, "webhooks": ["all"]}]
    for run_id, key in made:
        delivery(server, key, "all", "delivered")
        delivery(server, key, "discord", "parked")
        (redriven,) = server.payloads(run_id, "EffectRedriven")
        assert redriven["name"] == "all"
    problem_of(server.http.post(path, json=body), 409, "no_announcement")


@pytest.mark.server
def test_announcement_waits_for_webhook_that_is_taken_away(
    server: Server, outside: HookServer
) -> None:
    def without_webhooks(config: dict[str, Any]) -> None:
        config["spawnlog"]["announce"]["webhooks"] = []

    outside.replies("all", Reply(503, headers={"Retry-After": "2"}))
    run_id, key = spawned(server, "taken-away", **ORIGIN)
    outside.called("all")
    # The receiver that asks for a pause delays no other.
    delivery(server, key, "discord", "delivered")
    with server.configured(without_webhooks):
        _, own = delivery(server, key, "all", "parked")
        assert own["parkedFor"] == "not_configured"
    outside.replies("all", Reply(204))
    assert redrive(server, run_id).is_success
    delivery(server, key, "all", "delivered")


@pytest.mark.server
def test_link_local_webhook_is_never_called(server: Server, outside: HookServer) -> None:
    _, key = spawned(server, "inside", channel="inside", to="x")
    _, own = delivery(server, key, "metadata", "parked")
    assert own["error"] == ("the webhook resolves to a link-local address, which is never called")


# Killed.


def around(*moments: str) -> list[str]:
    return [f"{when} {moment}" for moment in moments for when in ("before", "after")]


@pytest.mark.kill
@pytest.mark.parametrize(
    "moment",
    nightly_but(
        around("RunAnnounced", "webhook:all", "EffectAttempted:webhook"), ["after webhook:all"]
    ),
)
def test_killed_delivery_arrives(server: Server, outside: HookServer, moment: str) -> None:
    body = threaded(name_of(moment), thread=False)
    server.die_during(moment, key=moment, **body)
    server.restart()
    run_id = str(server.spawn_again(key=moment, **body).json()["runId"])
    key = body["requester"]["sessionKey"]
    delivery(server, key, "all", "delivered")
    require_one_key(outside, run_id)
    assert 1 <= len(outside.calls("all")) <= 2
    assert [run["runId"] for run in server.inbox(key)] == [run_id]
    attempted = [payload["name"] for payload in server.payloads(run_id, "EffectAttempted")]
    assert sorted(attempted) == ["all", "discord"]


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(around("EffectParked"), ["after EffectParked"]))
def test_killed_delivery_is_parked_once(server: Server, outside: HookServer, moment: str) -> None:
    # An answer that is for good is not waited for.
    outside.replies("all", Reply(410))
    body = threaded(name_of(moment), thread=False)
    server.die_during(moment, key=moment, **body)
    server.restart()
    run_id = str(server.spawn_again(key=moment, **body).json()["runId"])
    key = body["requester"]["sessionKey"]
    _, own = delivery(server, key, "all", "parked")
    assert own["attempts"] == 1
    assert [payload["reason"] for payload in server.payloads(run_id, "EffectParked")] == ["refused"]
    assert [run["runId"] for run in server.inbox(key)] == [run_id]


@pytest.mark.kill
@pytest.mark.parametrize("moment", nightly_but(around("EffectRedriven"), ["after EffectRedriven"]))
def test_killed_redrive_arrives(server: Server, outside: HookServer, moment: str) -> None:
    outside.replies("all", Reply(410))
    run_id, key = spawned(server, name_of(moment))
    delivery(server, key, "all", "parked")
    outside.replies("all", Reply(204))
    server.die_at(moment)
    with suppress(httpx2.TransportError):
        redrive(server, run_id)
    server.wait_death()
    server.restart()
    if moment.startswith("before"):
        # Nothing was recorded, and the caller got no answer.
        assert redrive(server, run_id).is_success
    delivery(server, key, "all", "delivered")
    assert len(server.payloads(run_id, "EffectRedriven")) == 1
    require_one_key(outside, run_id)


@pytest.mark.kill
@pytest.mark.nightly
@pytest.mark.parametrize("moment", around("EffectRedriven"))
def test_killed_redrive_of_several_is_recorded_whole_or_not_at_all(
    server: Server, outside: HookServer, moment: str
) -> None:
    outside.replies("all", Reply(410))
    made = [spawned(server, f"several-{number}-{name_of(moment)}") for number in range(3)]
    for _, key in made:
        delivery(server, key, "all", "parked")
    outside.replies("all", Reply(204))
    path, body = "/v1/announcements/redrive", {"reason": "the gateway is back"}
    headers = {"Idempotency-Key": f"several {moment}"}
    server.die_at(moment)
    with suppress(httpx2.TransportError):
        server.http.post(path, json=body, headers=headers)
    server.wait_death()
    server.restart()
    redriven = [len(server.payloads(run_id, "EffectRedriven")) for run_id, _ in made]
    assert redriven == [int(moment.startswith("after"))] * len(made)
    # A repeat returns the recorded answer, or does the work.
    answer = server.http.post(path, json=body, headers=headers).json()
    runs = {run_id for run_id, _ in made}
    assert runs <= {announcement["runId"] for announcement in answer["redriven"]}
    for run_id, key in made:
        delivery(server, key, "all", "delivered")
        assert len(server.payloads(run_id, "EffectRedriven")) == 1
