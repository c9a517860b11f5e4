"""A gateway to a chat: takes the results that spawnlog sends, posts each where it was asked for.

    CHAT_SECRET=whsec_... python examples/gateway.py --port 8780

Here the chat is standard output: a line for each post, as JSON. It wants nothing but Python. What
a gateway has to do is in `do_POST`: believe nothing that is not signed, post nothing twice, and
answer with 2xx once the post is made, or the result is sent again.
"""

import argparse
import base64
import contextlib
import hmac
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BYTES_MAX = 1_048_576
TOLERANCE_SECONDS = 300
KEPT_MAX = 10_000
"""Number of newest ids that are remembered; a real gateway stores them with its posts."""


def is_signed(secret, headers, body):
    """Return True if the sender of the message knows the secret."""
    sent_at = headers.get("webhook-timestamp", "")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join((headers.get("webhook-id", "").encode(), sent_at.encode(), body))
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    found = headers.get("webhook-signature", "").encode("utf-8", "replace").split(b" ")
    return any(hmac.compare_digest(expected.encode(), one) for one in found)


def is_fresh(headers):
    """Return True if the message was sent a moment ago, so that a captured one is useless
    later."""
    sent_at = headers.get("webhook-timestamp", "")
    if not is_number(sent_at):
        return False
    return abs(time.time() - int(sent_at)) <= TOLERANCE_SECONDS


def is_number(text):
    """Return True if a header is a valid number."""
    return text.isascii() and text.isdigit() and len(text) < 16


class Posts:
    """Posted messages: each once, however often it is sent."""

    def __init__(self):
        self._seen = {}
        self._lock = threading.Lock()

    def post(self, key, data):
        """Post a result to the chat of its request."""
        with self._lock:
            if key in self._seen:
                return
            origin = data.get("origin") or {}
            text = data.get("text") or ""
            print(
                json.dumps({"to": origin.get("to"), "label": data.get("label"), "text": text}),
                flush=True,
            )
            self._seen[key] = True
            while len(self._seen) > KEPT_MAX:
                self._seen.pop(next(iter(self._seen)))


def handler_of(secret, posts):
    """Return the handler of requests that are signed with this secret."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self):
            length = self.headers.get("Content-Length", "")
            if not is_number(length) or int(length) > BYTES_MAX:
                return self.answer(413)
            body = self.rfile.read(int(length))
            if not is_signed(secret, self.headers, body):
                return self.answer(401)
            if not is_fresh(self.headers):
                # One of the two clocks is wrong: that may be mended before the next attempt.
                return self.answer(425)
            try:
                message = json.loads(body)
                posts.post(self.headers["webhook-id"], message["data"])
            except (ValueError, KeyError, TypeError):
                return self.answer(400)
            return self.answer(204)

        def answer(self, status):
            self.close_connection = True
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            """Log no requests: standard output has only the chat."""

    return Handler


def main():
    parser = argparse.ArgumentParser(description="Post results where they were asked for.")
    parser.add_argument("--port", type=int, default=8780, help="0 takes a free one")
    arguments = parser.parse_args()
    secret = os.environ.get("CHAT_SECRET", "")
    if not secret.startswith("whsec_"):
        parser.error("CHAT_SECRET must be the secret of the webhook: whsec_ and base64")
    handler = handler_of(secret, Posts())
    with ThreadingHTTPServer(("127.0.0.1", arguments.port), handler) as server:
        print(f"gateway ready on http://127.0.0.1:{server.server_address[1]}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever(0.1)


if __name__ == "__main__":
    main()
