"""Who inherits orphans and who dies with whom: prctl(2), which only Linux has.

Elsewhere (macOS) these do nothing: a descendant that leaves its process group is then out of reach,
and a leader survives a gate that was killed with SIGKILL.
"""

import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36


def _prctl() -> Callable[..., int]:
    import ctypes

    function = ctypes.CDLL(None, use_errno=True).prctl
    function.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    function.restype = ctypes.c_int

    def call(option: int, argument: int) -> int:
        if function(option, argument, 0, 0, 0) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return 0

    return call


class ProcessControl:
    """Made once in the warm process, so that no gate pays for loading ctypes."""

    def __init__(self) -> None:
        self._call = _prctl() if sys.platform == "linux" else None

    def adopt_orphans(self) -> None:
        """Descendants whose parent ends become children of this process."""
        if self._call is not None:
            self._call(PR_SET_CHILD_SUBREAPER, 1)

    def die_with(self, parent: int) -> None:
        """This process is killed when `parent` ends; at once if it has ended already."""
        if self._call is not None:
            self._call(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    def set_name(self, name: str) -> None:
        """The name in `ps -o comm` and `top`, at most 15 bytes."""
        if self._call is not None:
            import ctypes

            text = ctypes.create_string_buffer(name.encode()[:15])
            self._call(PR_SET_NAME, ctypes.addressof(text))
