"""Worker processes that verify ranges: each order is a range, each answer its findings."""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from queue import SimpleQueue
from threading import Thread
from typing import Any, Self
from uuid import UUID

import psycopg

from application.ports.verifications import Difference
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import VerifiedCounts
from infrastructure.outbound.log.process import WorkerProcess, rare_collections, send_answer
from infrastructure.outbound.log.verify.ranges import Range, RangeChecker, RangeFindings
from infrastructure.outbound.log.verify.rows import database_error_reason, open_read_connection
from infrastructure.outbound.log.verify.whole_tables import StoredHead


class VerificationStoppedError(UserError):
    """The verification stopped early; the remaining positions are unverified."""


class RangeWorkers:
    """Worker processes that verify ranges of one log beside this process.

    There is one worker for each iterator. It takes the iterator's next range when it has finished
    one. Close it after use.
    """

    def __init__(self, conninfo: str, head: StoredHead, ranges: Sequence[Iterator[Range]]) -> None:
        order = {
            "conninfo": conninfo,
            "log_id": str(head.log_id),
            "head_hash": head.head_hash.hex(),
        }
        self._answers: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._working = len(ranges)
        with contextlib.ExitStack() as resources:
            for ranges_of_worker in ranges:
                process = resources.enter_context(WorkerProcess(work, order))
                thread = Thread(target=self._follow, args=[process, ranges_of_worker], daemon=True)
                thread.start()
                resources.callback(thread.join)
                resources.callback(process.kill)
            self._resources = resources.pop_all()

    def _follow(self, process: WorkerProcess, ranges: Iterator[Range]) -> None:
        try:
            for span in ranges:
                process.send(span)
                answer = process.receive()
                if answer is None:
                    ended = f"a process of the verification ended (status {process.wait()})"
                    answer = {"error": ended}
                self._answers.put(answer)
                if "error" in answer:
                    break
        except ValueError:
            self._answers.put({"error": "a process of the verification was cut off in an answer"})
        finally:
            self._answers.put(None)

    def answers(self, *, wait: bool) -> Iterator[RangeFindings]:
        """Yield the available findings, or with `wait` all that are still to come.

        Raises:
            VerificationStoppedError: A process failed.
        """
        while self._working and (wait or not self._answers.empty()):
            answer = self._answers.get()
            if answer is None:
                self._working -= 1
            elif "error" in answer:
                raise VerificationStoppedError(f"{answer['error']}; continue with --resume")
            else:
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
    """Run as a worker process."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            _work(order)
        except psycopg.Error as error:
            send_answer({"error": database_error_reason(error)})


def _work(order: dict[str, Any]) -> None:
    with rare_collections(), open_read_connection(order["conninfo"]) as connection:
        log_id, head_hash = UUID(order["log_id"]), bytes.fromhex(order["head_hash"])
        checker = RangeChecker(connection, log_id, head_hash)
        for line in sys.stdin:
            found = checker.check(Range(*json.loads(line)))
            send_answer(asdict(found) | {"chain_hash": found.chain_hash.hex()})
