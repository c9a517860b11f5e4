"""Replies that suppress the announcement."""

import re

ANNOUNCE_SKIP = "ANNOUNCE_SKIP"
NO_REPLY = "NO_REPLY"
_GLUED = re.compile(r"\s*(?:NO_REPLY\s+)*NO_REPLY(?=[^\W_])", re.IGNORECASE)


def is_silent(text: str) -> bool:
    """Return True if a reply, trimmed, is exactly `ANNOUNCE_SKIP`, or `NO_REPLY` in any case."""
    plain = text.strip()
    return plain == ANNOUNCE_SKIP or plain.upper() == NO_REPLY


def without_silent_tokens(text: str) -> str:
    """Remove a `NO_REPLY` token that is glued to the start of a reply, or at its end."""
    shown = text
    glued = _GLUED.match(shown)
    if glued:
        shown = shown[glued.end() :]
    # Check the end only: a regex search would restart at every space of a long text.
    tail = shown.rstrip()
    if tail.endswith(NO_REPLY):
        start = len(tail) - len(NO_REPLY)
        head = tail[:start]
        if not head or head[-1].isspace() or head[-1] == "*":
            shown = head.rstrip().rstrip("*") if head.endswith("*") else head
    return shown.strip()
