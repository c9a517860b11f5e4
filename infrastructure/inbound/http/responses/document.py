"""`/openapi.json`. The first request imports the framework that describes the API."""

import asyncio
import importlib

from starlette.requests import Request
from starlette.responses import Response

from application.log.envelope import WRITER_VERSION

_DESCRIPTION = "infrastructure.inbound.http.openapi"


class ServedDocument:
    """The OpenAPI document, generated once."""

    def __init__(self) -> None:
        self._content: bytes | None = None
        self._making = asyncio.Lock()

    async def answer(self, _: Request) -> Response:
        """Return the document. A thread generates it, so that other requests are served."""
        async with self._making:
            if self._content is None:
                self._content = await asyncio.to_thread(_described)
        return Response(self._content, media_type="application/json")


def _described() -> bytes:
    content: bytes = importlib.import_module(_DESCRIPTION).document_content(WRITER_VERSION)
    return content
