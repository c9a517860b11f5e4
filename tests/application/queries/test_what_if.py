"""What-if on a real log: its decisions, its record, its progress, and its lack of side effects."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from psycopg.errors import ReadOnlySqlTransaction

from application.log.envelope import Actor
from application.queries.services import QueryServices
from application.queries.what_if import answer as answers
from application.queries.what_if import cases
from application.queries.what_if.answer import WhatIfAnswer
from application.queries.what_if.ask import WhatIfBody, what_if
from benchmarks.generate import generate
from domain.run.facts import BatchFacts
from domain.what_if import cascade as cascades
from tests.support.builders.configurations import load_values
from tests.support.builders.generated_pasts import SEEDS, Seed
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import queries_on, verdicts, what_if_lines
from tests.support.builders.reads_of_the_past import EVERYTHING
from tests.support.builders.storytelling import run_id
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.servers.server_configurations import ServerConfigurations

pytestmark = pytest.mark.server

OPERATOR = Actor(kind="token", token="operator")
SUBAGENTS = "/agents/defaults/subagents"


def values_with(**subagents: int) -> dict[str, Any]:
    defaults = {"runtime": {"type": "scripted"}, "subagents": {"maxConcurrent": 4, **subagents}}
    return {"agents": {"defaults": defaults, "list": [{"id": "main", "default": True}]}}


def cap_of(children: int) -> dict[str, Any]:
    return {"op": "add", "path": f"{SUBAGENTS}/maxChildrenPerAgent", "value": children}


VALUES = values_with(maxChildrenPerAgent=4, maxSpawnDepth=3)
STRICT = values_with(maxChildrenPerAgent=1, maxSpawnDepth=1)
FEWER, MORE = cap_of(1), cap_of(9)
THINKING = {"op": "add", "path": f"{SUBAGENTS}/thinking", "value": "low"}
prompts_or_not = pytest.mark.parametrize("prompts", [False, True])
cascade_or_not = pytest.mark.parametrize("cascade", [False, True])


async def activate(
    running: RunningLog, folder: Path, values: dict[str, Any] = VALUES
) -> QueryServices:
    """Return the query services under a configuration that has just become active."""
    configurations = ServerConfigurations(running, folder)
    await configurations.activate(load_values(values), OPERATOR)
    return queries_on(running, folder, configurations)


@pytest.fixture
async def services(running: RunningLog, tmp_path: Path) -> QueryServices:
    return await activate(running, tmp_path)


@pytest.fixture
async def family(running: RunningLog, services: QueryServices) -> LoggedFamily:
    return LoggedFamily(running.log, max_children=4)


@pytest.fixture
async def three_children(family: LoggedFamily) -> LoggedFamily:
    for name in ("first", "second"):
        await family.begin(name)
    await family.begin("below", "second")
    return family


def by_run(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {run["runId"]: run for run in found}


async def test_patch_that_fits_no_earlier_revision_is_named(
    running: RunningLog, tmp_path: Path
) -> None:
    services = await activate(running, tmp_path, {})
    await LoggedFamily(running.log).begin("first")
    await activate(running, tmp_path)
    (found,) = await verdicts(services, patch=[FEWER])
    assert found["verdict"] == "not-replayable"
    (missing,) = found["missing"]
    assert missing.startswith("the patch does not fit configuration revision 1: ")


@prompts_or_not
async def test_erased_configuration_is_named(
    running: RunningLog, three_children: LoggedFamily, tmp_path: Path, prompts: bool
) -> None:
    await running.ask("DELETE FROM contents")
    # Another process, which remembers nothing.
    found = await verdicts(queries_on(running, tmp_path), patch=[FEWER], prompts=prompts)
    assert {verdict_line["verdict"] for verdict_line in found} == {"not-replayable"}
    assert found[0]["missing"] == ["the text of configuration revision 1 was erased"]


@prompts_or_not
@pytest.mark.told("everything")
async def test_erased_texts_change_no_decision_without_them(
    running: RunningLog, services: QueryServices, prompts: bool
) -> None:
    """`test_what_depends_on_a_text_that_was_erased_is_named` shows one that depends on such a text,
    on a server.
    """
    whole = await verdicts(services, config=STRICT, prompts=prompts)
    await running.ask("DELETE FROM contents WHERE kind <> 'configuration'")
    await running.ask("DELETE FROM content_keys")
    assert await verdicts(services, config=STRICT, prompts=prompts) == whole
    assert {verdict_line["verdict"] for verdict_line in whole} >= {
        "different-plan",
        "newly-refused",
        "same",
    }


async def test_one_run_is_found_without_later_ones(
    services: QueryServices, three_children: LoggedFamily
) -> None:
    second = three_children.run("second")
    about: dict[str, Any] = {"filter": {"runId": str(second.run_id)}}
    (found,) = await verdicts(services, patch=[FEWER], **about)
    assert (found["runId"], found["verdict"]) == (str(second.run_id), "newly-refused")
    before = f"pos:{second.created_position - 1}"
    assert await verdicts(services, patch=[], to=before, **about) == []


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ([], "same"),
        ([MORE], "same"),
        ([FEWER], "newly-refused"),
        ([THINKING], "not-replayable"),
    ],
)
async def test_unprepared_run_is_known_by_its_admission_alone(
    services: QueryServices, family: LoggedFamily, patch: list[dict[str, Any]], expected: str
) -> None:
    for name in ("first", "second"):
        await family.spawn(name)
    found = [await verdicts(services, patch=patch, prompts=prompts) for prompts in (False, True)]
    assert [item[1]["verdict"] for item in found] == [expected, expected]
    assert found[0] == found[1]


@prompts_or_not
@cascade_or_not
@pytest.mark.told("everything")
async def test_small_pages_and_no_shortcut_answer_alike(
    services: QueryServices, monkeypatch: pytest.MonkeyPatch, cascade: bool, prompts: bool
) -> None:
    # Long enough that no progress line is written.
    monkeypatch.setattr(answers, "PROGRESS_SECONDS", 3_600.0)
    request: dict[str, Any] = {"config": STRICT, "cascade": cascade, "prompts": prompts}
    plainly = await what_if_lines(services, **request)
    monkeypatch.setattr(answers, "EVENTS_AT_ONCE", 3)
    monkeypatch.setattr(answers, "TEXT_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(cases, "is_admitted_alike", lambda *_: False)
    assert await what_if_lines(services, **request) == plainly


@cascade_or_not
async def test_batch_is_decided_together_where_it_is_cut(
    services: QueryServices, family: LoggedFamily, monkeypatch: pytest.MonkeyPatch, cascade: bool
) -> None:
    names, ids = ("first", "second", "third"), tuple(map(run_id, (1, 2, 3)))
    for index, name in enumerate(names):
        batch = BatchFacts(batch_id=run_id(9), index=index, run_ids=ids)
        await family.spawn(name, batch=batch)
    request: dict[str, Any] = {"patch": [FEWER], "cascade": cascade}
    whole = await verdicts(services, **request)
    # The first is refused only because its batch is.
    assert [item["rule"] for item in whole] == ["batch", "active_children", "active_children"]
    monkeypatch.setattr(answers, "EVENTS_AT_ONCE", 2)
    assert await verdicts(services, **request) == whole
    second = family.run("second").created_position
    assert await verdicts(services, **request, **{"from": f"pos:{second}"}) == whole[1:]
    for run in whole:
        found = await verdicts(services, **request, filter={"runId": run["runId"]})
        assert found == [run]


PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")
WRITING = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "socket.connect")
_watch: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch is None:
        return
    if event in (*PROCESSES, *WRITING) or (event == "open" and _writes(arguments)):
        _watch.append(f"{event} {arguments}")


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode = arguments[1]
    return isinstance(mode, str) and any(item in mode for item in "wax+")


@contextmanager
def watched_acts() -> Iterator[list[str]]:
    """Yield the side effects of this process meanwhile. An audit hook stays forever, so it is
    disabled after the block.
    """
    global _watch
    sys.addaudithook(_note)
    _watch = []
    try:
        yield _watch
    finally:
        _watch = None


@pytest.mark.told("everything")
async def test_it_runs_and_writes_nothing(
    running: RunningLog, services: QueryServices, tmp_path: Path
) -> None:
    count = await running.ask("SELECT count(*) FROM events")
    ((database,),) = await running.ask("SELECT current_database()")
    await running.ask(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    async with running_on(running.url) as second_log:
        # Writes on these connections are refused.
        with pytest.raises(ReadOnlySqlTransaction):
            await second_log.ask("DELETE FROM contents")
        services = queries_on(second_log, tmp_path)
        await what_if_lines(services, patch=[])
        with watched_acts() as acts:
            for cascade in (False, True):
                assert await verdicts(services, config=STRICT, cascade=cascade, prompts=True)
        assert acts == []
    assert await running.ask("SELECT count(*) FROM events") == count


# Generated histories.

EVENTS, SEED = 2_000, 19
DECISIONS_MIN = 20
SHORTER, LONGER = 4_000, 16_000
PEAK_RATIO_MAX = 1.6
KEPT_BYTES_MAX = 400
"""Maximum bytes kept per decision at the end: a cascade remembers which runs have another plan."""
ONE_MORE = cap_of(6)
NOT_KNOWN = ("erased", "would have run")
"""Ends of reasons: a run that depends on another depends on whether that would have run."""

ERASED = "the prompt: texts that it was made from, or its own, were erased"


def small_history(databases: Databases) -> Iterator[str]:
    made = databases.create()
    generate(made, events=EVENTS, seed=SEED)
    yield made
    databases.drop(made)


# A history shared by the module, and one for a single test.
url = pytest.fixture(scope="module", name="url")(small_history)
erasable_url = pytest.fixture(name="erasable_url")(small_history)


async def lines_elsewhere(url: str, folder: Path, **request: Any) -> list[dict[str, Any]]:
    """Return the answer of another process, without caches."""
    async with running_on(url) as running:
        return await what_if_lines(queries_on(running, folder), **request)


async def require_same(url: str, folder: Path, **request: Any) -> None:
    async with running_on(url) as running:
        found = await verdicts(queries_on(running, folder), **request)
    assert len(found) > DECISIONS_MIN
    assert [
        verdict_line
        for verdict_line in found
        if verdict_line["verdict"] != "same" or verdict_line["assumed"]
    ] == []


UNHEARD = {
    "id": "unheard",
    "url": "http://hooks.example/unheard",
    "secrets": ["whsec_" + "A" * 32],
    "origin": {"to": "nobody"},
}
SAME_BY_ITSELF: dict[str, dict[str, Any]] = {
    "plain": {"patch": []},
    "whole": {"patch": [], "cascade": True, "prompts": True},
    # A webhook that fits no origin: now every receiver of an announcement is compared.
    "webhooks": {
        "patch": [{"op": "add", "path": "/spawnlog/announce/webhooks/-", "value": UNHEARD}]
    },
}
same_by_itself = pytest.mark.parametrize("request_name", SAME_BY_ITSELF)


@same_by_itself
async def test_generated_decisions_are_same_under_own_configuration(
    url: str, tmp_path: Path, request_name: str
) -> None:
    await require_same(url, tmp_path, **SAME_BY_ITSELF[request_name])


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: str(seed.number))
@same_by_itself
async def test_other_histories_are_same_under_own_configuration(
    url_of: Callable[[Seed], str], tmp_path: Path, seed: Seed, request_name: str
) -> None:
    await require_same(url_of(seed), tmp_path, **SAME_BY_ITSELF[request_name])


async def test_it_says_how_far_it_is(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "PROGRESS_SECONDS", 3_600.0)
    plain = await lines_elsewhere(url, tmp_path, patch=[ONE_MORE])
    monkeypatch.setattr(answers, "PROGRESS_SECONDS", 0.0)
    found = await lines_elsewhere(url, tmp_path, patch=[ONE_MORE])
    assert [item for item in found if "progress" not in item] == plain
    result = [(at, line["progress"]) for at, line in enumerate(found) if "progress" in line]
    assert len(result) >= 3
    for number, (at, progress) in enumerate(result):
        assert progress["decisions"] == at - number
        assert progress["position"] >= found[at - 1]["position"]
    positions = [progress["position"] for _, progress in result]
    assert positions == sorted(set(positions))
    until = plain[-1]["totals"]["toPosition"]
    assert (positions[-1], {progress["until"] for _, progress in result}) == (until, {until})


async def test_cascade_says_that_it_remembers_no_more(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascades, "REMOVED_MAX", 1)
    last = (await lines_elsewhere(url, tmp_path, patch=[THINKING], cascade=True))[-1]
    assert last["failure"]["detail"].endswith("request a shorter range")


@cascade_or_not
async def test_erased_sessions_are_named_and_others_decided(
    erasable_url: str, tmp_path: Path, cascade: bool
) -> None:
    async def found_after(*erased: str) -> dict[str, dict[str, Any]]:
        async with running_on(erasable_url) as running:
            for condition in erased:
                await running.ask(f"DELETE FROM {condition}")
            services = queries_on(running, tmp_path)
            return by_run(await verdicts(services, patch=[], cascade=cascade, prompts=True))

    before = await found_after()
    async with running_on(erasable_url) as running:
        rows = await running.ask("SELECT run_id::text FROM events WHERE type = 'RunStarted'")
        started = {run_id for (run_id,) in rows}
    half = (
        "{} WHERE get_byte(uuid_send(session_id), 15) % 2 = 0 AND session_id NOT IN"
        " (SELECT session_id FROM contents WHERE kind = 'configuration')"
    )
    partly = await found_after(half.format("contents"), half.format("content_keys"))
    assert list(partly) == list(before)
    changed = {run_id for run_id, value in partly.items() if value != before[run_id]}
    assert 0 < len(changed) < len(changed | started)
    nothing = await found_after("contents WHERE kind <> 'configuration'")
    assert list(nothing) == list(before)
    assert len(started) > len(changed)
    for found, named in ((partly, changed), (nothing, started)):
        for decided in named:
            assert found[decided]["verdict"] == "not-replayable"
            assert all(text.endswith(NOT_KNOWN) for text in found[decided]["missing"])
    assert [ERASED] in [nothing[run_id]["missing"] for run_id in started]


class Used(NamedTuple):
    """How many decisions, and bytes of Python's at most and in the end."""

    decisions: int
    peak: int
    kept: int


async def used(url: str, folder: Path, **request: Any) -> Used:
    """Return the cost of a question for a process that has answered one like it."""
    async with running_on(url) as running:
        services = queries_on(running, folder)

        async def answered(**more: Any) -> tuple[WhatIfAnswer, int]:
            body = WhatIfBody.model_validate(request | more)
            answer = await what_if(services, EVERYTHING, body)
            async with answer.room:
                return answer, sum([len(page) async for page in answer.pages()])

        await answered(to="pos:1000")
        gc.collect()
        tracemalloc.start()
        try:
            # The answer keeps its memory as long as it exists.
            answer, count = await answered()
            gc.collect()
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert answer.position > 0
    return Used(count, peak, kept)


@pytest.fixture(scope="module")
def histories(databases: Databases) -> Iterator[list[str]]:
    urls = [databases.create() for _ in range(2)]
    for made, events in zip(urls, (SHORTER, LONGER), strict=True):
        generate(made, events=events, seed=5)
    yield urls
    for made in urls:
        databases.drop(made)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "way",
    [{}, {"prompts": True}, {"cascade": True}],
    ids=["plain", "prompts", "cascade"],
)
async def test_a_longer_history_takes_no_more_memory(
    histories: list[str], tmp_path: Path, way: dict[str, bool]
) -> None:
    request = {"patch": [ONE_MORE, THINKING], **way}
    shorter, longer = [await used(made, tmp_path, **request) for made in histories]
    assert longer.decisions > 3 * shorter.decisions > 800
    assert longer.peak < PEAK_RATIO_MAX * shorter.peak
    grown = (longer.kept - shorter.kept) / (longer.decisions - shorter.decisions)
    assert grown < KEPT_BYTES_MAX
