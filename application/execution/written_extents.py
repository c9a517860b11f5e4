"""How much is written of runs that are reported from outside, without reading it all each time."""

from collections import OrderedDict
from uuid import UUID

from application.ports.transcripts import Transcripts, Written

KNOWN_MAX = 1_000
"""So many runs are remembered, those that were reported last."""


class WrittenExtents:
    """Remembers how far each transcript was read, and reads on from there: entries that are written
    stay as they are, whichever server wrote them. By claim, since what stands in front of a
    transcript may be written anew with another one."""

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts
        self._known: OrderedDict[tuple[UUID, int], Written] = OrderedDict()

    async def of(self, run_id: UUID, epoch: int) -> Written:
        """The number of the last entry, and the bytes of all bodies."""
        known = self._known.get((run_id, epoch), Written(0, 0))
        added = await self._transcripts.written_behind(run_id, after=known.last)
        now = Written(added.last, known.bytes + added.bytes)
        self._known[run_id, epoch] = now
        self._known.move_to_end((run_id, epoch))
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return now
