"""Processes that look over ranges: each order is a range, each answer what was found in it."""

import contextlib
import gc
import json
import selectors
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Self
from uuid import UUID

import psycopg

from application.ports.verifications import Difference
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import VerifiedCounts
from infrastructure.outbound.log.process import WorkerProcess, send_answer
from infrastructure.outbound.log.verify.ranges import Range, RangeChecker, RangeFindings
from infrastructure.outbound.log.verify.rows import database_error_reason, open_read_connection
from infrastructure.outbound.log.verify.whole_tables import StoredHead

COLLECT_RANGES = 20


class VerificationStopped(UserError):
    """The verification could not go on; nothing is said about what was not looked at."""


class RangeWorkers:
    """Some processes that look over ranges of one log. To be closed."""

    def __init__(self, conninfo: str, head: StoredHead, count: int) -> None:
        order = {
            "conninfo": conninfo,
            "log_id": str(head.log_id),
            "head_hash": head.head_hash.hex(),
        }
        self._idle: list[WorkerProcess] = []
        with contextlib.ExitStack() as resources:
            self._selector = resources.enter_context(selectors.DefaultSelector())
            for _ in range(count):
                process = resources.enter_context(WorkerProcess(work, order))
                self._selector.register(process, selectors.EVENT_READ)
                self._idle.append(process)
            self._resources = resources.pop_all()

    @property
    def has_idle(self) -> bool:
        """Whether one of them has nothing to do."""
        return bool(self._idle)

    def begin(self, span: Range) -> None:
        """Give a range to one that has nothing to do."""
        self._idle.pop().send(span)

    def answers(self) -> Iterator[RangeFindings]:
        """The findings that are there, at least one. `VerificationStopped` when none will come."""
        for key, _ in self._selector.select():
            process = key.fileobj
            assert isinstance(process, WorkerProcess)
            answer = process.receive()
            if answer is None:
                raise VerificationStopped(
                    f"a process of the verification ended (status {process.wait()});"
                    " go on with --resume"
                )
            if "error" in answer:
                raise VerificationStopped(f"{answer['error']}; go on with --resume")
            self._idle.append(process)
            yield _parse_findings(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()


def _parse_findings(found: dict[str, Any]) -> RangeFindings:
    difference = found.pop("difference")
    return RangeFindings(
        **found
        | {
            "range": Range(*found["range"]),
            "chain_hash": bytes.fromhex(found["chain_hash"]),
            "counts": VerifiedCounts(**found["counts"]),
            "difference": Difference(**difference) if difference else None,
        }
    )


def work(order: dict[str, Any]) -> None:
    """Be such a process."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            _work(order)
        except psycopg.Error as error:
            send_answer({"error": database_error_reason(error)})


def _work(order: dict[str, Any]) -> None:
    # States have no circles, so they go by themselves; to look for circles costs a third of it.
    gc.freeze()
    gc.disable()
    with open_read_connection(order["conninfo"]) as connection:
        log_id, head_hash = UUID(order["log_id"]), bytes.fromhex(order["head_hash"])
        checker = RangeChecker(connection, log_id, head_hash)
        for number, line in enumerate(sys.stdin, start=1):
            found = checker.check(Range(*json.loads(line)))
            send_answer(asdict(found) | {"chain_hash": found.chain_hash.hex()})
            if number % COLLECT_RANGES == 0:
                gc.collect()
