"""A generated history is one that a server could have written."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.generate import Generated, generate
from domain.event_types import EVENT_TYPES
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.events import COLUMNS, recorded_event
from infrastructure.outbound.log.schema.connections import LogConnection
from tests.support.builders.submissions import key, observe
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import running_on
from world.check import check
from world.checker.history import History, event_of_record

pytestmark = [pytest.mark.server, pytest.mark.nightly]

EVENTS = 12_001
SEED = 11
CAP = 5
OF_CALLS = {"announced_once", "asked_once_is_recorded_once"}
"""Rules that check calls, of which there are none."""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"
COMMAND = (sys.executable, "-m", "infrastructure.inbound.command_line.main")
RULES = "SELECT DISTINCT state::json -> 'refusal' ->> 'rule' FROM runs WHERE stage = 'refused'"


@pytest.fixture(scope="module")
def generated(databases: Databases) -> Iterator[tuple[str, Generated]]:
    url = databases.create()
    indexes = _ask(url, INDEXES)
    done = generate(url, events=EVENTS, seed=SEED)
    assert _ask(url, INDEXES) == indexes
    yield url, done
    databases.drop(url)


@pytest.fixture
def url(generated: tuple[str, Generated]) -> str:
    return generated[0]


def _ask(url: str, query: str) -> list[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


def test_it_has_as_many_events_as_were_asked_for(generated: tuple[str, Generated]) -> None:
    url, done = generated
    assert done.events == EVENTS
    assert _ask(url, "SELECT position FROM log_head") == [(EVENTS,)]
    assert _ask(url, "SELECT count(*) FROM events") == [(EVENTS,)]
    assert _ask(url, "SELECT max(last_position) FROM commits") == [(EVENTS,)]


def test_everything_that_can_happen_happens_in_it(url: str) -> None:
    types = {name for (name,) in _ask(url, "SELECT DISTINCT type FROM events")}
    assert types == {name for name, _ in EVENT_TYPES}
    rules = {rule for (rule,) in _ask(url, RULES)}
    assert rules >= {"active_children", "agent_id", "allow_agents", "agent_unknown", "mode"}
    outcomes = {outcome for (outcome,) in _ask(url, "SELECT DISTINCT outcome FROM runs")}
    assert outcomes == {None, "success", "error", "timeout", "stopped"}
    assert _ask(url, "SELECT max((state::json ->> 'depth')::int) FROM sessions")[0][0] >= 2


def test_many_lives_are_open_at_once_and_all_come_to_their_end(url: str) -> None:
    between = (
        "SELECT avg(gap) FROM (SELECT position - lag(position) OVER"
        " (PARTITION BY run_id ORDER BY position) AS gap FROM events) AS gaps"
    )
    assert _ask(url, between)[0][0] > 10
    stages = "SELECT DISTINCT stage FROM runs WHERE to_position = 4611686018427387904"
    assert {stage for (stage,) in _ask(url, stages)} == {"archived", "refused", "announced"}
    open_rows = "SELECT count(*) FROM runs WHERE to_position = 4611686018427387904 AND"
    assert _ask(url, f"{open_rows} due_kind <> ''") == [(0,)]
    assert _ask(url, f"{open_rows} effects_at IS NOT NULL") == [(0,)]


def test_the_checker_finds_no_contradiction_in_its_events(url: str) -> None:
    mapper = EventMapper()
    recorded = [
        recorded_event(row, mapper)
        for row in _ask(url, f"SELECT {COLUMNS} FROM events ORDER BY position")
    ]
    events = tuple(event_of_record(event) for event in recorded)
    assert len([event for event in events if event.type == "RunContinued"]) >= 3
    broken = check(History((), events, {}, CAP))
    assert {rule: value for rule, value in broken.items() if rule not in OF_CALLS} == {}


@pytest.mark.parametrize("command", ["verify", "rebuild"])
def test_history_is_verified_and_rebuilt_alike(url: str, tmp_path: Path, command: str) -> None:
    where = ("--database-url", url, "--data-dir", str(tmp_path))
    done = subprocess.run(
        [*COMMAND, "log", command, *where], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{EVENTS} events" in done.stdout or command == "verify"


async def test_the_log_goes_on_from_it(databases: Databases) -> None:
    url = databases.create()
    generate(url, events=200, seed=SEED)
    async with running_on(url) as running:
        (appended,) = await observe(running.log, [key("later")])
        assert appended.position == 201
        assert len(await running.events()) == 201
    databases.drop(url)


def test_the_same_seed_gives_the_same_events_whoever_makes_them(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [databases.create() for _ in range(3)]
    monkeypatch.setattr("benchmarks.history.shifts.SHIFT_EVENTS", 300)
    for url, seed, processes in zip(urls, (1, 1, 2), (1, 2, 1), strict=True):
        assert generate(url, events=900, seed=seed, processes=processes).events == 900
    heads = [_ask(url, "SELECT position, recorded_at, chain_hash FROM log_head") for url in urls]
    assert heads[0] == heads[1] != heads[2]
    revisions = "SELECT version FROM events WHERE stream = 'log:config' ORDER BY position"
    assert _ask(urls[0], revisions) == [(1,), (2,), (3,)]
    for url in urls:
        databases.drop(url)


async def test_a_log_that_has_events_is_left_alone(
    database_url: str, connection: LogConnection
) -> None:
    async with running_on(database_url) as running:
        await observe(running.log, [1, 2])
    with pytest.raises(UserError, match="not empty"):
        generate(database_url, events=200, seed=1)
    assert _ask(database_url, "SELECT count(*) FROM events") == [(2,)]
