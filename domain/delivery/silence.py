"""Replies that mean: tell nobody."""

import re

ANNOUNCE_SKIP = "ANNOUNCE_SKIP"
NO_REPLY = "NO_REPLY"
_GLUED = re.compile(r"\s*(?:NO_REPLY\s+)*NO_REPLY(?=[^\W_])", re.IGNORECASE)


def is_silent(text: str) -> bool:
    """Whether a reply, trimmed, is exactly `ANNOUNCE_SKIP`, or `NO_REPLY` in any case."""
    plain = text.strip()
    return plain == ANNOUNCE_SKIP or plain.upper() == NO_REPLY


def without_silent_tokens(text: str) -> str:
    """The reply without a token glued to its beginning or standing at its end."""
    shown = text
    glued = _GLUED.match(shown)
    if glued:
        shown = shown[glued.end() :]
    # Looked for at the end only: a search through a long text would start anew at every space.
    tail = shown.rstrip()
    if tail.endswith(NO_REPLY):
        start = len(tail) - len(NO_REPLY)
        head = tail[:start]
        if not head or head[-1].isspace() or head[-1] == "*":
            shown = head.rstrip().rstrip("*") if head.endswith("*") else head
    return shown.strip()
