"""Generate the blocking half of the Python client from the asynchronous modules."""

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
"""Blocking module for each asynchronous module of the client."""

_OMITTED = frozenset({"async", "await"})
_WORDS = {
    "aclose": "close",
    "aenter": "enter",
    "aiter_bytes": "iter_bytes",
    "anext": "next",
    "asynccontextmanager": "contextmanager",
    "Asynchronous": "Blocking",
    "asynchronous": "blocking",
    "StopAsyncIteration": "StopIteration",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
}
_PHRASES = {
    "an `async with`": "a `with`",
    "an asynchronous": "a blocking",
    "the tasks of one event loop": "threads",
}
_PREFIXED = re.compile(r"\b(?:Async|async_)(?=\w)")
_WRITTEN_BY = "# Written by `make client` from `{source}`.\n"


def blocking(text: str, source: str) -> str:
    """Return the source of the blocking module.

    Args:
        text: Source of the asynchronous module.
        source: Its path in the package, for the header.
    """
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    # Backward, so that the positions of earlier tokens stay valid.
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
    text = re.sub(r"\b(?:async|await) (?=with|for|family|client|run\b)", "", text)
    return _PREFIXED.sub("", text)


def blocking_modules(package: Path, made: Mapping[str, str]) -> dict[str, str]:
    """Return the source of each blocking module by its path in the package.

    Args:
        package: Folder of the client.
        made: Generated asynchronous modules; the others are read from `package`.
    """
    return {
        target: blocking(made.get(source) or (package / source).read_text("utf-8"), source)
        for source, target in SOURCES.items()
    }
