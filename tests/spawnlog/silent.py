"""A client that sends nothing."""

from collections.abc import Iterator
from typing import Any

from spawnlog import Client
from spawnlog.core.answer import ServerAnswer
from spawnlog.core.request import Request


class SilentClient(Client):
    """A client that keeps its requests in place of sending them."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", token="a-token")
        self.requests: list[Request[Any]] = []

    def answer(self, request: Request[Any], retries: object = None) -> ServerAnswer[Any]:
        self.requests.append(request)
        return ServerAnswer(None, None, False)

    def _lines(self, request: Request[Any]) -> Iterator[Any]:
        self.requests.append(request)
        return iter(())
