"""Parts of a prompt, compared with the input of a process."""

import hashlib
from collections.abc import Mapping
from typing import Any


def stretches(prompt: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return sources and texts of a prompt, in order.

    Asserts that each part begins where the previous one ends, that they cover everything, and that
    the hashes are right.
    """
    found = []
    parts = prompt["parts"]
    for of in ("systemPrompt", "message"):
        whole, at = prompt[of].encode(), 0
        for part in (part for part in parts if part["of"] == of):
            assert part["start"] == at < part["end"]
            at = part["end"]
            stretch = whole[part["start"] : at]
            assert part["sha256"] == hashlib.sha256(stretch).hexdigest()
            found.append((part["source"], stretch.decode()))
        assert at == len(whole)
    assert [part["of"] for part in parts] == sorted((part["of"] for part in parts), reverse=True)
    return found
