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
# In the query of a URL these are credentials, elsewhere they are words like others.
_PARAMETER_ENDINGS = (
    "signature",
    "sig",
    "auth",
    "authcode",
    "authorizationcode",
    "sessionid",
    "jwt",
    "hmac",
)
_PARAMETERS = frozenset({"code", "otp", "pin", "sid", "assertion"})
# So many of them, where the value is a number.
_COUNTED = ("tokens", "keys")
_SIGNS = re.compile(r"[^a-z0-9]|[0-9]+$")


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is taken for a secret: `apiKey`, `X-Auth-Token`, `cookie`."""
    plain = _SIGNS.sub("", name.lower())
    return (plain in _WHOLE or plain.endswith(_ENDINGS)) and plain not in _HARMLESS


def is_secret_parameter(name: str) -> bool:
    """Whether a value of this name in the query of a URL is taken for a secret: `sig`, `code`."""
    plain = _SIGNS.sub("", name.lower())
    return is_secret_name(name) or plain in _PARAMETERS or plain.endswith(_PARAMETER_ENDINGS)


def is_count_name(name: str) -> bool:
    """Whether a number of this name says how many: `maxTokens`, not `token`."""
    return _SIGNS.sub("", name.lower()).endswith(_COUNTED)


def is_secret_mapping(name: str) -> bool:
    """Whether every text below a mapping of this name is taken for a secret."""
    plain = name.lower()
    return plain in ("env", "environment") or plain.endswith("headers")
