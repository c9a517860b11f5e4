"""Agent ids: validation and normalization."""

import re

AGENT_ID_CHARACTERS_MAX = 64
DEFAULT_AGENT_ID = "main"
_VALID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE | re.ASCII)
_FOREIGN = re.compile(r"[^a-z0-9_-]+")


def is_valid_agent_id(text: str) -> bool:
    """Return True if the trimmed text is 1 to 64 letters, digits, `_` and `-`, starting with a
    letter or digit.
    """
    return _VALID.fullmatch(text.strip()) is not None


def normalise_agent_id(text: str | None) -> str:
    """Return the agent id in lower case, coerced into a valid id if needed.

    Each run of invalid characters becomes `-`; an empty result becomes `main`. Check user input
    with `is_valid_agent_id` first: a coerced id may name an agent that the caller did not mean.
    """
    plain = (text or "").strip().lower()
    if _VALID.fullmatch(plain):
        return plain
    bent = _FOREIGN.sub("-", plain).strip("-")
    return bent[:AGENT_ID_CHARACTERS_MAX] or DEFAULT_AGENT_ID
