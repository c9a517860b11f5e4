"""Server-sent events: the transcript of one run as it grows, for one reader."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from application.log.event_log import LogUnavailable
from application.queries.runs import EntryPage, entry_view
from infrastructure.inbound.http.middleware.disconnects import connection_dropper
from infrastructure.inbound.http.routes.event_stream import MEDIA_TYPE, OpenStreams

STUCK_SECONDS_MAX = 10.0
"""A reader that takes nothing off for so long is disconnected."""
_log = logging.getLogger("spawnlog.http")


class TranscriptStream(StreamingResponse):
    """The entries of `pages` as events `entry`, then an event `end` if the run is over. Pages are
    read as fast as the reader takes them, so that no more than one is in memory."""

    def __init__(
        self, pages: AsyncIterator[EntryPage], *, headers: Mapping[str, str], streams: OpenStreams
    ) -> None:
        self._pages = pages
        self._streams = streams
        super().__init__(
            self._frames(), media_type=MEDIA_TYPE, headers={**headers, "X-Accel-Buffering": "no"}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the run is over, the reader leaves or takes nothing, or the service stops."""
        with self._streams.slot():
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        drop = connection_dropper(scope)

        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(STUCK_SECONDS_MAX):
                    await send(message)
            except TimeoutError:
                _log.info("a stream of entries ends: its reader is too slow")
                if drop is not None:
                    drop()
                raise

        tasks = [
            asyncio.create_task(self.stream_response(send_in_time)),
            asyncio.create_task(self.listen_for_disconnect(receive)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for one in ended:
            if isinstance(one, Exception) and not isinstance(one, TimeoutError):
                raise one

    async def _frames(self) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n: spawnlog\n\n"
        try:
            async for page in self._pages:
                for entry in page.entries:
                    yield _frame(entry.sequence, b"entry", entry_view(entry).json_bytes())
                if page.is_complete and page.following is None:
                    yield _frame(page.last, b"end", _end_of(page))
                elif not page.entries:
                    yield b": nothing new\n\n"
        except LogUnavailable as away:
            # The reader gets what there is, and an end without `end`: it knows to resume.
            _log.warning("a stream of entries ends: %s", away)


def _end_of(page: EntryPage) -> bytes:
    run = page.run
    return orjson.dumps(
        {
            "runId": run.run_id,
            "stage": run.stage,
            "status": page.status,
            "outcome": run.outcome,
            "continuedBy": run.continued_by,
            "lastSequence": page.last,
        }
    )


def _frame(sequence: int, name: bytes, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (sequence, name, data)
