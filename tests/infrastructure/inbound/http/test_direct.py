"""The short way to one endpoint: what it takes, what it leaves, and how it fails."""

from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from infrastructure.inbound.http.application import DirectRoute


class Known(Exception):
    """An error that the application answers."""


class Special(Known):
    """One of that kind."""


async def answered(request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"answered {type(error).__name__}", 418)


async def taken(request: Request) -> Response:
    body = (await request.body()).decode()
    if body == "known":
        raise Special
    if body == "unknown":
        raise RuntimeError
    return PlainTextResponse(f"taken {body}")


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("left")(scope, receive, send)


async def asked(body: str = "", **scope: Any) -> str:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body.encode()}

    async def send(message: Message) -> None:
        sent.append(message)

    direct = DirectRoute(
        application, method="POST", path="/here", endpoint=taken, handlers={Known: answered}
    )
    whole = {"type": "http", "method": "POST", "path": "/here", "query_string": b"", "headers": []}
    await direct({**whole, **scope}, receive, send)
    return str(sent[1]["body"].decode())


async def test_one_endpoint_is_called_and_all_else_is_left_to_the_application() -> None:
    assert await asked("this") == "taken this"
    for other in ({"path": "/here/"}, {"method": "GET"}, {"query_string": b"a=1"}):
        assert await asked(**other) == "left"


async def test_errors_are_answered_by_those_who_know_their_kind_and_others_are_raised() -> None:
    assert await asked("known") == "answered Special"
    with pytest.raises(RuntimeError):
        await asked("unknown")
