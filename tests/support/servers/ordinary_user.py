"""Temporary change to an ordinary user, because permissions do not restrict root."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

NOBODY = 65534
Becoming = Callable[..., AbstractContextManager[None]]


"""Context manager that gives these paths to the user meanwhile."""


@contextmanager
def ordinary_user(*given: Path) -> Iterator[None]:
    """Make the whole process that user, with every thread: nothing else may run."""
    user, group = os.geteuid(), os.getegid()
    if user != 0:
        yield
        return
    for item in given:
        os.chown(item, NOBODY, NOBODY)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        os.setegid(group)
