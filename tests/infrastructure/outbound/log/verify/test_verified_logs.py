"""A sound log has no difference: with concurrent appends, in any ranges, killed and resumed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from domain.event_types import EVENT_TYPES, LOG_FORMAT
from domain.states import MissingStates, State
from domain.values.record import ContentRef, Event, Fact
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.format import UnknownFormatError
from infrastructure.outbound.log.verify import processes, ranges, verify
from infrastructure.outbound.log.verify.processes import RangeWorkers, VerificationStoppedError
from infrastructure.outbound.log.verify.ranges import Range, RangeChecker
from infrastructure.outbound.log.verify.references import find_references
from infrastructure.outbound.log.verify.refold import RecordedStates
from infrastructure.outbound.log.verify.rows import database_error_reason, open_read_connection
from infrastructure.outbound.log.verify.verify import (
    Progress,
    Verification,
    VerifyOrder,
    note_progress,
    read_progress,
    run_verification,
)
from infrastructure.outbound.log.verify.whole_tables import ExpectedHead
from tests.support.builders.damaged_log import RepairableLog, tell_all
from tests.support.builders.family_log import a_family
from tests.support.builders.stored_family import KeptFamily
from tests.support.builders.submissions import recording
from tests.support.servers.preloaded import ROOT, run_command
from tests.support.servers.process_table import carrying, children, is_alive
from tests.support.servers.running_log import RunningLog
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

HISTORIES = Path(__file__).parents[4] / "histories"
LENGTHS = (1, 9, 2, 14, 3)
Verify = Callable[..., Awaitable[Verification]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the file for the progress."""
    return tmp_path / "state.json"


@pytest.fixture
def verified(running: RunningLog, state: Path) -> Verify:
    async def run(**more: Any) -> Verification:
        order = VerifyOrder(state_file=state, **more)
        return await asyncio.to_thread(run_verification, running.url, order)

    return run


@pytest.fixture
async def cut(running: RunningLog, tmp_path: Path) -> RepairableLog:
    """Return a family's history in transactions of very different lengths."""
    changes = [(event.stream, event.event) for event in a_family()]
    number = 0
    while changes:
        length = LENGTHS[number % len(LENGTHS)]
        taken, changes = changes[:length], changes[length:]
        await running.log.submit(recording(*taken))
        number += 1
    return RepairableLog(running.url, tmp_path)


@pytest.mark.told("all")
async def test_log_of_every_event_is_right(running: RunningLog, verified: Verify) -> None:
    assert set(await running.types()) == {name for name, _ in EVENT_TYPES}
    found = await verified()
    assert found.difference is None
    ((position, digest, log_id),) = await running.ask(
        "SELECT position, chain_hash, log_id FROM log_head"
    )
    assert str(found.head) == f"{position}:{digest.hex()}"
    assert (found.head.log_id, found.began, found.checked.position) == (log_id, 0, position)
    rows = "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM sessions)"
    counts = found.checked.counts
    assert await running.ask(rows) == [(counts.run_rows, counts.session_rows)]
    assert counts.contents > 40
    assert counts.transcripts == 16
    assert 0 < found.seconds < 60


async def test_empty_log_is_right(verified: Verify) -> None:
    found = await verified()
    assert (found.difference, str(found.head)) == (None, "0:")
    beyond = await verified(head=ExpectedHead(3, b"x" * 32, "the head given"))
    assert str(beyond.difference).startswith("position 1: positions 1 to 3 are missing")


async def test_events_appended_meanwhile_are_no_difference(
    running: RunningLog, verified: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", 30)
    family = KeptFamily(running.log, running.pool, tmp_path, max_children=900)
    for number in range(8):
        await family.begin(f"early {number}")
    before = await running.log.head()
    loop = asyncio.get_running_loop()
    lives = iter(range(100))

    async def live(number: int) -> None:
        if number < 8:
            await family.end(f"early {number}")
            await family.announce(f"early {number}")
        await family.live(f"late {number}")

    def append(_began: int, _position: int, _last: int) -> None:
        asyncio.run_coroutine_threadsafe(live(next(lives)), loop).result(30)

    for _ in range(2):
        found = await verified(on_progress=append)
        assert found.difference is None
        assert found.checked.position == found.head.position
    after = await running.log.head()
    assert found.head.position < after
    assert before < after - 40


async def test_log_of_newer_format_is_refused(running: RunningLog, verified: Verify) -> None:
    await running.ask("UPDATE log_head SET format = %s", LOG_FORMAT + 1)
    with pytest.raises(UnknownFormatError, match="install a newer spawnlog"):
        await verified()


def test_full_disk_is_not_a_database_that_cannot_be_read() -> None:
    full = psycopg.errors.DiskFull('could not extend file "base/1/2": No space left on device')
    assert (
        database_error_reason(full)
        == "the disk of the database is full; free some space, then retry"
    )


def test_unreachable_database_is_told(state: Path) -> None:
    url = "postgresql://nobody@/nothing?host=/nowhere&port=1"
    with pytest.raises(VerificationStoppedError, match="the database cannot be read"):
        run_verification(url, VerifyOrder(state_file=state))


@pytest.mark.kill
@pytest.mark.told("all")
async def test_command_verifies_log_and_noted_head(running: RunningLog, tmp_path: Path) -> None:
    async def command(*flags: str) -> subprocess.CompletedProcess[str]:
        place = ["--database-url", running.url, "--data-dir", str(tmp_path / "data")]
        return await asyncio.to_thread(run_command, "log", "verify", *place, *flags)

    first = await command()
    assert (first.returncode, first.stderr) == (0, "")
    noted = first.stdout.splitlines()[-1]
    resumed = await command("--resume", "--json", "--head", noted)
    facts = json.loads(resumed.stdout)
    assert (facts["ok"], facts["head"], facts["events"]) == (True, noted, 0)
    assert (tmp_path / "data" / "log-verify.json").is_file()
    await running.ask("UPDATE contents SET body = upper(body) WHERE kind = 'result'")
    wrong = await command("--head", noted)
    assert wrong.returncode == 1
    assert "it differs from the recorded text" in wrong.stderr


def ids_in_json(value: Any) -> Iterator[str]:
    """Yield the ids of everything that looks like a reference."""
    if isinstance(value, dict):
        if set(value) == {"id", "bytes", "hmac"}:
            yield value["id"]
        for item in value.values():
            yield from ids_in_json(item)
    elif isinstance(value, list):
        for item in value:
            yield from ids_in_json(item)


def test_references_of_every_event_are_found() -> None:
    count = 0
    for (name, version), event_type in EVENT_TYPES.items():
        text = (HISTORIES / f"{name}.{version}.json").read_text()
        found = [str(ref.id) for _, ref in find_references(event_type.from_json(text))]
        assert found == list(ids_in_json(json.loads(text))), name
        count += len(found)
    assert count > 15


REF = ContentRef(id=UUID(int=1), bytes=1, hmac="00")


class Hidden(Event):
    texts: dict[str, ContentRef]


class Inner(Fact):
    text: ContentRef | None = None


class Outer(Event):
    first: Inner
    rest: tuple[Inner, ...] = ()


def test_reference_is_named_by_its_fields() -> None:
    event = Outer(first=Inner(), rest=(Inner(text=REF), Inner(), Inner(text=REF)))
    assert list(find_references(event)) == [("rest.text", REF), ("rest.text", REF)]
    with pytest.raises(AssertionError, match="cannot be found"):
        list(find_references(Hidden(texts={"a": REF})))


@pytest.mark.server
@pytest.mark.parametrize("page", nightly_but([1, 4, 1_000], [4]))
@pytest.mark.parametrize(("size", "together"), [(1, 1), (5, 1), (5, 3), (1_000, 1)])
def test_log_is_right_in_any_pages_and_ranges(
    cut: RepairableLog, monkeypatch: pytest.MonkeyPatch, page: int, size: int, together: int
) -> None:
    monkeypatch.setattr(ranges, "PAGE_EVENTS", page)
    last = cut.last
    counted = {"runs": 0, "sessions": 0}
    head = cut.verify().head
    with open_read_connection(cut.url) as connection:
        for number, first in enumerate(range(1, last + 1, size)):
            if number % together == 0:
                checker = RangeChecker(connection, head.log_id, head.head_hash)
            found = checker.check(Range(first, min(first + size - 1, last)))
            assert found.difference is None
            counted["runs"] += found.counts.run_rows
            counted["sessions"] += found.counts.session_rows
    # Each row was compared once, in the range in which its transaction ends.
    assert counted == {table: cut.one(f"SELECT count(*) FROM {table}") for table in counted}
    assert counted["runs"] < cut.one("SELECT count(*) FROM events WHERE stream LIKE 'run:%'")


@pytest.mark.server
def test_range_behind_another_reads_no_state_again(
    cut: RepairableLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    load = RecordedStates.load

    def loading(self: RecordedStates, missing: MissingStates, at: int) -> Iterator[State]:
        read.append(len(missing.runs) + len(missing.sessions))
        return load(self, missing, at)

    monkeypatch.setattr(RecordedStates, "load", loading)
    head, middle = cut.verify().head, cut.last // 2
    with open_read_connection(cut.url) as connection:
        checker = RangeChecker(connection, head.log_id, head.head_hash)
        read.clear()
        for span in (Range(1, middle), Range(middle + 1, cut.last)):
            assert checker.check(span).difference is None
        assert sum(read) == 0
        assert checker.check(Range(middle + 1, cut.last)).difference is None
        assert sum(read) > 0


def test_process_goes_on_behind_its_last_range() -> None:
    spans = [Range(first, first + 9) for first in range(1, 81, 10)]
    queue = ranges.RangeQueue(spans)
    left, right = queue.take(after=0), queue.take()
    assert [next(left), next(right), next(left), next(right)] == [spans[n] for n in (0, 4, 1, 5)]
    # When it meets the other one, it starts again in the middle of the remaining ranges.
    assert [next(left), next(left), next(left)] == [spans[n] for n in (2, 3, 7)]
    assert [*right, *left] == [spans[6]]


@pytest.mark.server
@pytest.mark.parametrize("size", nightly_but([10, 40_000], [10]))
def test_row_inside_a_transaction_is_one_too_many(
    cut: RepairableLog, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(verify, "RANGE_EVENTS_MAX", size)
    assert cut.verify().difference is None
    # A run, a position at which it has an event but no row, and where its next row begins.
    ((run_id, at, ended),) = cut.ask(
        "SELECT run_id::text, position, (SELECT min(from_position) FROM runs"
        " WHERE runs.run_id = events.run_id AND from_position > position) AS ended FROM events"
        " WHERE stream = 'run:' || run_id AND version > 3 AND NOT EXISTS (SELECT FROM runs"
        " WHERE runs.run_id = events.run_id AND from_position = position)"
        " ORDER BY position DESC LIMIT 1"
    )
    cut.do("CREATE TABLE copied AS SELECT * FROM runs WHERE from_position = %s", ended)
    cut.do("UPDATE copied SET from_position = %s, to_position = %s, version = 4", at, ended)
    its_row = "run_id = %s AND to_position = %s"
    cut.do(f"UPDATE runs SET to_position = %s WHERE {its_row}", at, run_id, ended)
    cut.do("INSERT INTO runs SELECT * FROM copied")
    assert cut.found() == (at, "projection")
    assert cut.says().startswith(f"position {at}: a row of run {run_id} begins here")


@pytest.mark.server
def test_verification_is_resumed_inside_a_transaction(cut: RepairableLog) -> None:
    whole = cut.verify().checked
    for position in range(1, cut.last):
        (digest,) = cut.ask("SELECT chain_hash FROM events WHERE position = %s", position)[0]
        note_progress(cut.state_file, Progress(whole.log_id, position, bytes(digest)))
        assert cut.verify(resume=True).difference is None


async def test_verification_goes_on_where_the_last_one_ended(
    running: RunningLog, verified: Verify, tmp_path: Path
) -> None:
    assert (await verified(resume=True)).began == 0, "nothing was noted yet"
    await tell_all(running, tmp_path)
    second = await verified(resume=True)
    family = KeptFamily(running.log, running.pool, tmp_path, root="agent:main:new", first=70_000)
    await family.live("new")
    third = await verified(resume=True)
    whole = await verified()
    assert (third.began, third.difference) == (second.head.position, None)
    assert (third.head, third.checked) == (whole.head, whole.checked)
    assert whole.began == 0


@pytest.mark.told("all")
async def test_events_verified_before_must_still_be_there(
    running: RunningLog, verified: Verify
) -> None:
    end = (await verified()).head.position
    await running.ask("UPDATE events SET chain_hash = sha256('') WHERE position = %s", end)
    await running.ask("UPDATE log_head SET chain_hash = sha256('')")
    assert str((await verified(resume=True)).difference) == (
        f"position {end}: its chain hash is not that of the verification that is resumed: the log"
        " was rewritten"
    )


async def test_progress_of_another_log_or_of_nothing_is_refused(
    running: RunningLog, verified: Verify, state: Path
) -> None:
    found = await verified()
    assert read_progress(state, found.head.log_id) == found.checked
    assert state.stat().st_mode & 0o777 == 0o600
    assert list(state.parent.glob(".state*")) == []
    await running.ask("UPDATE log_head SET log_id = gen_random_uuid()")
    with pytest.raises(UserError, match="is of another log; name another file with --state"):
        await verified(resume=True)
    state.write_text("{}")
    with pytest.raises(UserError, match="holds no progress of a verification"):
        await verified(resume=True)
    with pytest.raises(UserError, match=r"cannot be written to .*: No such file.*--state"):
        note_progress(state.parent / "nowhere" / "state.json", found.checked)


_SLOWLY = """
import json, sys, time
from pathlib import Path
from infrastructure.outbound.log.verify import verify as v
v.RANGE_EVENTS_MAX, v.NOTE_SECONDS = 10, -1.0
def stop_there(began, position, last):
    print(json.dumps(position), flush=True)
    while position >= 40:
        time.sleep(60)
v.run_verification(sys.argv[1], v.VerifyOrder(state_file=Path(sys.argv[2]), on_progress=stop_there))
"""


@pytest.mark.kill
@pytest.mark.told("all")
async def test_killed_verification_leaves_nothing_and_is_resumed(
    running: RunningLog, verified: Verify, state: Path
) -> None:
    command = [sys.executable, "-c", _SLOWLY, running.url, str(state)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        while (reached := json.loads(killed.stdout.readline())) < 40:
            pass
        workers = children(killed.pid)
        assert len(workers) == verify.PROCESSES - 1
        os.kill(killed.pid, signal.SIGKILL)
    wait_for("the workers' end", lambda: not any(map(is_alive, workers)))
    found = await verified(resume=True)
    assert (found.began, found.difference) == (reached, None)
    assert found.checked == (await verified()).checked


@pytest.mark.kill
@pytest.mark.told("all")
async def test_worker_that_ends_too_early_is_told(running: RunningLog, verified: Verify) -> None:
    head = (await verified()).head
    gone = threading.Event()

    def spans() -> Iterator[Range]:
        yield Range(1, 10)
        assert gone.wait(30)
        yield Range(11, 20)

    with RangeWorkers(running.url, head, [spans()]) as workers:
        answers = workers.answers(wait=True)
        assert next(answers).chain_hash
        ours = carrying(processes.work.__module__)
        pid = next(pid for pid in children(os.getpid()) if pid in ours)
        os.kill(pid, signal.SIGKILL)
        wait_for("its end", lambda: not is_alive(pid))
        gone.set()
        with pytest.raises(VerificationStoppedError, match="continue with --resume"):
            next(answers)
    with RangeWorkers("host=/nowhere port=1", head, [iter([Range(1, 10)])]) as workers:
        with pytest.raises(
            VerificationStoppedError, match=r"cannot be read: .*; continue with --resume"
        ):
            next(workers.answers(wait=True))
