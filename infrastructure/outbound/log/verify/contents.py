"""Check of the texts beside the log: each must match the reference in its event."""

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from application.ports.verifications import Difference
from domain.values.record import RUN_PREFIX, ContentRef
from infrastructure.contract.operations import VerifiedCounts
from infrastructure.outbound.log.codec.binary import encode_column
from infrastructure.outbound.log.verify.rows import ReadConnection

T = TypeVar("T")
READ_BYTES_MAX = 4 * 1024 * 1024
READ_MAX = 2_000
"""Limits of the bytes and number of texts in memory at a time; a single larger text is read
alone."""


# A text of another length is already wrong and might be of any size, so it is not fetched. One
# statement reads text and key, so that a concurrent erasure is seen as a whole or not at all.
_CONTENTS = (
    "SELECT octet_length(c.body), c.session_id = t.owner AND c.bytes = t.bytes,"
    " CASE WHEN octet_length(c.body) = t.bytes THEN convert_to(c.body, 'UTF8') END, k.key"
    " FROM unnest(%b::uuid[], %b::uuid[], %b::bigint[]) WITH ORDINALITY AS t (id, owner, bytes, n)"
    " LEFT JOIN contents c ON c.content_id = t.id"
    " LEFT JOIN content_keys k ON k.session_id = t.owner ORDER BY t.n"
)


class ContentMention(NamedTuple):
    """A reference from an event to a text. `owner` is the session whose key hashed it, or None if
    the events were not folded; `place` is the field with the reference."""

    position: int
    stream: str
    place: str
    owner: UUID | None
    ref: ContentRef


def check_contents(
    connection: ReadConnection, mentions: Iterable[ContentMention], counts: VerifiedCounts
) -> Difference | None:
    """Return the first text that is not the recorded one, or None. `mentions` must be in order."""
    for batch in batches(mentions, lambda mention: mention.ref.bytes, READ_BYTES_MAX, READ_MAX):
        rows = connection.execute(
            _CONTENTS,
            [
                encode_column("uuid", [mention.ref.id for mention in batch]),
                encode_column("uuid", [mention.owner for mention in batch]),
                encode_column("bigint", [mention.ref.bytes for mention in batch]),
            ],
            binary=True,
        ).fetchall()
        for mention, row in zip(batch, rows, strict=True):
            wrong = _content_fault(mention, row, counts)
            if wrong is not None:
                whose = mention.stream.replace(RUN_PREFIX, "run ")
                text = f"the {mention.place} of {whose} (content {mention.ref.id}) {wrong}"
                return Difference(mention.position, "content", text)
    return None


def batches(
    items: Iterable[T], bytes_of: Callable[[T], int], bytes_max: int, items_max: int
) -> Iterator[Sequence[T]]:
    """Yield the items in order, in batches of at most `items_max` items and `bytes_max` bytes; a
    larger item is a batch by itself."""
    batch: list[T] = []
    size = 0
    for item in items:
        if batch and (size + bytes_of(item) > bytes_max or len(batch) >= items_max):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += bytes_of(item)
    if batch:
        yield batch


def _content_fault(
    mention: ContentMention, row: Sequence[Any], counts: VerifiedCounts
) -> str | None:
    found_bytes, noted_well, body, key = row
    ref = mention.ref
    if found_bytes is None:
        if key is None:
            counts.erased += 1
            return None
        return "is missing, but the key of its session exists"
    if key is None:
        return "cannot be verified: the text exists, but the key of its session is gone"
    if body is None:
        return f"was changed: it has {found_bytes} bytes instead of {ref.bytes}"
    if hmac.digest(key, body, "sha256").hex() != ref.hmac:
        return "was changed: it differs from the recorded text"
    if not noted_well:
        return "is the recorded text, but its other columns were changed"
    counts.contents += 1
    return None
