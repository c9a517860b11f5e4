"""Exported logs of earlier releases are read for ever."""

import asyncio
import json
from pathlib import Path

import pytest

from application.projections.catalog import PROJECTIONS
from domain.event_types import EVENT_TYPES
from infrastructure.outbound.log.transfer.lines import FILE_FORMAT
from infrastructure.outbound.log.transfer.verify_file import verify_file
from infrastructure.outbound.log.verify.verify import VerifyOrder, run_verification
from tests.support.builders.exported_logs import WHOLE, exported, imported
from tests.support.builders.golden_answers import LOGS
from tests.support.builders.submissions import observe
from tests.support.servers.running_log import running_on

FILES = sorted(LOGS.iterdir())
ROWS = {
    "first": {
        "runs 1": "053fef771928e374584b27a4767a516e",
        "sessions 2": "0fa8147cb499f4ead2adcd6e0f9bb7be",
    },
    "second": {
        "runs 1": "5446a644a7666970761d1ce233a92c9b",
        "sessions 2": "2ed7f8c197961c0b16eafee1da4e04d2",
    },
}
"""The MD5 of the rows that these logs give, by projection and version. When a change gives others,
raise the `version` of the projection: else older servers write on beside newer ones."""


def test_golden_logs_hold_every_event_type() -> None:
    lines = [json.loads(line) for file in FILES for line in file.read_bytes().splitlines()]
    types = {f"spawnlog.event.{name}" for name, _ in EVENT_TYPES}
    assert types <= {line["type"] for line in lines}


@pytest.mark.server
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_golden_log_is_imported_and_continued(
    file: Path, database_url: str, tmp_path: Path
) -> None:
    found = await asyncio.to_thread(verify_file, file)
    assert found.fault is None
    assert min(found.counts.contents, found.counts.transcripts, found.counts.erased) > 1
    await asyncio.to_thread(imported, database_url, file)
    order = VerifyOrder(state_file=tmp_path / "state")
    assert run_verification(database_url, order).difference is None
    exported(database_url, tmp_path / "again.ndjson", **WHOLE)
    if b'"format":%d,"logFormat"' % FILE_FORMAT in file.read_bytes():
        assert (tmp_path / "again.ndjson").read_bytes() == file.read_bytes()
    async with running_on(database_url) as running:
        found_rows = {
            f"{one.name} {one.version}": (
                await running.ask(
                    f"SELECT md5(string_agg(t::text, '' ORDER BY {one.key}, from_position))"
                    f" FROM {one.name} AS t"
                )
            )[0][0]
            for one in PROJECTIONS
        }
        assert found_rows == ROWS[file.stem]
        await observe(running.log, range(2))
        assert await running.log.head() == found.events + 2
