"""Session keys: canonical form, and the facts that can be read off it.

Shapes: `agent:<agentId>:<mainKey>` (main), `agent:<agentId>:subagent:<uuid>` (child),
`agent:<agentId>:cron:<job>…` (cron), `agent:<agentId>:<channel>:<kind>:<peer>…` (peer), and
`global` if all senders share one session.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Literal, NewType

from domain.values.agent_id import DEFAULT_AGENT_ID, is_valid_agent_id, normalise_agent_id

SessionKey = NewType("SessionKey", str)
SessionScope = Literal["per-sender", "global"]
SESSION_KEY_BYTES_MAX = 512
KEYS_MAX = 1_024
"""Cache size for parsed keys: a spawn looks each up several times."""
MAIN = "main"
GLOBAL = "global"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_IGNORED = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Invisible joiners, fillers and variation selectors of some scripts, and the blank Braille
pattern.
"""


class InvalidSessionKeyError(ValueError):
    """The text is not a session key. The message says what to give instead."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def canonical_session_key(
    key: str,
    *,
    main_key: str = MAIN,
    scope: SessionScope = "per-sender",
    default_agent_id: str = DEFAULT_AGENT_ID,
) -> SessionKey:
    """Return the canonical form of a session key; idempotent.

    Parts are trimmed, lower-cased and NFC-composed, and empty parts are dropped.

    Args:
        key: Key as written. Without `agent:`, it belongs to the default agent.
        main_key: Configured alias of the main session, besides `main`.
        scope: Under `global`, aliases of the main session become `global`.
        default_agent_id: Agent of keys that name none.

    Raises:
        InvalidSessionKeyError: The text is blank, longer than 512 UTF-8 bytes, contains invisible
            characters, or begins with `agent:` without naming an agent and a session.
    """
    _check_text(key)
    parts = _parts(key)
    if not parts:
        raise InvalidSessionKeyError(
            "A session key must not be empty. Give one such as agent:main:main."
        )
    if parts[0] == "agent" and (len(parts) > 1 or _begins_with_agent(key)):
        return _validate_parts(parts)
    main_parts = _parts(main_key) or (MAIN,)
    if parts in ((MAIN,), main_parts):
        if scope == "global":
            return SessionKey(GLOBAL)
        parts = main_parts
    elif parts == (GLOBAL,) and scope == "global":
        return SessionKey(GLOBAL)
    return _validate_parts(("agent", normalise_agent_id(default_agent_id), *parts))


def render_session_key(
    key: str, *, main_key: str = MAIN, scope: SessionScope = "per-sender"
) -> str:
    """Return the key to show its owner: `main` for an alias of the main session, else as given."""
    given = key.strip()
    parts = _parts(given)
    aliases = [(MAIN,), _parts(main_key) or (MAIN,)]
    if scope == "global":
        aliases.append((GLOBAL,))
    return MAIN if parts in aliases else given


KeyShape = Literal["missing", "agent", "malformed_agent", "legacy_or_alias"]


def shape_of(key: str | None) -> KeyShape:
    """Return the shape of a key before it is canonicalized."""
    if key is None or not key.strip():
        return "missing"
    if parse_agent_key(key) is not None:
        return "agent"
    return "malformed_agent" if _begins_with_agent(key) else "legacy_or_alias"


@lru_cache(maxsize=KEYS_MAX)
def agent_id_of(key: str) -> str:
    """Return the normalized agent id of a key, or `main` if the key names no agent."""
    found = parse_agent_key(key)
    return normalise_agent_id(found[0]) if found else DEFAULT_AGENT_ID


def is_cron_key(key: str) -> bool:
    """Return True if the key belongs to a scheduled job. A bare `cron:…` does not count."""
    found = parse_agent_key(key)
    return found is not None and found[1].startswith("cron:")


def depth_of_shape(key: str) -> int:
    """Return the depth that the shape of a key implies. A recorded depth takes precedence."""
    return key.lower().count(":subagent:")


def child_key(agent_id: str, uuid_text: str) -> SessionKey:
    """Return the key of a new child session.

    Raises:
        ValueError: `agent_id` or `uuid_text` is malformed.
    """
    uuid = uuid_text.lower()
    if not is_valid_agent_id(agent_id):
        raise ValueError(f"not an agent id: {agent_id[:80]!r}")
    if not _UUID.fullmatch(uuid):
        raise ValueError(f"not a UUID: {uuid_text[:80]!r}")
    return SessionKey(f"agent:{normalise_agent_id(agent_id)}:subagent:{uuid}")


@lru_cache(maxsize=KEYS_MAX)
def _parts(key: str) -> tuple[str, ...]:
    if key.isascii():
        return tuple(filter(None, map(str.strip, key.lower().split(":"))))
    trimmed = (fold_part(part) for part in key.split(":"))
    return tuple(part for part in trimmed if part)


def fold_part(part: str) -> str:
    """Return one part of a key in canonical form: lower case, NFC, trimmed.

    Both small sigmas fold to one, because which of them is used depends on the next letter.
    """
    lower = unicodedata.normalize("NFC", part).strip().lower().replace("\u03c2", "\u03c3")
    return unicodedata.normalize("NFC", lower).strip()


def parse_agent_key(key: str) -> tuple[str, str] | None:
    """Return the agent id and the rest of a key, in lower case.

    None if the key does not name both an agent and a session.
    """
    parts = _parts(key)
    if len(parts) < 3 or parts[0] != "agent":
        return None
    return parts[1], ":".join(parts[2:])


def _check_text(key: str) -> None:
    too_long = f"A session key must not be longer than {SESSION_KEY_BYTES_MAX} bytes."
    text = key.strip()
    if len(text) > SESSION_KEY_BYTES_MAX:
        raise InvalidSessionKeyError(too_long)
    # Invisible characters would give one key many spellings that look the same.
    is_plain = text.isascii() and text.isprintable()
    if not is_plain and any(_is_invisible(char) for char in text):
        raise InvalidSessionKeyError(
            "A session key must not contain control characters or invisible formatting characters."
        )
    if len(text.encode()) > SESSION_KEY_BYTES_MAX:
        raise InvalidSessionKeyError(too_long)


def _is_invisible(char: str) -> bool:
    """Return True for invisible characters, by category or from the list.

    Unicode classifies the listed ones as letters or marks, although they are not displayed.
    """
    return (
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        or char in _IGNORED
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    )


def _validate_parts(parts: tuple[str, ...]) -> SessionKey:
    if len(parts) < 3:
        raise InvalidSessionKeyError(
            "A session key that begins with agent: must have the form agent:<agentId>:<session>."
        )
    if not is_valid_agent_id(parts[1]):
        raise InvalidSessionKeyError(
            "The agent id in the session key must match [a-z0-9][a-z0-9_-]{0,63}."
        )
    key = ":".join(parts)
    if len(key.encode()) > SESSION_KEY_BYTES_MAX:
        raise InvalidSessionKeyError(
            f"A session key must not be longer than {SESSION_KEY_BYTES_MAX} bytes."
        )
    return SessionKey(key)


def _begins_with_agent(key: str) -> bool:
    first, colon, _ = key.partition(":")
    return bool(colon) and first.strip().lower() == "agent"
