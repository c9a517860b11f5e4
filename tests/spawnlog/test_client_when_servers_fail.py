"""Both clients with servers that are unavailable, answer wrongly, or break off."""

import asyncio
import json
import time
from typing import Any

import pytest

from spawnlog import (
    AsyncClient,
    Client,
    InvalidSettingError,
    Problem,
    RetryLimits,
    ServerUnreachableError,
    SpawnlogError,
    UnexpectedResponseError,
)
from spawnlog.core import event_stream
from spawnlog.core.event_stream import event_stream_request
from spawnlog.core.location import ServerAddress
from spawnlog.core.wait import wait_for_message
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem
from tests.support.servers.server import Server

RUN = "11111111-0000-4000-8000-000000000001"
QUICK = RetryLimits(attempts_max=3, seconds_max=5, pause_seconds=0.001)
READY = Reply({"status": "ready", "head": 7, "tail": 7})
STOPPED = Reply({"runId": RUN, "wasOver": False})
LOST = Reply({}, break_off=True)
AWAY = problem(503, code="unavailable", detail="not ready", retryable=True)
LATER = Reply({"code": "unavailable"}, 503, "application/problem+json", {"Retry-After": "60"})
SESSION = "agent:main:main"
LINE = '{"progress": {"position": 3, "until": 9, "decisions": 1}}\n'
TOTALS = (
    '{"totals": {"fromPosition": 1, "toPosition": 9, "decisions": 1, "byVerdict": {},'
    ' "byAgent": {}, "byRule": {}}}\n'
)
GONE = problem(410, code="foreign_cursor", detail="another log")


async def call(kind: str, api: RecordedApi, name: str, *arguments: Any, **choices: Any) -> Any:
    if kind == "blocks":
        with Client(api.url, token="a-token", retries=QUICK) as client:
            return getattr(client, name)(*arguments, **choices)
    async with AsyncClient(api.url, token="a-token", retries=QUICK) as second_client:
        return await getattr(second_client, name)(*arguments, **choices)


async def items(kind: str, api: RecordedApi, name: str, **choices: Any) -> list[Any]:
    """Return the items of a client's iterator, and the error that ends it."""
    found: list[Any] = []
    try:
        if kind == "blocks":
            with Client(api.url, token="a-token", retries=QUICK) as client:
                found.extend(getattr(client, name)(**choices))
        else:
            async with AsyncClient(api.url, token="a-token", retries=QUICK) as second_client:
                async for item in getattr(second_client, name)(**choices):
                    found.append(item)
    except SpawnlogError as error:
        found.append(error)
    return found


@pytest.fixture(params=["blocks", "awaits"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_read_is_retried(kind: str, api: RecordedApi) -> None:
    api.on("GET", "/readyz", LOST, AWAY, READY)
    assert (await call(kind, api, "get_readiness")).head == 7
    assert len(api.asked) == 3


@pytest.mark.parametrize(
    ("reply", "attempts", "members"),
    [
        (AWAY, QUICK.attempts_max, {"code": "unavailable", "retryable": True}),
        (problem(500, code="internal", detail="not ready"), 1, {"code": "internal"}),
        (LATER, 1, {"retry_after": 60}),
        (problem(418, code="teapot", detail="x", steam=1), 1, {"code": "teapot", "status": 418}),
        (Reply("<html>", 404, "text/html"), 1, {"code": None, "status": 404}),
    ],
)
async def test_problem_is_raised_after_its_attempts(
    reply: Reply, attempts: int, members: dict[str, Any], kind: str, api: RecordedApi
) -> None:
    api.on("GET", "/readyz", reply)
    with pytest.raises(Problem) as failure:
        await call(kind, api, "get_readiness")
    assert {name: getattr(failure.value, name) for name in members} == members
    assert failure.value.members.get("steam") == (1 if failure.value.code == "teapot" else None)
    assert len(api.asked) == attempts


async def test_command_is_retried_under_its_key(kind: str, api: RecordedApi) -> None:
    busy = problem(409, code="idempotency_in_flight", detail="under way", retryable=True)
    api.on("POST", f"/v1/runs/{RUN}/stop", LOST, busy, STOPPED)
    assert (await call(kind, api, "stop_run", RUN, reason="enough")).was_over is False
    assert await call(kind, api, "stop_run", RUN) is not None
    keys = [request.headers["idempotency-key"] for request in api.asked]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert [request.body for request in api.asked[:3]] == [{"reason": "enough"}] * 3


async def test_lost_answer_names_the_given_key(kind: str, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", LOST)
    with pytest.raises(ServerUnreachableError) as lost:
        await call(kind, api, "spawn", "x", SESSION, idempotency_key="mine")
    assert lost.value.idempotency_key == "mine"
    assert {request.headers["idempotency-key"] for request in api.asked} == {"mine"}


async def test_retry_after_is_honored(kind: str, api: RecordedApi) -> None:
    headers = {"Retry-After": "1"}
    times: list[float] = []

    def busy(request: Asked) -> Reply:
        times.append(time.monotonic())
        if len(times) > 1:
            return READY
        return Reply({"code": "what_if_busy"}, 429, "application/problem+json", headers)

    api.on("GET", "/readyz", busy)
    await call(kind, api, "get_readiness")
    assert times[1] - times[0] >= 0.99


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply("<html>", content_type="text/html"), "this client does not understand"),
        (Reply([1]), "this client does not understand"),
        (Reply({"status": "ready", "head": "seven", "tail": 7}), "at /head"),
    ],
)
async def test_foreign_answer_is_named(
    reply: Reply, says: str, kind: str, api: RecordedApi
) -> None:
    api.on("GET", "/readyz", reply)
    with pytest.raises(UnexpectedResponseError, match=says):
        await call(kind, api, "get_readiness")


async def test_unknown_members_are_ignored(kind: str, api: RecordedApi) -> None:
    api.on("GET", "/readyz", Reply({"status": "ready", "head": 1, "tail": 1, "newer": True}))
    assert (await call(kind, api, "get_readiness")).head == 1


@pytest.mark.parametrize(
    ("text", "came"),
    [
        (LINE + TOTALS, ["WhatIfProgressView", "WhatIfTotalsView"]),
        (LINE + TOTALS.strip(), ["WhatIfProgressView", "WhatIfTotalsView"]),
        (LINE, ["WhatIfProgressView", "StreamInterruptedError"]),
        (LINE + TOTALS[:40], ["WhatIfProgressView", "StreamInterruptedError"]),
        (
            LINE + '{"failure": {"detail": "stopping"}}\n',
            ["WhatIfProgressView", "StreamInterruptedError"],
        ),
        ("", ["StreamInterruptedError"]),
    ],
)
async def test_cut_stream_says_so(text: str, came: list[str], kind: str, api: RecordedApi) -> None:
    api.on("POST", "/v1/what-if", AWAY, Reply(text, content_type="application/x-ndjson"))
    found = await items(kind, api, "what_if", patch=[])
    assert [type(item).__name__ for item in found] == came
    if "failure" in text:
        assert "stopping" in str(found[-1])


def streamed(*positions: int, checkpoint: int | None = None) -> Reply:
    messages = "".join(
        f"id: {position}\nevent: RunQueued\ndata: {json.dumps(event(position))}\n\n"
        for position in positions
    )
    if checkpoint is not None:
        data = json.dumps({"position": checkpoint})
        messages += f"id: {checkpoint}\nevent: checkpoint\ndata: {data}\n\n"
    return Reply(f": hello\n\n{messages}", content_type="text/event-stream", break_off=True)


def event(position: int) -> dict[str, Any]:
    return {
        **{"position": position, "stream": f"run-{RUN}", "version": 1, "type": "RunQueued"},
        **{"typeVersion": 1, "recordedAt": "2026-01-01T00:00:00Z", "eventId": RUN},
        **{"occurredAt": "2026-01-01T00:00:00Z", "commandId": RUN, "causation": None},
        **{"actor": {"kind": "system", "token": None, "session": None}, "correlation": None},
        **{"runId": RUN, "traceparent": None, "configRevision": 1, "writerVersion": "0"},
        **{"appendLast": position, "chainHash": "00", "payload": {}},
    }


async def test_following_resumes_after_last_event(kind: str, api: RecordedApi) -> None:
    api.on("GET", "/v1/events", streamed(5, 6), streamed(6, 7, checkpoint=90), AWAY, GONE)
    *seen, error = await items(kind, api, "follow_events", after=4)
    assert [item.position for item in seen] == [5, 6, 7]
    assert "another log" in str(error)
    assert [request.headers.get("last-event-id") for request in api.asked] == [
        None,
        "6",
        "90",
        "90",
    ]


async def test_absent_server_ends_following(kind: str, api: RecordedApi) -> None:
    api.on("GET", "/v1/events", streamed(5), AWAY)
    seen, error = await items(kind, api, "follow_events", absent_seconds_max=0.1)
    assert seen.position == 5
    assert "not ready" in str(error)
    assert 2 <= len(api.asked) < 6


def test_no_server_is_named_with_what_to_do() -> None:
    with (
        Client("http://127.0.0.1:9", retries=RetryLimits(attempts_max=1)) as client,
        pytest.raises(ServerUnreachableError, match=r"spawnlog serve.* SPAWNLOG_URL"),
    ):
        client.get_health()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *[
            ({"address": ServerAddress("http://127.0.0.1:1", token)}, None)
            for token in ("", "secret-token\n", "two secrets", "sécret")
        ],
        *[
            ({"url": url, "token": "a-token"}, None)
            for url in (
                *("http://h:1?", "http://h:1#", "http://h:1\\a"),
                *("http://b\u00fccher.example", "http://a..b", f"http://{'a' * 64}.b"),
            )
        ],
        ({"url": "http://127.0.0.1:1", "token": "a-token", "agent": "\u00e4"}, "agent"),
    ],
)
def test_unusable_setting_is_refused(arguments: dict[str, Any], message: str | None) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidSettingError, match=message) as refused:
            kind(**arguments)
        address = arguments.get("address")
        assert not address or not address.token or address.token not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("get_run", {"run_id": ""}, None),
        ("get_run", {"run_id": ".."}, None),
        ("get_run", {"run_id": RUN, "wait": 61}, None),
        (
            "patch_shared_context",
            {"key": SESSION, "changes": {}, "if_match": "*\r\nX-Other: 1"},
            "If-Match",
        ),
        *[
            ("spawn", {"task": "x", "requester": SESSION, "shared_context": context}, None)
            for context in (
                {"a": float("nan")},
                {"a": {("a", "b"): 1}},
                {"a": [[]] * 2 + [object()]},
            )
        ],
        *[
            (
                "spawn",
                {"task": "x", "requester": SESSION, "idempotency_key": key},
                "1 to 255 printable ASCII characters",
            )
            for key in ("", "k" * 256, "a\nb", "ü")
        ],
    ],
)
async def test_unusable_argument_is_not_sent(
    name: str, arguments: dict[str, Any], message: str | None, kind: str, api: RecordedApi
) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        await call(kind, api, name, **arguments)
    assert api.asked == []


@pytest.mark.parametrize("key", ["", "a\nb"])
async def test_family_refuses_unusable_arguments(api: RecordedApi, key: str) -> None:
    async with AsyncClient(api.url) as second_client:
        with Client(api.url) as client:
            with pytest.raises(InvalidSettingError, match="give one, or omit it"):
                client.session(SESSION).spawn("look", idempotency_key=key)
            with pytest.raises(InvalidSettingError, match="a list of tasks"):
                client.session(SESSION).spawn_all("abc")
        with pytest.raises(InvalidSettingError, match="a list of tasks"):
            await second_client.session(SESSION).spawn_all("abc")
    assert api.asked == []


def test_token_is_in_no_text_of_a_client(api: RecordedApi) -> None:
    token = "canary-of-the-client"
    api.on("GET", "/readyz", LOST)
    with Client(api.url, token=token, retries=QUICK) as client:
        with pytest.raises(ServerUnreachableError) as lost:
            client.get_readiness()
        assert api.asked[0].headers["authorization"] == f"Bearer {token}"
        assert token not in f"{client!r} {client.address!r} {lost.value!r} {vars(lost.value)}"


def test_slowly_failing_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("spawnlog.core.event_stream.time.monotonic", lambda: now[0])
    following: event_stream.EventStream[Any] = event_stream.EventStream(event_stream_request())
    following.request()
    following.opened({})
    for _ in range(60):
        now[0] += 5.01
        following.request()
        try:
            following.pause_seconds(ServerUnreachableError("it did not answer in time"))
        except ServerUnreachableError:
            break
    assert now[0] < 1000 + 2 * event_stream.ABSENT_SECONDS_MAX


@pytest.mark.server
async def test_cancelled_step_ends_no_stream(server: Server) -> None:
    key = server.new_session("followed")
    async with AsyncClient(server.url, token=server.token) as client:
        run = server.spawned(session=key)
        server.run(run["runId"], "announced")
        events = client.follow_events(after=server.head(), tree=key)
        async with events:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(events)
            server.spawned(session=key)
            async with asyncio.timeout(20):
                assert (await anext(events)).type == "SpawnRequested"


def test_wait_for_message_outlives_an_absent_server(api: RecordedApi) -> None:
    api.on("GET", f"/v1/sessions/{SESSION.replace(':', '%3A')}", LOST, AWAY, Reply({"queue": []}))
    api.on("GET", f"/v1/runs/{RUN}", LOST, Reply({"runId": RUN}))
    with Client(api.url) as client:
        wait_for_message(client, RUN, SESSION, 60)
    assert len(api.asked) == 5


@pytest.mark.parametrize("proxy", ["socks9://127.0.0.1:1", "nonsense://x"])
def test_unusable_proxy_is_our_error(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidSettingError, match="cannot speak to"):
            kind("http://server.example", token="a-token")


def test_family_left_without_a_server_asks_once() -> None:
    with Client(
        "http://127.0.0.1:1", token="a-token", retries=RetryLimits(attempts_max=1)
    ) as client:
        family = client.session(SESSION)
        family._runs = [client.run(RUN), client.run(RUN)]
        error = ValueError("of the program")
        family._stop_runs(error)
    (note,) = error.__notes__
    assert note.startswith(f"run {RUN} and 1 more could not be stopped: no server answers at ")


async def test_family_retries_an_unanswered_spawn(kind: str, api: RecordedApi) -> None:
    run: dict[str, Any] = {
        **{"runId": RUN, "childSessionKey": SESSION, "sessionId": RUN, "label": None},
        **{"mode": "run", "note": None, "modelApplied": None, "attachments": None, "warnings": []},
    }
    api.on("POST", "/v1/spawns", LOST, Reply({**run, "status": "accepted", "runs": [run]}, 201))
    api.on("POST", f"/v1/runs/{RUN}/stop", STOPPED)
    once = RetryLimits(attempts_max=1)
    if kind == "blocks":
        with Client(api.url, retries=once) as client, pytest.raises(ServerUnreachableError):
            with client.session(SESSION, stop_on_error=True) as family:
                family.spawn("look")
    else:
        async with AsyncClient(api.url, retries=once) as second_client:
            with pytest.raises(ServerUnreachableError):
                async with second_client.session(SESSION, stop_on_error=True) as coming:
                    await coming.spawn("look")
    assert [request.path for request in api.asked] == ["/v1/spawns"] * 2 + [f"/v1/runs/{RUN}/stop"]
    assert len({request.headers["idempotency-key"] for request in api.asked[:2]}) == 1


def test_family_says_that_a_run_may_continue(api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", LOST)
    with (
        Client(api.url, retries=RetryLimits(attempts_max=1)) as client,
        pytest.raises(ServerUnreachableError) as left,
        client.session(SESSION, stop_on_error=True) as family,
    ):
        family.spawn("look")
    (note,) = left.value.__notes__
    assert note.startswith(
        "a run whose spawn was not answered could not be stopped and may continue"
    )


def fault(pointer: str, detail: str = "is wrong") -> dict[str, str]:
    return {"pointer": pointer, "detail": detail}


LABEL, TASK = fault("/label", "is too long"), fault("/task", "is too long")
PROBLEMS: list[tuple[int, dict[str, Any], str]] = [
    (
        422,
        {"detail": "Add it to agents.list.", "rule": "agent.known", "code": "spawn_error"},
        "Add it to agents.list; rule: agent.known; code: spawn_error",
    ),
    (422, {"detail": "Add it to agents.list."}, "Add it to agents.list."),
    # A fault is reported once, by the name of its argument.
    (
        422,
        {"detail": "/label: is too long", "errors": [LABEL, TASK]},
        "label: is too long; task: is too long",
    ),
    (422, {"detail": "is too long", "errors": [LABEL]}, "label: is too long"),
    (
        422,
        {"detail": "cannot be used: /a: is too long", "errors": [LABEL]},
        "cannot be used: /a: is too long",
    ),
    (
        422,
        {"detail": "this Idempotency-Key was used for another request"},
        "this idempotency_key was used for another request",
    ),
    *(
        (422, {"detail": f"{pointer}: is wrong", "errors": [fault(pointer)]}, f"{name}: is wrong")
        for pointer, name in (
            ("/query/labelPrefix", "label_prefix"),
            ("/query/stage/0", "stage[0]"),
            ("/from", "from_"),
            ("/headers/If-Match", "if_match"),
            ("/path/key", "key"),
            ("/requester/sessionKey", 'requester["sessionKey"]'),
            ("/sharedContext/a~1b", 'shared_context["a/b"]'),
        )
    ),
    (422, {"detail": "the body: is wrong", "errors": [fault("")]}, "the body: is wrong"),
]


@pytest.mark.parametrize(("status", "members", "text"), PROBLEMS)
def test_problem_names_arguments(status: int, members: dict[str, Any], text: str) -> None:
    problem = Problem(status, members)
    assert str(problem) == text
    pointers = [error["pointer"] for error in members.get("errors", ())]
    assert [error.pointer for error in problem.errors] == pointers


def test_missing_token_says_where_to_give_it() -> None:
    missing = Problem(401, {"detail": "send a token as Authorization: Bearer …"})
    assert str(missing).startswith("the server needs a token: give token or data_dir")


def test_faults_without_end_are_cut() -> None:
    errors = [{"pointer": f"/task/{number}", "detail": "is wrong"} for number in range(100_000)]
    assert len(Problem(422, {"detail": "x", "errors": errors}).errors) == 100
