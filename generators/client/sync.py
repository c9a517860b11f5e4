"""Writes the blocking half of the Python client: the modules that await, with other words."""

import io
import re
import tokenize
from collections.abc import Mapping
from pathlib import Path

SOURCES = {
    "async_methods.py": "methods.py",
    "async_client.py": "client.py",
    "async_family.py": "family.py",
    "core/async_sender.py": "core/sender.py",
    "core/async_wait.py": "core/wait.py",
}
"""Modules of the client that await, and those that block."""

_OMITTED = frozenset({"async", "await"})
_WORDS = {
    "aclose": "close",
    "aenter": "enter",
    "aiter_bytes": "iter_bytes",
    "anext": "next",
    "asynccontextmanager": "contextmanager",
    "awaits": "blocks",
    "StopAsyncIteration": "StopIteration",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
}
_PHRASES = {"an `async with`": "a `with`", "the tasks of one event loop": "threads"}
_PREFIXED = re.compile(r"\b(?:Async|async_)(?=\w)")
_WRITTEN_BY = "# Written by `make client` from `{source}`.\n"


def blocking(text: str, source: str) -> str:
    """Return the text of a module that blocks for one that awaits."""
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    # From the end, so that the places of earlier tokens stay right.
    for token in reversed(tokens):
        if token.type not in (tokenize.NAME, tokenize.STRING, tokenize.COMMENT):
            continue
        (first, start), (last, end) = token.start, token.end
        whole = "".join(lines[first - 1 : last])
        end += len("".join(lines[first - 1 : last - 1]))
        new = _replaced(token.string)
        if new == "":
            end += len(whole[end:]) - len(whole[end:].lstrip(" "))
        lines[first - 1 : last] = [whole[:start] + new + whole[end:], *[""] * (last - first)]
    head = "# Written by `make client` from the description of the HTTP API.\n"
    return _WRITTEN_BY.format(source=source) + "".join(lines).removeprefix(head)


def _replaced(token: str) -> str:
    if token in _OMITTED:
        return ""
    for phrase, other in _PHRASES.items():
        token = token.replace(phrase, other)
    text = re.sub(r"\w+", lambda found: _WORDS.get(found[0], found[0]), token)
    text = re.sub(r"\b(?:async|await) (?=with|for|family|client)", "", text)
    return _PREFIXED.sub("", text)


def blocking_modules(package: Path, made: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each module that blocks, by its path in the package. Sources are those of
    `made`, else the files."""
    return {
        target: blocking(made.get(source) or (package / source).read_text("utf-8"), source)
        for source, target in SOURCES.items()
    }
