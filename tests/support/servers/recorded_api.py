"""Small real HTTP server that sends given answers and notes the requests."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request as it came. `path` is as it stood on the wire, `headers` by lower-case name."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """An answer. A `body` that is text is sent unchanged; `break_off` closes the connection after a
    body that is shorter than announced.
    """

    body: Any
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    break_off: bool = False


Answering = Reply | Callable[[Asked], Reply]


class RecordedApi:
    """Server with answers by method and path; `asked` are the requests, in order."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[tuple[str, str], list[Answering]] = {}
        self._lock = threading.Lock()
        self.url = ""

    def on(self, method: str, path: str, *answers: Answering) -> None:
        """Send these answers one after another, then repeat the last one."""
        self._answers[(method, path)] = list(answers)

    def answer(self, request: Asked) -> Reply:
        """Return the next answer to a request, or a 404 problem if there is none."""
        with self._lock:
            self.asked.append(request)
            answers = self._answers.get((request.method, request.path))
            if not answers:
                return problem(404, code="not_found", detail=f"nothing is at {request.path}")
            answering = answers.pop(0) if len(answers) > 1 else answers[0]
        return answering(request) if callable(answering) else answering


def problem(status: int, **members: Any) -> Reply:
    """Return a problem document."""
    return Reply(
        {"type": "about:blank", "status": status, **members},
        status=status,
        content_type="application/problem+json",
    )


@contextlib.contextmanager
def recorded_api() -> Iterator[RecordedApi]:
    """Yield a server on a free port during the block."""
    api = RecordedApi()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(api))
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.002,))
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler_for(api: RecordedApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply()

        do_POST = do_PUT = do_DELETE = do_GET

        def _reply(self) -> None:
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = api.answer(
                Asked(
                    self.command,
                    parts.path,
                    dict(parse_qsl(parts.query)),
                    {name.lower(): value for name, value in self.headers.items()},
                    json.loads(content) if content else None,
                )
            )
            text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
            sent = text.encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(sent) + (1 if reply.break_off else 0)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    return Handler
