"""A server whose answers have a status, and a body that is cut off, slow or endless."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

BODIES = {
    "cut": b"Content-Length: 10\r\n\r\nok",
    "cut chunk": b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "broken chunk": b"Transfer-Encoding: chunked\r\n\r\nnot a number\r\n",
    "huge": b"Content-Length: 300000000\r\n\r\n" + b"x" * 200_000,
    "encoded": b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx",
}


@asynccontextmanager
async def answering(head: str, rest: bytes, *, stays: bool = False) -> AsyncIterator[str]:
    """Yield a server that answers with these bytes, then hangs up or stays silent."""
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {head}\r\n".encode() + rest)
        if stays:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/there"
    finally:
        over.set()
        server.close()
        await server.wait_closed()
