"""Roots of workspaces that cannot be used, or that hold back nothing."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from domain.configuration.doubts import Doubt
from domain.configuration.problems import ConfigurationError, pointer_of

_EVERYTHING = (
    "is the whole machine: a request may name any folder as its requester's workspace; write the "
    "folders that are meant"
)
_UNTOLD = "cannot be told, and requests that name a workspace are refused for it: {why}"


def doubtful_roots(roots: Sequence[str], place: Callable[[str], Path]) -> Iterator[Doubt]:
    """What is doubtful about `spawnlog.workspaceRoots` here and now; `place` tells the folder that
    a root means, or raises ConfigurationError."""
    for index, root in enumerate(roots):
        pointer = pointer_of(("spawnlog", "workspaceRoots", index))
        try:
            folder = os.path.realpath(place(root))
        except (ConfigurationError, ValueError) as error:
            yield Doubt(pointer, _UNTOLD.format(why=error))
            continue
        if folder == os.path.realpath(os.sep):
            yield Doubt(pointer, _EVERYTHING)
