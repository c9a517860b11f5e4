"""Requests that tests of the HTTP interface share."""

import uuid
from collections.abc import Iterator
from typing import Any

import httpx2

from tests.support.http.wire import head
from tests.support.servers.server import Server


def spawn_body(requester: str, **more: Any) -> dict[str, Any]:
    """Return the body of a `POST /v1/spawns` for a requester."""
    return {"requester": {"sessionKey": requester}, "task": "hello", **more}


def a_key() -> str:
    """Return a unique idempotency key."""
    return f"key-{uuid.uuid4()}"


def replayed(answer: httpx2.Response) -> bool:
    """Return True if the response is a replay of an earlier one."""
    return answer.headers.get("idempotent-replayed") == "true"


def request_head(
    server: Server, target: str, *headers: tuple[str, str], method: str = "GET"
) -> bytes:
    """Return the head of a request with the administrator's token and these headers."""
    return head(method, target, [*headers, ("Authorization", f"Bearer {server.token}")])


def spawn_head(server: Server, **headers: str) -> bytes:
    """Return the head of a `POST /v1/spawns` with the administrator's token and a JSON body."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    whole = {"Host": "127.0.0.1", "Content-Type": "application/json"} | given
    return request_head(server, "/v1/spawns", *whole.items(), method="POST")


def post_bytes(
    server: Server, content: bytes, path: str = "/v1/spawns", **headers: str
) -> httpx2.Response:
    """Post a body of JSON exactly as given."""
    given = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return server.http.post(path, content=content, headers=given)


def pages_of_events(client: httpx2.Client, **query: Any) -> Iterator[httpx2.Response]:
    """Yield the pages of `GET /v1/events` up to the head."""
    after = int(query.pop("after", 0))
    while True:
        answer = client.get("/v1/events", params={"after": after, **query})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert page["nextAfter"] >= after
        yield answer
        after = page["nextAfter"]
        if after >= page["head"]:
            return
