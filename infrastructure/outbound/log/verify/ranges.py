"""Verification of one position range, assuming that the preceding range is valid. The verification
of that range judges it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from application.ports.verifications import Difference
from application.projections.catalog import PROJECTIONS
from domain.run.state import Run
from infrastructure.contract.operations import VerifiedCounts
from infrastructure.outbound.log.verify.chain import (
    BEGINNING,
    WalkResult,
    explain_break,
    link_at,
    verify_chain,
)
from infrastructure.outbound.log.verify.contents import check_contents
from infrastructure.outbound.log.verify.difference import first_difference
from infrastructure.outbound.log.verify.projections import check_rows
from infrastructure.outbound.log.verify.refold import RecordedStates, Refold, RefoldResult
from infrastructure.outbound.log.verify.rows import ReadConnection, read_rows
from infrastructure.outbound.log.verify.streams import (
    check_commits,
    commits_between,
    config_version_at,
    last_end_before,
)
from infrastructure.outbound.log.verify.transcripts import check_transcripts

PAGE_EVENTS = 2_000
AHEAD_MAX = 16
"""How many free ranges ahead a process may begin. Ranges that are skipped are unverified, so a
resumed verification checks the later ones again."""


class Range(NamedTuple):
    """The positions from `first` to `last`, both included."""

    first: int
    last: int


class RangeQueue:
    """Ranges in order, shared by several processes; each takes them by an iterator of its own.

    A process prefers the range after its last one, because it has the states for it in memory. If
    another process has taken that range, it starts afresh in the middle of the next free ranges.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._free = list(ranges)
        self._lock = Lock()

    def take(self, *, after: int | None = None) -> Iterator[Range]:
        """Yield ranges until none is left. The first one follows position `after`, if it is
        free."""
        while True:
            with self._lock:
                ahead = self._free[:AHEAD_MAX]
                if not ahead:
                    return
                following = (free for free in self._free if free.first - 1 == after)
                span = next(following, ahead[len(ahead) // 2])
                self._free.remove(span)
            yield span
            after = span.last


@dataclass(slots=True)
class RangeFindings:
    """Findings of a range: the hash of its last right event, the number of compared items, and the
    first difference."""

    range: Range
    chain_hash: bytes = b""
    counts: VerifiedCounts = field(default_factory=VerifiedCounts)
    difference: Difference | None = None


class RangeChecker:
    """Verifier of ranges of one log on one connection. Consecutive ranges cost least."""

    def __init__(self, connection: ReadConnection, log_id: UUID, head_hash: bytes) -> None:
        self._connection = connection
        self._log_id = log_id
        self._head_hash = head_hash
        # Where the last range ended: its last event, the end of the last complete transaction, and
        # the states there. Other ranges start afresh.
        self._link = BEGINNING
        self._whole = 0
        self._refold: Refold | None = None

    def check(self, span: Range) -> RangeFindings:
        """Verify one range, up to the first difference in it."""
        findings = RangeFindings(span)
        refold = self._refold
        if refold is None or self._link.position != span.first - 1:
            refold, findings.difference = self._begin(span.first)
        for first in range(span.first, span.last + 1, PAGE_EVENTS):
            if findings.difference is not None:
                break
            last = min(first + PAGE_EVENTS - 1, span.last)
            walked = self._walk(first, last)
            commits = commits_between(self._connection, max(1, self._link.position), last)
            page = refold.fold(walked.rows, commits)
            findings.difference = first_difference(
                (
                    walked.difference,
                    check_commits(self._link, walked.rows, commits),
                    page.difference,
                    self._check_beside(page, findings),
                )
            )
            if findings.difference is None:
                self._link, self._whole = walked.link, page.whole
        findings.chain_hash = self._link.chain_hash
        self._refold = refold if findings.difference is None else None
        return findings

    def _begin(self, first: int) -> tuple[Refold, Difference | None]:
        """Start from the recorded state before position `first`."""
        connection = self._connection
        self._whole = last_end_before(connection, first)
        refold = Refold(
            RecordedStates(connection),
            self._whole,
            log_id=self._log_id,
            config_version=config_version_at(connection, self._whole),
        )
        link = link_at(connection, first - 1)
        if link is None:
            # The preceding range reports this; if it does not, nothing else will.
            before = first - 1
            return refold, Difference(before, "missing", f"position {before} is missing")
        self._link = link
        # A transaction's rows belong to the range in which it ends.
        begun = read_rows(connection, self._whole + 1, first - 1)
        return refold, refold.fold(begun, ()).difference

    def _walk(self, first: int, last: int) -> WalkResult:
        walked = verify_chain(self._link, read_rows(self._connection, first, last), last)
        wrong = walked.difference
        if wrong is not None and wrong.kind == "changed":
            difference = explain_break(self._connection, walked.link, self._head_hash)
            return walked._replace(difference=first_difference((difference, wrong)))
        return walked

    def _check_beside(self, page: RefoldResult, findings: RangeFindings) -> Difference | None:
        """Check the texts and transcripts that the events of a page refer to, and the rows made by
        the transactions that end in it."""
        connection, counts = self._connection, findings.counts
        counts.run_rows += len(page.runs)
        counts.session_rows += len(page.sessions)
        return first_difference(
            (
                check_contents(connection, page.references.texts, counts),
                check_transcripts(connection, page.references.transcripts, counts),
                *(
                    check_rows(
                        connection,
                        projection,
                        page.runs if projection.state is Run else page.sessions,
                        self._whole + 1,
                        page.whole,
                    )
                    for projection in PROJECTIONS
                ),
            )
        )
