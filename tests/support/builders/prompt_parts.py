"""The parts of a prompt, held against what a process was given."""

import hashlib
from collections.abc import Mapping
from typing import Any


def stretches(prompt: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The sources of a prompt with their texts, in order, once it is sure that they are all of it:
    each begins where the one before it ends, and has the hash that is told."""
    found = []
    parts = prompt["parts"]
    for of in ("systemPrompt", "message"):
        whole, at = prompt[of].encode(), 0
        for part in (one for one in parts if one["of"] == of):
            assert part["start"] == at < part["end"]
            at = part["end"]
            stretch = whole[part["start"] : at]
            assert part["sha256"] == hashlib.sha256(stretch).hexdigest()
            found.append((part["source"], stretch.decode()))
        assert at == len(whole)
    assert [one["of"] for one in parts] == sorted((one["of"] for one in parts), reverse=True)
    return found
