"""Which names announce a secret."""

import re

_ENDINGS = (
    "key",
    "keys",
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "authorization",
    "credential",
    "credentials",
    "cookie",
    "cookies",
    "databaseurl",
    "connectionstring",
    "webhookurl",
)
_WHOLE = frozenset({"pass", "pwd", "bearer", "dsn", "webhook"})
_HARMLESS = frozenset(
    {
        # of the sections that spawnlog reads
        "mainkey",
        "returnkey",
        "errorkey",
        "agentidoverridekey",
        # of the sections that other programs read: names of sessions, and halves meant for all
        "sessionkey",
        "defaultsessionkey",
        "publickey",
    }
)
_SIGNS = re.compile(r"[^a-z0-9]|[0-9]+$")


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is taken for a secret: `apiKey`, `X-Auth-Token`, `cookie`."""
    plain = _SIGNS.sub("", name.lower())
    return (plain in _WHOLE or plain.endswith(_ENDINGS)) and plain not in _HARMLESS


def is_secret_mapping(name: str) -> bool:
    """Whether every text below a mapping of this name is taken for a secret."""
    plain = name.lower()
    return plain in ("env", "environment") or plain.endswith("headers")
