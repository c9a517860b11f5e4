"""Responses of JSON lines, sent as they are made."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from application.queries.views.view import Lines
from infrastructure.inbound.http.requests.caller import position_headers
from infrastructure.inbound.http.requests.services import Services

MEDIA_TYPE = "application/x-ndjson"


class LinesResponse(StreamingResponse):
    """Response that writes lines as they are made.

    It releases their resources when it ends, even if the reader left before the first line.
    """

    media_type = MEDIA_TYPE

    def __init__(self, services: Services, lines: Lines) -> None:
        self._room = lines.room
        self._written = _written(lines)
        super().__init__(
            self._written,
            headers={**position_headers(services, lines.position), "X-Accel-Buffering": "no"},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._room, aclosing(self._written):
            await super().__call__(scope, receive, send)


async def _written(lines: Lines) -> AsyncGenerator[bytes]:
    async with aclosing(lines.pages()) as pages:
        async for page in pages:
            if page:
                yield b"".join(line.json_bytes() + b"\n" for line in page)
