"""A server whose announcements are sent to webhooks."""

import base64
import contextlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import Call, HookServer
from tests.support.servers.hooked_server import Hooked, hooked
from tests.support.servers.mortal_server import mortal_on
from tests.support.servers.running_server import wait_for

KEYS = (b"the key in use, 24 bytes", b"the key of before, 26 byte")
SECRETS = tuple(f"whsec_{base64.b64encode(one).decode()}" for one in KEYS)
ATTEMPTS_MAX = 4


def webhook(outside: HookServer, name: str, **more: Any) -> dict[str, Any]:
    """A webhook at the server outside, signed with one secret."""
    plain = {"id": name, "url": f"{outside.url}/{name}", "secrets": [SECRETS[0]]}
    return {**plain, "timeoutSeconds": 2, **more}


def announce(*webhooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """`spawnlog.announce` with these webhooks, and quick retries."""
    return {"webhooks": list(webhooks), "attemptsMax": ATTEMPTS_MAX, "retrySecondsMax": 1, **more}


class Announcing(Hooked):
    """Spawns whose results somebody outside is sent."""

    def posted_in_vain(self, path: str, body: dict[str, Any]) -> None:
        """Ask a server that dies meanwhile or right after its answer."""
        with contextlib.suppress(httpx2.TransportError):
            self.http.post(path, json=body)

    def delivery(self, session_key: str, webhook_id: str, state: str) -> dict[str, Any]:
        """The one announcement of a session, once its delivery has come to this."""

        def there() -> dict[str, Any] | None:
            for entry in self.inbox(session_key):
                for one in entry["deliveries"]:
                    if (one["webhook"], one["state"]) == (webhook_id, state):
                        return dict(entry)
            return None

        return wait_for(f"{webhook_id} of {session_key} is {state}", there)


def is_signed(call: Call, key: bytes) -> bool:
    """Whether a receiver that knows this key takes the message for ours."""
    at = call.headers["webhook-timestamp"]
    signed = b".".join((call.headers["webhook-id"].encode(), at.encode(), call.sent))
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return f"v1,{expected}" in call.headers["webhook-signature"].split(" ")


@contextmanager
def announcing_on(databases: Databases, section: dict[str, Any]) -> Iterator[Announcing]:
    """Such a server on a database of its own; its log is verified once all is over."""

    def make(data_dir: Path, folder: Path, url: str) -> Announcing:
        config = hooked(folder, {})
        config["spawnlog"]["announce"] = section
        return Announcing(data_dir, folder, url, {}, config=config)

    with mortal_on(databases, make) as server:
        yield server
