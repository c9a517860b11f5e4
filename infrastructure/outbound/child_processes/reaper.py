"""Kill every descendant of this process, whatever it does to escape.

This process is the subreaper of its descendants (`ProcessControl`). If the parent of a descendant
ends, the descendant becomes its child, so "no child left" means "no descendant left". Children are
killed by pid: a pid cannot be reused before the child is reaped. Their process groups are killed
too, because no fork in a group escapes a signal to it. Deeper descendants are killed through a
pidfd, after a check of the parent.

Some processes fork faster than they are found. Therefore all descendants are stopped before they
are killed. A stopped process keeps its place in the process table, so a fork bomb runs into the
process limit instead of refilling the places of the dead.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from types import FrameType

FREEZE_EVERY_ROUNDS = 4
FREEZE_PASSES_MAX = 12
PAUSE_SECONDS_MAX = 0.005


def end_children(
    seconds_max: float,
    reaped: Callable[[int, int], None],
    spared: Collection[int] = (),
) -> list[int]:
    """Kill and reap all descendants, except the children `spared` and what is below them.

    Args:
        seconds_max: Time limit in seconds.
        reaped: Called with the pid and wait status of each reaped child, including spared ones.
        spared: Pids of children to leave alone.

    Returns:
        The pids that remain after `seconds_max`: this user may not kill them, or they hang in the
        kernel.
    """
    deadline = time.monotonic() + seconds_max
    struck: set[int] = set()
    rounds = 0
    pause = 0.0001

    def note(pid: int, status: int) -> None:
        struck.discard(pid)
        reaped(pid, status)

    while True:
        if not reap(note):
            return []
        here = [pid for pid in child_pids() if pid not in spared]
        if not here and spared:
            return []
        if time.monotonic() > deadline:
            return here
        fresh = [pid for pid in here if pid not in struck]
        for pid in fresh:
            kill_with_group(pid)
            struck.add(pid)
        if fresh:
            rounds += 1
            pause = 0.0001
            if rounds % FREEZE_EVERY_ROUNDS == 0:
                freeze_and_kill(spared)
        else:
            time.sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)


def reap(reaped: Callable[[int, int], None]) -> bool:
    """Reap every child that has ended. Return False if there is no child at all."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        reaped(pid, status)


def child_pids() -> list[int]:
    """Return the pids of all children, including ended ones; empty without /proc."""
    own = os.getpid()
    try:
        with open(f"/proc/self/task/{own}/children", "rb", buffering=0) as listing:
            return [int(pid) for pid in listing.read().split()]
    except OSError:
        return [pid for pid, parent in parents_by_pid().items() if parent == own]


def kill_with_group(child: int) -> None:
    """Kill a child and its process group, unless that is the group of this process."""
    with contextlib.suppress(OSError):
        group = os.getpgid(child)
        if group not in (os.getpgrp(), 0, 1):
            os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)


def freeze_and_kill(spared: Collection[int]) -> None:
    """Stop descendants until a pass finds no new one, then kill them all."""
    known: dict[int, int] = {}
    for _ in range(FREEZE_PASSES_MAX):
        found = {pid: parent for pid, parent in descendants(spared).items() if pid not in known}
        if not found:
            break
        for pid, parent in found.items():
            signal_descendant(pid, parent, signal.SIGSTOP)
        known.update(found)
    for pid, parent in known.items():
        signal_descendant(pid, parent, signal.SIGKILL)


def descendants(spared: Collection[int]) -> dict[int, int]:
    """Return every descendant with its parent, parents first."""
    offspring: dict[int, list[int]] = {}
    for pid, parent in parents_by_pid().items():
        offspring.setdefault(parent, []).append(pid)
    found: dict[int, int] = {}
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for pid in offspring.get(parent, []):
            if pid not in spared and pid not in found:
                found[pid] = parent
                waiting.append(pid)
    return found


def signal_descendant(pid: int, parent: int, number: signal.Signals) -> None:
    """Signal a process if it is still the one that was found. It need not be a child."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            # The pidfd refers to one process. If the pid was reused before the pidfd was opened,
            # the parent differs (or is this process too). If after, the signal has no target.
            if parent_of(pid) in (parent, os.getpid()):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def parents_by_pid() -> dict[int, int]:
    """Return the parent of every process of this machine; empty without /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return {}
    table: dict[int, int] = {}
    for name in names:
        if name.isdigit():
            parent = parent_of(int(name))
            if parent is not None:
                table[int(name)] = parent
    return table


def parent_of(pid: int) -> int | None:
    """Return the pid of the parent, or None if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stat:
            # The program name is in parentheses and may contain any byte.
            return int(stat.read(1024).rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


class ChildExits:
    """A descriptor that becomes readable on each SIGCHLD of this process."""

    def __init__(self) -> None:
        self.descriptor, self._write_end = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._write_end, False)
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore_signal)

    def forget(self) -> None:
        """Drain the descriptor. Call waitpid after it."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass

    def close(self) -> None:
        """Release the descriptors in a forked process, which creates its own."""
        signal.set_wakeup_fd(-1)
        os.close(self.descriptor)
        os.close(self._write_end)


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    pass


# Subreaper and parent-death signal: prctl(2), Linux only.
#
# On macOS these are no-ops: a descendant that leaves its process group is out of reach, and a
# leader survives a guard that was killed with SIGKILL.


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
    """Calls of prctl(2). Created once in the fork server, so that no guard loads ctypes."""

    def __init__(self) -> None:
        self._call = _prctl() if sys.platform == "linux" else None

    def adopt_orphans(self) -> None:
        """Make this process the subreaper: descendants whose parent ends become its children."""
        if self._call is not None:
            self._call(PR_SET_CHILD_SUBREAPER, 1)

    def die_with(self, parent: int) -> None:
        """Let the kernel kill this process when `parent` ends; at once if it has already ended."""
        if self._call is not None:
            self._call(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    def set_name(self, name: str) -> None:
        """Set the name shown by `ps -o comm` and `top`, at most 15 bytes."""
        if self._call is not None:
            import ctypes

            text = ctypes.create_string_buffer(name.encode()[:15])
            self._call(PR_SET_NAME, ctypes.addressof(text))
