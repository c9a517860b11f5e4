"""Files that a request brought, from its admission until they are written or not wanted."""

from typing import Protocol
from uuid import UUID


class StagedFiles(Protocol):
    """Reads and drops what admissions have kept. None of it is part of the log."""

    async def read(self, run_id: UUID) -> tuple[bytes, ...]:
        """The run's files in their order; none when they were dropped."""
        ...

    async def drop(self, run_id: UUID) -> None:
        """They are written, or will never be."""
        ...

    async def sweep(self, limit: int) -> int:
        """Drop the files of at most `limit` runs that are not being prepared any more; gives of
        how many they were."""
        ...
