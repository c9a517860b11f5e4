"""Sizes of the transcripts of external runs, without reading all entries for each report."""

from collections import OrderedDict
from uuid import UUID

from application.ports.transcripts import Transcripts, Written

KNOWN_MAX = 1_000
"""Number of runs remembered, the most recently reported."""


class WrittenExtents:
    """Cache of how far each transcript was read, to continue from there.

    That is safe because written entries never change, whichever server wrote them. Extents are kept
    by claim, because a new claim may rewrite the start of a transcript.
    """

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts
        self._known: OrderedDict[tuple[UUID, int], Written] = OrderedDict()

    async def of(self, run_id: UUID, epoch: int) -> Written:
        """Return the number of the last entry and the bytes of all bodies."""
        known = self._known.get((run_id, epoch), Written(0, 0))
        added = await self._transcripts.written_after(run_id, after=known.last)
        now = Written(added.last, known.bytes + added.bytes)
        self._known[run_id, epoch] = now
        self._known.move_to_end((run_id, epoch))
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return now
