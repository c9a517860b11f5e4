"""One range of positions, looked over by itself: what is in front of it is taken as it stands, for
it is judged by whoever looks over the range in front."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from application.ports.verifications import Difference
from application.projections.catalog import PROJECTIONS
from domain.run.state import Run
from infrastructure.contract.operations import VerifiedCounts
from infrastructure.outbound.log.verify.chain import Link, WalkResult, explain_break, link_at, walk
from infrastructure.outbound.log.verify.contents import check_contents
from infrastructure.outbound.log.verify.difference import first_difference
from infrastructure.outbound.log.verify.projections import RowCheck
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


class Range(NamedTuple):
    """The positions from `first` to `last`, both included."""

    first: int
    last: int


@dataclass(slots=True)
class RangeFindings:
    """What was found in a range: the hash of its last good event, how much was compared, and the
    first difference, if there is one."""

    range: Range
    chain_hash: bytes = b""
    counts: VerifiedCounts = field(default_factory=VerifiedCounts)
    difference: Difference | None = None


class RangeChecker:
    """Looks over ranges of one log on one connection."""

    def __init__(self, connection: ReadConnection, log_id: UUID, head_hash: bytes) -> None:
        self._connection = connection
        self._log_id = log_id
        self._head_hash = head_hash
        self._row_checks = [(one, RowCheck(connection, one)) for one in PROJECTIONS]

    def check(self, span: Range) -> RangeFindings:
        """Look over one range, up to the first difference in it."""
        findings = RangeFindings(span)
        link = link_at(self._connection, span.first - 1)
        if link is None:
            # The range in front tells; if it does not, nothing else will.
            before = span.first - 1
            findings.difference = Difference(before, "missing", f"position {before} is missing")
            return findings
        whole = last_end_before(self._connection, span.first)
        refold = Refold(
            RecordedStates(self._connection),
            whole,
            log_id=self._log_id,
            config_version=config_version_at(self._connection, whole),
        )
        # The rows of a transaction belong to the range in which it ends.
        begun = read_rows(self._connection, whole + 1, span.first - 1)
        findings.difference = refold.fold(begun, ()).difference
        if findings.difference is not None:
            return findings
        for first in range(span.first, span.last + 1, PAGE_EVENTS):
            last = min(first + PAGE_EVENTS - 1, span.last)
            walked = self._walk(link, first, last)
            commits = commits_between(self._connection, max(1, link.position), last)
            page = refold.fold(walked.rows, commits)
            findings.difference = first_difference(
                (
                    walked.difference,
                    check_commits(link, walked.rows, commits),
                    page.difference,
                    self._check_beside(page, whole, findings),
                )
            )
            if findings.difference is not None:
                break
            link, whole = walked.link, page.whole
        findings.chain_hash = link.chain_hash
        return findings

    def _walk(self, link: Link, first: int, last: int) -> WalkResult:
        walked = walk(link, read_rows(self._connection, first, last), last)
        wrong = walked.difference
        if wrong is not None and wrong.kind == "changed":
            difference = explain_break(self._connection, walked.link, self._head_hash)
            return walked._replace(difference=first_difference((difference, wrong)))
        return walked

    def _check_beside(
        self, page: RefoldResult, whole: int, findings: RangeFindings
    ) -> Difference | None:
        """The texts and transcripts that the events of a page refer to, and the rows that were made
        by the transactions that end in it: those behind `whole`."""
        connection, counts = self._connection, findings.counts
        counts.run_rows += len(page.runs)
        counts.session_rows += len(page.sessions)
        return first_difference(
            (
                check_contents(connection, page.references.texts, counts),
                check_transcripts(connection, page.references.transcripts, counts),
                *(
                    check.first_difference(
                        page.runs if one.state is Run else page.sessions, whole + 1, page.whole
                    )
                    for one, check in self._row_checks
                ),
            )
        )
