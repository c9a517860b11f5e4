"""One range of positions, looked over by itself: what is in front of it is taken as it stands, for
it is judged by whoever looks over the range in front."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from application.ports.verifications import Difference
from application.projections.catalog import PROJECTIONS
from domain.run.events import RunEnded
from domain.run.state import Run
from domain.values.record import RUN_PREFIX
from infrastructure.contract.operations import VerifiedCounts
from infrastructure.outbound.log.verify.chain import Link, WalkResult, explain_break, link_at, walk
from infrastructure.outbound.log.verify.contents import (
    ContentMention,
    check_contents,
    find_references,
)
from infrastructure.outbound.log.verify.difference import first_difference
from infrastructure.outbound.log.verify.projections import check_rows
from infrastructure.outbound.log.verify.refold import (
    ReadEvent,
    RecordedStates,
    Refold,
    RefoldResult,
)
from infrastructure.outbound.log.verify.rows import ReadConnection, read_rows
from infrastructure.outbound.log.verify.streams import (
    StreamVersions,
    check_commits,
    commits_between,
    last_end_before,
)
from infrastructure.outbound.log.verify.transcripts import RecordedTranscript, check_transcripts

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

    def check(self, span: Range) -> RangeFindings:
        """Look over one range, up to the first difference in it."""
        findings = RangeFindings(span)
        link = link_at(self._connection, span.first - 1)
        if link is None:
            # The range in front tells; if it does not, nothing else will.
            before = span.first - 1
            findings.difference = Difference(before, "missing", f"position {before} is missing")
            return findings
        versions = StreamVersions(self._connection)
        whole = last_end_before(self._connection, span.first)
        refold = Refold(RecordedStates(self._connection), whole)
        # The rows of a transaction belong to the range in which it ends.
        begun = list(read_rows(self._connection, whole + 1, span.first - 1))
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
                    versions.check(walked.rows),
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
                check_contents(connection, mentions_in(page.events, self._log_id), counts),
                check_transcripts(connection, sealed_in(page.events), counts),
                *(
                    check_rows(
                        connection,
                        one,
                        page.runs if one.state is Run else page.sessions,
                        whole + 1,
                        page.whole,
                    )
                    for one in PROJECTIONS
                ),
            )
        )


def mentions_in(events: Sequence[ReadEvent], log_id: UUID | None) -> Iterator[ContentMention]:
    """Yield each text that the events refer to, once.

    Its owner is the session of the run, the session itself, or the log. If `log_id` is None, the
    events were not folded: then the owner is None too.
    """
    identities: set[tuple[int, str, int]] = set()
    for (stream, event, stamp), _, about in events:
        owner = about.session_id if about is not None else log_id
        for place, ref in find_references(event):
            identity = (ref.id.int, ref.hmac, ref.bytes)
            if identity not in identities:
                identities.add(identity)
                yield ContentMention(stamp.position, stream, place, owner, ref)


def sealed_in(events: Sequence[ReadEvent]) -> Iterator[RecordedTranscript]:
    """Yield each transcript that an event sealed; its owner is None if the events were not folded.

    `ValueError` for the end of a run in another stream, which only unfolded events can have.
    """
    for (stream, event, stamp), _, run in events:
        if isinstance(event, RunEnded) and event.transcript is not None:
            run_id = UUID(stream.removeprefix(RUN_PREFIX))
            owner = run.session_id if run is not None else None
            yield RecordedTranscript(stamp.position, run_id, owner, event.transcript)
