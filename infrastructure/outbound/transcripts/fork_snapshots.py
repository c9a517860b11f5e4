"""Fork snapshots: the entries that a forked child begins with, as rows written during its
preparation and as a file."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from application.log.event_log import LogUnavailableError
from application.ports.runtimes import TranscriptEntry
from application.projections.fold import FOREVER
from domain.run.lifecycle import PREPARING
from infrastructure.outbound.log.codec.transcript_line import transcript_line
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection
from infrastructure.outbound.transcripts.files import (
    TranscriptFolders,
    atomic_file,
    drop_file,
    has_content,
)
from infrastructure.outbound.transcripts.rows import Pool, pages, stored_body

ATTEMPTS_MAX = 10

# The row lock makes this write and an append that refuses or takes over the run wait for each
# other.
_HELD = (
    "SELECT 1 FROM runs WHERE run_id = %(run_id)s"
    f" AND to_position = {FOREVER} AND epoch = %(epoch)s AND stage = ANY(%(stages)s)"
)
_CLEAR = "DELETE FROM transcript_entries WHERE run_id = %(run_id)s"
_WRITE = (
    "INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
    " SELECT %(run_id)s, t.sequence, clock_timestamp(), t.kind, t.body FROM"
    " unnest(%(kinds)s::text[], %(bodies)s::text[]) WITH ORDINALITY AS t (kind, body, sequence)"
)
_CLEAR_REFUSED = (
    f"{_CLEAR} AND EXISTS (SELECT 1 FROM runs WHERE run_id = %(run_id)s"
    f" AND to_position = {FOREVER} AND stage = 'refused')"
)


async def fork_rows(
    pool: Pool, run_id: UUID, epoch: int, entries: Sequence[TranscriptEntry]
) -> bool:
    """Write entries numbered from 1, replacing the existing ones. Return False if the claim was
    replaced or the run is past its preparation.

    Raises:
        LogUnavailableError: The run's row changed in each of `ATTEMPTS_MAX` attempts, or the
            database is unavailable.
    """
    values = {
        "run_id": run_id,
        "epoch": epoch,
        "stages": sorted(PREPARING),
        "kinds": [entry.kind for entry in entries],
        "bodies": [stored_body(entry) for entry in entries],
    }
    async with borrow_connection(pool) as connection:
        for _ in range(ATTEMPTS_MAX):
            if await _replace_rows(connection, values):
                return True
            # An append that keeps the claim replaces the row that was waited for. The statement
            # could not see the new row, so try again.
            if await (await connection.execute(_HELD, values)).fetchone() is None:
                return False
    raise LogUnavailableError("the run changes too fast to note its fork; retry in a moment")


async def _replace_rows(connection: LogConnection, values: dict[str, object]) -> bool:
    async with connection.transaction():
        held = await connection.execute(f"{_HELD} FOR SHARE", values)
        if await held.fetchone() is None:
            return False
        await connection.execute(_CLEAR, values)
        await connection.execute(_WRITE, values)
    return True


async def unfork_rows(pool: Pool, run_id: UUID) -> bool:
    """Delete the entries of a refused run. Return True if there were any."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_CLEAR_REFUSED, {"run_id": run_id})
    return cursor.rowcount > 0


async def write_fork_snapshot(
    pool: Pool, folders: TranscriptFolders, run_id: UUID, *, agent_id: str, name: str, count: int
) -> None:
    """Write the file of the first `count` entries atomically, unless it exists with this
    content."""
    # All in memory: a fork is no larger than one request may be.
    lines = [
        transcript_line(entry) async for page in pages(pool, run_id, until=count) for entry in page
    ]
    await asyncio.to_thread(_write_snapshot, folders, agent_id, name, lines)


async def drop_fork_snapshot(folders: TranscriptFolders, *, agent_id: str, name: str) -> bool:
    """Delete the file and the part files of attempts to write it. Return True if the file
    existed."""
    return await asyncio.to_thread(drop_file, folders, agent_id, name)


def _write_snapshot(
    folders: TranscriptFolders, agent_id: str, name: str, lines: list[bytes]
) -> None:
    content = b"".join(lines)
    if not has_content(folders, agent_id, name, content):
        with atomic_file(folders, agent_id, name) as file:
            file.write(content)
