"""Real server for hooks that notes calls and answers as instructed."""

import base64
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.support.waiting import wait_for

SLOW_SECONDS_MAX = 30.0
KEYS = (b"the key in use, 24 bytes", b"the key of before, 26 byte")
SECRETS = tuple(f"whsec_{base64.b64encode(key).decode()}" for key in KEYS)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `body` is JSON unless it is bytes; `is_held` delays it until `let_go`;
    `breaks_off` closes the connection instead.
    """

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_held: bool = False
    breaks_off: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    sent: bytes = b""

    @property
    def hook(self) -> str:
        """Return the name of the hook, or the last part of a webhook's path."""
        return str(self.body.get("hook") or self.path.rpartition("/")[2])

    @property
    def key(self) -> str:
        """Return the key that identifies repeats."""
        return str(self.headers.get("Idempotency-Key") or self.headers["webhook-id"])

    @property
    def event(self) -> dict[str, Any]:
        """Return the event of the call."""
        return dict(self.body["event"])

    @property
    def run_id(self) -> str:
        """Return the run of the call."""
        return self.key.partition(":")[0]


class HookServer:
    """Server that answers 204 by default. Use it in a `with` statement."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._forgotten: set[str] = set()
        self._replies: dict[str, list[Reply]] = {}
        self._lock = threading.Lock()
        self._may_answer = threading.Event()
        hooks = self

        class Handler(_Handler):
            server_of_hooks = hooks

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def hooks(self, *names: str, **more: Any) -> dict[str, Any]:
        """Return `spawnlog.hooks` with these hooks at this server."""
        return {name: {"url": f"{self.url}/{name}", "timeoutSeconds": 10, **more} for name in names}

    def webhook(self, name: str, **more: Any) -> dict[str, Any]:
        """Return a webhook at this server, signed with the first of `KEYS`."""
        plain = {"id": name, "url": f"{self.url}/{name}", "secrets": [SECRETS[0]]}
        return {**plain, "timeoutSeconds": 2, **more}

    def replies(self, hook: str, *replies: Reply) -> None:
        """Answer so from now on, the last one again and again."""
        with self._lock:
            self._replies[hook] = list(replies)

    def let_go(self) -> None:
        """Send the delayed answers."""
        self._may_answer.set()

    def forget(self) -> None:
        """Forget all calls and answers, also later ones of these runs."""
        with self._lock:
            self._forgotten |= {call.run_id for call in self._calls}
            self._calls.clear()
            self._replies.clear()
        self._may_answer.clear()

    def calls(self, hook: str | None = None) -> list[Call]:
        """Return the calls, in order."""
        with self._lock:
            return [call for call in self._calls if hook in (None, call.hook)]

    def called(self, hook: str, times: int = 1) -> list[Call]:
        """Return the calls of a hook, once there are this many."""

        def enough() -> list[Call] | None:
            calls = self.calls(hook)
            return calls if len(calls) >= times else None

        return wait_for(f"{times} calls of {hook}", enough)

    def take(self, call: Call) -> Reply:
        """Note a call; gives the answer."""
        with self._lock:
            if call.run_id in self._forgotten:
                return Reply(204)
            self._calls.append(call)
            replies = self._replies.get(call.hook, [Reply(204)])
            return replies.pop(0) if len(replies) > 1 else replies[0]

    def hold(self) -> None:
        """Wait until answers may be sent."""
        self._may_answer.wait(SLOW_SECONDS_MAX)


class _Handler(BaseHTTPRequestHandler):
    server_of_hooks: HookServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        sent = self.rfile.read(length)
        if len(sent) < length:
            # The caller died in the middle of the request.
            self.close_connection = True
            return
        body = json.loads(sent)
        reply = self.server_of_hooks.take(Call(self.path, dict(self.headers), body, sent))
        if reply.is_held:
            self.server_of_hooks.hold()
        self.close_connection = True
        if reply.breaks_off:
            return
        output = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.status != 204:
                self.send_header("Content-Length", str(len(output)))
            self.end_headers()
            if reply.status != 204:
                self.wfile.write(output)
        except ConnectionError:
            # No caller waits for it any more.
            return

    def log_message(self, *_: object) -> None:
        """Log nothing."""
