"""A verification of a right log: beside servers that append, killed and resumed, of any size."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from domain.event_types import EVENT_TYPES, LOG_FORMAT
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.codec.chain import chain_hash
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.events import COLUMNS, recorded_event
from infrastructure.outbound.log.schema.format import UnknownFormat
from infrastructure.outbound.log.verify import verify
from infrastructure.outbound.log.verify.processes import VerificationStopped
from infrastructure.outbound.log.verify.rows import open_read_connection, read_rows
from infrastructure.outbound.log.verify.verify import Verification, VerifyOrder, run_verification
from infrastructure.outbound.log.verify.whole_tables import ExpectedHead
from tests.support.builders.stored_family import KeptFamily
from tests.support.servers.preloaded import run_command
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.kill


async def _verify(running: RunningLog, folder: Path, **more: object) -> Verification:
    order = VerifyOrder(**{"state_file": folder / "state.json", **more})  # type: ignore[arg-type]
    return await asyncio.to_thread(run_verification, running.url, order)


@pytest.mark.told("all")
async def test_a_log_in_which_everything_has_happened_is_right(
    running: RunningLog, tmp_path: Path
) -> None:
    assert set(await running.types()) == {name for name, _ in EVENT_TYPES}
    found = await _verify(running, tmp_path)
    assert found.difference is None
    ((position, digest, log_id),) = await running.ask(
        "SELECT position, chain_hash, log_id FROM log_head"
    )
    assert str(found.head) == f"{position}:{digest.hex()}"
    assert (found.head.log_id, found.began, found.checked.position) == (log_id, 0, position)
    rows = [
        (await running.ask(f"SELECT count(*) FROM {one}"))[0][0] for one in ("runs", "sessions")
    ]
    assert [found.checked.counts.run_rows, found.checked.counts.session_rows] == rows
    assert found.checked.counts.contents > 40
    assert found.checked.counts.transcripts == 16
    assert 0 < found.seconds < 60


async def test_an_empty_log_is_right(running: RunningLog, tmp_path: Path) -> None:
    found = await _verify(running, tmp_path)
    assert found.difference is None
    assert str(found.head) == "0:"
    beyond = await _verify(running, tmp_path, head=ExpectedHead(3, b"x" * 32, "the head given"))
    assert str(beyond.difference).startswith("position 1: positions 1 to 3 are missing")


@pytest.mark.told("all")
async def test_rows_are_copied_out_as_they_were_hashed(running: RunningLog, tmp_path: Path) -> None:
    rows = await running.ask(f"SELECT {COLUMNS} FROM events ORDER BY position")
    mapper = EventMapper()
    previous = b""
    with open_read_connection(running.url) as connection:
        for row, copied in zip(rows, read_rows(connection, 1, len(rows)), strict=True):
            envelope = recorded_event(row, mapper).envelope
            assert copied.position == envelope.position
            assert (copied.stream, copied.version) == (envelope.stream, envelope.version)
            assert (copied.type, copied.type_version) == (envelope.type, envelope.type_version)
            assert copied.event_id == envelope.event_id.bytes
            assert copied.command_id == envelope.command_id.bytes
            assert copied.append_last == envelope.append_last
            assert (copied.state, copied.chain_hash) == (row[-1], envelope.chain_hash)
            assert copied.hash_after(previous) == chain_hash(previous, envelope, row[-1])
            previous = envelope.chain_hash
        assert list(read_rows(connection, len(rows) + 1, len(rows) + 9)) == []


async def test_what_is_appended_meanwhile_is_no_difference(
    running: RunningLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", 30)
    family = KeptFamily(running.log, running.pool, tmp_path, max_children=900)
    for number in range(8):
        await family.begin(f"early {number}")
    ((before,),) = await running.ask("SELECT position FROM log_head")
    loop = asyncio.get_running_loop()
    lives = iter(range(100))

    def append(_began: int, _position: int, _last: int) -> None:
        number = next(lives)
        asyncio.run_coroutine_threadsafe(_go_on(family, number), loop).result(30)

    for _ in range(2):
        found = await _verify(running, tmp_path, on_progress=append)
        assert found.difference is None
        assert found.checked.position == found.head.position
    ((after,),) = await running.ask("SELECT position FROM log_head")
    assert found.head.position < after
    assert before < after - 40


async def _go_on(family: KeptFamily, number: int) -> None:
    if number < 8:
        await family.end(f"early {number}")
        await family.announce(f"early {number}")
    await family.live(f"late {number}")


@pytest.mark.told("all")
async def test_logs_that_cannot_be_judged_are_refused(running: RunningLog, tmp_path: Path) -> None:
    await running.ask("INSERT INTO projections (name, version) VALUES ('runs', 900)")
    with pytest.raises(UserError, match=r"rows of runs are of another version.*log rebuild"):
        await _verify(running, tmp_path)
    await running.ask("DELETE FROM projections")
    await running.ask("UPDATE log_head SET format = %s", LOG_FORMAT + 1)
    with pytest.raises(UnknownFormat, match="install a newer spawnlog"):
        await _verify(running, tmp_path)


async def test_a_database_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    url = "postgresql://nobody@/nothing?host=/nowhere&port=1"
    order = VerifyOrder(state_file=tmp_path / "state.json")
    with pytest.raises(VerificationStopped, match="the database cannot be read"):
        await asyncio.to_thread(run_verification, url, order)


@pytest.mark.told("all")
async def test_the_command_verifies_a_log_and_its_noted_head(
    running: RunningLog, tmp_path: Path
) -> None:

    async def command(*flags: str) -> subprocess.CompletedProcess[str]:
        place = ["--database-url", running.url, "--data-dir", str(tmp_path / "data")]
        return await asyncio.to_thread(run_command, "log", "verify", *place, *flags)

    first = await command()
    assert (first.returncode, first.stderr) == (0, "")
    noted = first.stdout.splitlines()[-1]
    assert (await command("--head", noted)).returncode == 0
    resumed = await command("--resume", "--json")
    facts = json.loads(resumed.stdout)
    assert (facts["ok"], facts["head"], facts["events"]) == (True, noted, 0)
    assert (tmp_path / "data" / "log-verify.json").is_file()
    await running.ask("UPDATE contents SET body = upper(body) WHERE kind = 'result'")
    wrong = await command("--head", noted)
    assert wrong.returncode == 1
    assert "it is not the text that was recorded" in wrong.stderr
