"""What-if of generated histories: how far it is, in what memory, and what was erased of them."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from application.queries.what_if import answer as answers
from application.queries.what_if.answer import WhatIfAnswer
from application.queries.what_if.ask import WhatIfBody, what_if
from benchmarks.generate import generate
from domain.what_if import cascade as cascades
from tests.support.builders.generated_pasts import SEEDS, Seed
from tests.support.builders.reads_of_the_past import EVERYTHING, queries_on
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import running_on
from tests.support.servers.server_configurations import ServerConfigurations

pytestmark = pytest.mark.server

EVENTS, SEED = 2_000, 19
DECISIONS_MIN = 20
SHORTER, LONGER = 4_000, 16_000
PEAK_RATIO_MAX = 1.6
KEPT_BYTES_MAX = 400
"""Of a decision, when all are done: a cascade remembers who would run by another plan."""
SUBAGENTS = "/agents/defaults/subagents"
THINKING = [{"op": "add", "path": f"{SUBAGENTS}/thinking", "value": "low"}]
ONE_MORE = [{"op": "replace", "path": f"{SUBAGENTS}/maxChildrenPerAgent", "value": 6}]
FEWER = [{"op": "replace", "path": f"{SUBAGENTS}/maxChildrenPerAgent", "value": 1}]
NOT_KNOWN = ("erased", "would have run")
"""How reasons end: a run that waited for another depends on whether that would have run."""

ERASED = "the prompt: texts that it was made from, or its own, were erased"


@pytest.fixture(scope="module")
def url(databases: Databases) -> Iterator[str]:
    """Of a small history, for several looks at it."""
    made = databases.create()
    generate(made, events=EVENTS, seed=SEED)
    yield made
    databases.drop(made)


async def lines(url: str, folder: Path, **request: Any) -> list[dict[str, Any]]:
    """What another process answers, which remembers nothing."""
    async with running_on(url) as running:
        services = queries_on(running, ServerConfigurations(running, folder), folder)
        answer = await what_if(services, EVERYTHING, WhatIfBody.model_validate(request))
        async with answer.room:
            pages = [page async for page in answer.pages()]
    return [one.model_dump(mode="json", by_alias=True) for page in pages for one in page]


async def verdicts(url: str, folder: Path, **request: Any) -> dict[str, dict[str, Any]]:
    """The verdicts of an answer that is whole, by their runs."""
    *before, last = await lines(url, folder, **request)
    found = [one for one in before if "verdict" in one]
    assert last["totals"]["decisions"] == len(found)
    return {one["runId"]: one for one in found}


UNHEARD = {
    "id": "unheard",
    "url": "http://hooks.example/unheard",
    "secrets": ["whsec_" + "A" * 32],
    "origin": {"to": "nobody"},
}
SAME_BY_ITSELF: list[dict[str, Any]] = [
    {"patch": []},
    {"patch": [], "cascade": True, "prompts": True},
    # A webhook that fits no origin: now every receiver of an announcement is compared.
    {"patch": [{"op": "add", "path": "/spawnlog/announce/webhooks/-", "value": UNHEARD}]},
]


async def differing(url: str, folder: Path, **request: Any) -> list[dict[str, Any]]:
    """Return the verdicts of a whole answer that are not `same`."""
    found = await verdicts(url, folder, **request)
    assert len(found) > DECISIONS_MIN
    return [one for one in found.values() if one["verdict"] != "same" or one["assumed"]]


same_by_itself = pytest.mark.parametrize(
    "request_body", SAME_BY_ITSELF, ids=["plain", "whole", "webhooks"]
)


@same_by_itself
async def test_generated_decisions_are_same_under_own_configuration(
    url: str, tmp_path: Path, request_body: dict[str, Any]
) -> None:
    assert await differing(url, tmp_path, **request_body) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: str(seed.number))
@same_by_itself
async def test_other_histories_are_same_under_own_configuration(
    url_of_seed: Callable[[Seed], str], tmp_path: Path, seed: Seed, request_body: dict[str, Any]
) -> None:
    assert await differing(url_of_seed(seed), tmp_path, **request_body) == []


async def test_it_says_how_far_it_is(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "PROGRESS_SECONDS", 3_600.0)
    plain = await lines(url, tmp_path, patch=ONE_MORE)
    monkeypatch.setattr(answers, "PROGRESS_SECONDS", 0.0)
    found = await lines(url, tmp_path, patch=ONE_MORE)
    assert [one for one in found if "progress" not in one] == plain
    told = [(at, one["progress"]) for at, one in enumerate(found) if "progress" in one]
    assert len(told) >= 3
    for number, (at, progress) in enumerate(told):
        assert progress["decisions"] == at - number
        assert progress["position"] >= found[at - 1]["position"]
    positions = [progress["position"] for _, progress in told]
    assert positions == sorted(set(positions))
    until = plain[-1]["totals"]["toPosition"]
    assert (positions[-1], {progress["until"] for _, progress in told}) == (until, {until})


REFUSED, ALLOWED, PLANNED = "newly-refused", "newly-allowed", "different-plan"


@pytest.mark.parametrize(
    ("patch", "verdict"), [(FEWER, REFUSED), (ONE_MORE, ALLOWED), (THINKING, PLANNED)]
)
async def test_a_cascade_that_cannot_remember_all_of_it_says_so(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    patch: list[dict[str, Any]],
    verdict: str,
) -> None:
    if verdict != PLANNED:
        monkeypatch.setattr(cascades.Cascade, "_note_session", lambda *_, **__: None)
    found = await lines(url, tmp_path, patch=patch, cascade=True)
    assert sum(one.get("verdict") == verdict for one in found) > 1
    monkeypatch.setattr(cascades, "REMOVED_MAX", 1)
    last = (await lines(url, tmp_path, patch=patch, cascade=True))[-1]
    assert last["failure"]["detail"].endswith("ask for a shorter range")


@pytest.fixture
def erasable_url(databases: Databases) -> Iterator[str]:
    """Of a history that nobody else looks at."""
    made = databases.create()
    generate(made, events=EVENTS, seed=SEED)
    yield made
    databases.drop(made)


@pytest.mark.parametrize("cascade", [False, True])
async def test_erased_sessions_are_named_and_the_others_are_decided_as_before(
    erasable_url: str, tmp_path: Path, cascade: bool
) -> None:
    request: dict[str, Any] = {"patch": [], "cascade": cascade, "prompts": True}
    before = await verdicts(erasable_url, tmp_path, **request)
    async with running_on(erasable_url) as running:
        found = await running.ask("SELECT run_id::text FROM events WHERE type = 'RunStarted'")
        started = {run_id for (run_id,) in found}
        for table in ("contents", "content_keys"):
            await running.ask(
                f"DELETE FROM {table} WHERE get_byte(uuid_send(session_id), 15) % 2 = 0"
                " AND session_id NOT IN"
                " (SELECT session_id FROM contents WHERE kind = 'configuration')"
            )
    partly = await verdicts(erasable_url, tmp_path, **request)
    assert list(partly) == list(before)
    changed = {run_id for run_id, one in partly.items() if one != before[run_id]}
    assert 0 < len(changed) < len(changed | started)
    for run_id in changed:
        assert partly[run_id]["verdict"] == "not-replayable"
        assert all(one.endswith(NOT_KNOWN) for one in partly[run_id]["missing"])
    async with running_on(erasable_url) as running:
        await running.ask("DELETE FROM contents WHERE kind <> 'configuration'")
    nothing = await verdicts(erasable_url, tmp_path, **request)
    assert list(nothing) == list(before)
    assert len(started) > len(changed)
    named = [nothing[run_id]["missing"] for run_id in started]
    assert {nothing[run_id]["verdict"] for run_id in started} == {"not-replayable"}
    assert all(one.endswith(NOT_KNOWN) for missing in named for one in missing)
    assert [ERASED] in named


class Used(NamedTuple):
    """How many decisions, and bytes of Python's at most and in the end."""

    decisions: int
    peak: int
    kept: int


async def used(url: str, folder: Path, **request: Any) -> Used:
    """What a question takes of a process that has answered one like it."""
    async with running_on(url) as running:
        services = queries_on(running, ServerConfigurations(running, folder), folder)

        async def answered(**more: Any) -> tuple[WhatIfAnswer, int]:
            body = WhatIfBody.model_validate(request | more)
            answer = await what_if(services, EVERYTHING, body)
            async with answer.room:
                return answer, sum([len(page) async for page in answer.pages()])

        await answered(to="pos:1000")
        gc.collect()
        tracemalloc.start()
        try:
            # While there is the answer, there is what it remembers.
            answer, count = await answered()
            gc.collect()
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert answer.position > 0
    return Used(count, peak, kept)


@pytest.fixture(scope="module")
def histories(databases: Databases) -> Iterator[list[str]]:
    """A shorter and a longer one."""
    urls = [databases.create() for _ in range(2)]
    for made, events in zip(urls, (SHORTER, LONGER), strict=True):
        generate(made, events=events, seed=5)
    yield urls
    for made in urls:
        databases.drop(made)


@pytest.mark.nightly
@same_by_itself
async def test_longer_histories_are_same_under_own_configuration(
    histories: list[str], tmp_path: Path, request_body: dict[str, Any]
) -> None:
    for made in histories:
        assert await differing(made, tmp_path, **request_body) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    "way",
    [{}, {"prompts": True}, {"cascade": True}],
    ids=["plain", "prompts", "cascade"],
)
async def test_a_longer_history_takes_no_more_memory(
    histories: list[str], tmp_path: Path, way: dict[str, bool]
) -> None:
    request = {"patch": [*ONE_MORE, *THINKING], **way}
    shorter, longer = [await used(made, tmp_path, **request) for made in histories]
    assert longer.decisions > 3 * shorter.decisions > 800
    assert longer.peak < PEAK_RATIO_MAX * shorter.peak
    grown = (longer.kept - shorter.kept) / (longer.decisions - shorter.decisions)
    assert grown < KEPT_BYTES_MAX
