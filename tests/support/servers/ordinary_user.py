"""Being an ordinary user for a while, to whom folders may be closed; root may do everything."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

NOBODY = 65534
Becoming = Callable[..., AbstractContextManager[None]]


"""Given paths are the user's meanwhile."""


@contextmanager
def ordinary_user(*given: Path) -> Iterator[None]:
    """The whole process is that user, every thread of it: nothing else may be going on."""
    user, group = os.geteuid(), os.getegid()
    if user != 0:
        yield
        return
    for one in given:
        os.chown(one, NOBODY, NOBODY)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        os.setegid(group)
