"""When and where an event was recorded: what the log adds to an event."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Stamp(NamedTuple):
    """`position` in the log, `version` in its stream, `recorded_at` (UTC) on the log's clock;
    `event_id` so that what follows from an event can name it as its cause."""

    position: int
    version: int
    recorded_at: datetime
    event_id: UUID | None = None
