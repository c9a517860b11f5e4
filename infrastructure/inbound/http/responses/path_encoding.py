"""Slashes inside a part of a path, as some session keys have them.

Routes are found in the decoded path, where `%2F` and `/` look alike. So an encoded slash goes
through the routes as a sign that no key may contain, and is a slash again where a part is read.
"""

import re
from urllib.parse import unquote

from starlette.types import Scope

SLASH_PLACEHOLDER = "\x1f"
_ENCODED = re.compile(rb"%2f", re.IGNORECASE)


def protect_encoded_slashes(scope: Scope) -> str:
    """The decoded path of a request, its encoded slashes replaced by the stand-in."""
    raw_path: bytes = scope["raw_path"]
    if not _ENCODED.search(raw_path):
        return str(scope["path"])
    return unquote(_ENCODED.sub(b"%1F", raw_path).decode("ascii", "replace"))


def restore_slashes(part: str) -> str:
    """A part of a path with its slashes again."""
    return part.replace(SLASH_PLACEHOLDER, "/")
