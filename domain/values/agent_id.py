"""What an agent id may look like."""

import re

AGENT_ID_CHARACTERS_MAX = 64
DEFAULT_AGENT_ID = "main"
_VALID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE | re.ASCII)
_FOREIGN = re.compile(r"[^a-z0-9_-]+")


def is_valid_agent_id(text: str) -> bool:
    """At most 64 letters, digits, `_` and `-`, the first a letter or digit; judged trimmed."""
    return _VALID.fullmatch(text.strip()) is not None


def normalise_agent_id(text: str | None) -> str:
    """The id in lower case; what is no id is bent into one, and what leaves nothing is `main`.

    Judge what a caller gave with `is_valid_agent_id` first: bent ids name agents nobody meant.
    """
    plain = (text or "").strip().lower()
    if _VALID.fullmatch(plain):
        return plain
    bent = _FOREIGN.sub("-", plain).strip("-")
    return bent[:AGENT_ID_CHARACTERS_MAX] or DEFAULT_AGENT_ID
