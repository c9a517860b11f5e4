"""Encoding of slashes inside a path segment, as in some session keys.

Routing uses the decoded path, where `%2F` and `/` are equal. So an encoded slash is replaced by a
character that no key may contain, and restored when the segment is read.
"""

import re
from urllib.parse import unquote

from starlette.types import Scope

SLASH_PLACEHOLDER = "\x1f"
_ENCODED = re.compile(rb"%2f", re.IGNORECASE)


def protect_encoded_slashes(scope: Scope) -> str:
    """Return the decoded path of a request, with encoded slashes replaced by the placeholder."""
    raw_path: bytes = scope["raw_path"]
    if not _ENCODED.search(raw_path):
        return str(scope["path"])
    return unquote(_ENCODED.sub(b"%1F", raw_path).decode("ascii", "replace"))


def restore_slashes(part: str) -> str:
    """Return a path segment with its slashes restored."""
    return part.replace(SLASH_PLACEHOLDER, "/")
