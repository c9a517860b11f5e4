"""Processes that look over ranges, so that a verification is not bound to one core.

What a process is to do comes on its standard input, a line for each range; each answer is a line of
its standard output. It ends when its input does, in whatever way its holder has ended.
"""

import contextlib
import gc
import json
import selectors
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Self
from uuid import UUID

import psycopg

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.verify.difference import Difference
from infrastructure.outbound.log.verify.ranges import Range, RangeChecker, RangeFindings
from infrastructure.outbound.log.verify.rows import database_error_reason, open_read_connection
from infrastructure.outbound.log.verify.whole_tables import StoredHead

END_SECONDS_MAX = 10.0
COLLECT_RANGES = 20

# Neither the environment nor the arguments hold the database's address: others can read those.
_PROGRAM = (
    "import json, sys; order = json.loads(sys.stdin.readline()); sys.path[:] = order['path'];"
    " from infrastructure.outbound.log.verify.processes import work; work(order)"
)


class VerificationStopped(UserError):
    """The verification could not go on; nothing is said about what was not looked at."""


class RangeWorkers:
    """Some processes that look over ranges of one log. To be closed."""

    def __init__(self, conninfo: str, head: StoredHead, count: int) -> None:
        self._order = {
            "path": sys.path,
            "conninfo": conninfo,
            "log_id": str(head.log_id),
            "head_hash": head.said_hash.hex(),
        }
        self._selector = selectors.DefaultSelector()
        self._processes: list[subprocess.Popen[str]] = []
        self._idle: list[subprocess.Popen[str]] = []
        try:
            for _ in range(count):
                self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        # Not in our terminal's group: an interrupt is ours to handle, and they end with us.
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._processes.append(process)
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, process)
        _send_order(process, self._order)
        self._idle.append(process)

    @property
    def has_idle(self) -> bool:
        """Whether one of them has nothing to do."""
        return bool(self._idle)

    def begin(self, asked: Range) -> None:
        """Give a range to one that has nothing to do."""
        _send_order(self._idle.pop(), list(asked))

    def answers(self) -> Iterator[RangeFindings]:
        """The findings that are there, at least one. `VerificationStopped` when none will come."""
        for key, _ in self._selector.select():
            process = key.data
            line = process.stdout.readline()
            if not line:
                raise VerificationStopped(
                    f"a process of the verification ended (status {process.wait()});"
                    " go on with --resume"
                )
            found = json.loads(line)
            if "error" in found:
                raise VerificationStopped(f"{found['error']}; go on with --resume")
            self._idle.append(process)
            yield _parse_findings(found)

    def close(self) -> None:
        """End them all."""
        self._selector.close()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait(END_SECONDS_MAX)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _send_order(process: subprocess.Popen[str], order: Any) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        raise VerificationStopped(
            "a process of the verification ended; go on with --resume"
        ) from None


def _parse_findings(found: dict[str, Any]) -> RangeFindings:
    difference = found.pop("difference")
    return RangeFindings(
        **found
        | {
            "range": Range(*found["range"]),
            "chain_hash": bytes.fromhex(found["chain_hash"]),
            "difference": Difference(**difference) if difference else None,
        }
    )


def work(order: dict[str, Any]) -> None:
    """Be such a process."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            _work(order)
        except psycopg.Error as error:
            _send_answer({"error": database_error_reason(error)})


def _work(order: dict[str, Any]) -> None:
    # States have no circles, so they go by themselves; to look for circles costs a third of it.
    gc.freeze()
    gc.disable()
    with open_read_connection(order["conninfo"]) as connection:
        log_id, head_hash = UUID(order["log_id"]), bytes.fromhex(order["head_hash"])
        checker = RangeChecker(connection, log_id, head_hash)
        for number, line in enumerate(sys.stdin, start=1):
            found = checker.check(Range(*json.loads(line)))
            _send_answer(asdict(found) | {"chain_hash": found.chain_hash.hex()})
            if number % COLLECT_RANGES == 0:
                gc.collect()


def _send_answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)
