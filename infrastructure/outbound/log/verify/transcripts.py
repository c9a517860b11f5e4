"""Check of the transcripts beside the log: each must match its seal from the end of its run."""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from application.ports.transcripts import RecordedEntry
from application.ports.verifications import Difference
from domain.run.facts import TranscriptSeal
from infrastructure.contract.operations import VerifiedCounts
from infrastructure.outbound.log.codec.binary import encode_column
from infrastructure.outbound.log.codec.transcript_line import transcript_line
from infrastructure.outbound.log.verify.contents import (
    READ_BYTES_MAX,
    READ_MAX,
    batches,
)
from infrastructure.outbound.log.verify.rows import ReadConnection

_KEYS = "SELECT session_id, key FROM content_keys WHERE session_id = ANY(%b::uuid[])"
_ENTRIES = (
    "SELECT run_id, sequence, recorded_at, kind, body FROM transcript_entries"
    " WHERE run_id = ANY(%b::uuid[]) ORDER BY run_id, sequence"
)


class RecordedTranscript(NamedTuple):
    """A transcript as sealed by the event that ended its run. `owner` is the session whose key
    sealed it, or None if the events were not folded."""

    position: int
    run_id: UUID
    owner: UUID | None
    seal: TranscriptSeal


class _ReadTranscript(NamedTuple):
    entries: int
    size: int
    hmac: str


def check_transcripts(
    connection: ReadConnection, sealed: Iterable[RecordedTranscript], counts: VerifiedCounts
) -> Difference | None:
    """Return the first transcript that differs from its seal, or None. `sealed` must be in
    order."""
    for batch in batches(
        sealed, lambda transcript: transcript.seal.bytes, READ_BYTES_MAX, READ_MAX
    ):
        owners = list({transcript.owner for transcript in batch})
        keys: Mapping[UUID | None, bytes] = dict(
            connection.execute(_KEYS, [encode_column("uuid", owners)]).fetchall()
        )
        read = dict(_read(connection, batch, keys))
        for transcript in batch:
            wrong = _transcript_fault(
                transcript, read.get(transcript.run_id), transcript.owner in keys, counts
            )
            if wrong is not None:
                text = f"the transcript of run {transcript.run_id} {wrong}"
                return Difference(transcript.position, "transcript", text)
    return None


def _read(
    connection: ReadConnection,
    batch: Sequence[RecordedTranscript],
    keys: Mapping[UUID | None, bytes],
) -> Iterator[tuple[UUID, _ReadTranscript]]:
    """Read the transcripts. A single long one is streamed, one entry in memory at a time."""
    owners = {transcript.run_id: transcript.owner for transcript in batch}
    with connection.cursor(binary=True) as cursor:
        rows: Iterable[Any]
        if len(batch) > 1:
            rows = cursor.execute(_ENTRIES, [encode_column("uuid", list(owners))]).fetchall()
        else:
            rows = cursor.stream(_ENTRIES, [list(owners)])
        for run_id, entries in groupby(rows, key=itemgetter(0)):
            digest = hmac.new(keys.get(owners[run_id], b""), digestmod=hashlib.sha256)
            count = size = 0
            for _, sequence, recorded_at, kind, body in entries:
                line = transcript_line(
                    RecordedEntry(sequence, recorded_at, kind, orjson.loads(body))
                )
                digest.update(line)
                count += 1
                size += len(line)
            yield run_id, _ReadTranscript(count, size, digest.hexdigest())


def _transcript_fault(
    transcript: RecordedTranscript,
    read: _ReadTranscript | None,
    has_key: bool,
    counts: VerifiedCounts,
) -> str | None:
    seal = transcript.seal
    if not has_key:
        counts.erased += 1
        return None
    found = read or _ReadTranscript(0, 0, "")
    if (found.entries, found.size) != (seal.count, seal.bytes):
        return (
            f"was changed: it has {found.entries} entries of {found.size} bytes instead of"
            f" {seal.count} of {seal.bytes}"
        )
    if seal.count and found.hmac != seal.hmac:
        return "was changed: its entries differ from the sealed ones"
    counts.transcripts += 1
    return None
