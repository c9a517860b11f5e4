"""What-if on a real log: whose decisions, from what record, and that it does nothing else."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg.errors import ReadOnlySqlTransaction

from application.log.envelope import Actor
from application.queries.services import QueryServices
from application.queries.what_if import answer as answers
from application.queries.what_if import cases
from application.queries.what_if.ask import WhatIfBody, what_if
from domain.run.facts import BatchFacts
from infrastructure.outbound.read_model.contents import PostgresContents
from tests.support.builders.configurations import load_values
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.reads_of_the_past import EVERYTHING, queries_on
from tests.support.builders.storytelling import run_id
from tests.support.builders.whole_story import tell_everything
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.servers.server_configurations import ServerConfigurations

pytestmark = pytest.mark.server

OPERATOR = Actor(kind="token", token="operator")
VALUES = {
    "agents": {
        "defaults": {
            "runtime": {"type": "scripted"},
            "subagents": {"maxConcurrent": 4, "maxChildrenPerAgent": 4, "maxSpawnDepth": 3},
        },
        "list": [{"id": "main", "default": True}],
    }
}
STRICT = {
    "agents": {
        "defaults": {
            "runtime": {"type": "scripted"},
            "subagents": {"maxConcurrent": 4, "maxChildrenPerAgent": 1, "maxSpawnDepth": 1},
        },
        "list": [{"id": "main", "default": True}],
    }
}
_SUBAGENTS = "/agents/defaults/subagents"
MORE = {"op": "add", "path": f"{_SUBAGENTS}/maxChildrenPerAgent", "value": 9}
THINKING = {"op": "add", "path": f"{_SUBAGENTS}/thinking", "value": "high"}
FEWER = {"op": "add", "path": "/agents/defaults/subagents/maxChildrenPerAgent", "value": 1}


async def lines(services: QueryServices, **request: Any) -> list[dict[str, Any]]:
    """What is answered."""
    answer = await what_if(services, EVERYTHING, WhatIfBody.model_validate(request))
    async with answer.room:
        pages = [page async for page in answer.pages()]
    return [one.model_dump(mode="json", by_alias=True) for page in pages for one in page]


async def verdicts(services: QueryServices, **request: Any) -> list[dict[str, Any]]:
    """The verdicts of an answer that is whole."""
    found = await lines(services, **request)
    assert "totals" in found[-1], found[-1]
    return [one for one in found if "verdict" in one]


async def configured(running: RunningLog, folder: Path) -> QueryServices:
    """Its first revision is active."""
    configurations = ServerConfigurations(running, folder)
    await configurations.activate(load_values(VALUES), OPERATOR)
    return queries_on(running, configurations, folder)


async def three_children(running: RunningLog) -> LoggedFamily:
    """Three that were admitted, one below the other two's sister."""
    family = LoggedFamily(running.log, max_children=4)
    for name in ("first", "second"):
        await family.begin(name)
    await family.begin("below", "second")
    return family


@pytest.fixture
async def services(running: RunningLog, tmp_path: Path) -> QueryServices:
    """Of a server with its first revision."""
    return await configured(running, tmp_path)


async def test_a_patch_of_nothing_changes_nothing(
    running: RunningLog, services: QueryServices
) -> None:
    await three_children(running)
    found = await verdicts(services, patch=[])
    assert found == await verdicts(services, config=VALUES)
    assert len(found) == 3


async def test_what_an_earlier_revision_lacks_is_named_for_its_decisions_alone(
    running: RunningLog, tmp_path: Path
) -> None:
    configurations = ServerConfigurations(running, tmp_path)
    await configurations.activate(load_values({}), OPERATOR)
    services = queries_on(running, configurations, tmp_path)
    await three_children(running)
    await configurations.activate(load_values(VALUES), OPERATOR)
    found = await verdicts(services, patch=[FEWER])
    assert {one["verdict"] for one in found} == {"not-replayable"}
    (missing,) = found[0]["missing"]
    assert missing.startswith("the patch does not fit configuration revision 1: ")


@pytest.mark.parametrize("prompts", [False, True])
async def test_where_everything_was_erased_that_is_named(
    running: RunningLog, services: QueryServices, tmp_path: Path, prompts: bool
) -> None:
    await three_children(running)
    await running.ask("DELETE FROM contents")
    # Another process, which remembers nothing.
    services = queries_on(running, ServerConfigurations(running, tmp_path), tmp_path)
    found = await verdicts(services, patch=[FEWER], prompts=prompts)
    assert {one["verdict"] for one in found} == {"not-replayable"}
    assert found[0]["missing"] == ["the text of configuration revision 1 was erased"]


@pytest.mark.parametrize("prompts", [False, True])
@pytest.mark.told("everything")
async def test_what_depends_on_no_text_is_decided_as_it_was_once_all_were_erased(
    running: RunningLog, services: QueryServices, prompts: bool
) -> None:
    """What does depend on one is shown by `test_what_depends_on_a_text_that_was_erased_is_named`,
    on a server."""
    whole = await verdicts(services, config=STRICT, prompts=prompts)
    await running.ask("DELETE FROM contents WHERE kind <> 'configuration'")
    await running.ask("DELETE FROM content_keys")
    assert await verdicts(services, config=STRICT, prompts=prompts) == whole
    assert {one["verdict"] for one in whole} >= {"different-plan", "newly-refused", "same"}


async def test_one_run_is_found_without_a_look_at_what_came_later(
    running: RunningLog, services: QueryServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = await three_children(running)
    run_id = family.id("second")
    position = family.run("second").created_position
    (found,) = await verdicts(services, patch=[FEWER], filter={"runId": str(run_id)})
    assert (found["runId"], found["verdict"]) == (str(run_id), "newly-refused")
    about = {"filter": {"runId": str(run_id)}, "to": f"pos:{position - 1}"}
    assert await verdicts(services, patch=[], **about) == []


async def test_with_a_cascade_what_is_below_goes_with_what_is_above(
    running: RunningLog, services: QueryServices
) -> None:
    await three_children(running)
    alone = await verdicts(services, patch=[FEWER])
    assert [one["verdict"] == "newly-refused" for one in alone] == [False, True, False]
    below = (await verdicts(services, patch=[FEWER], cascade=True))[-1]
    assert below["verdict"] == "newly-refused"
    assert "would be refused" in below["text"]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ([], "same"),
        ([MORE], "same"),
        ([FEWER], "newly-refused"),
        ([THINKING], "not-replayable"),
    ],
)
async def test_what_is_prepared_still_is_only_known_by_what_it_was_admitted_by(
    running: RunningLog,
    services: QueryServices,
    patch: list[dict[str, Any]],
    expected: str,
) -> None:
    family = LoggedFamily(running.log, max_children=4)
    for name in ("first", "second"):
        await family.spawn(name)
    found = [await verdicts(services, patch=patch, prompts=prompts) for prompts in (False, True)]
    assert [one[1]["verdict"] for one in found] == [expected, expected]
    assert found[0] == found[1]


async def test_whoever_a_script_may_name_is_not_known_before_it_has_run(
    running: RunningLog, tmp_path: Path
) -> None:
    """It is prepared still; the agent that its script names would think otherwise."""
    script = {"id": "router", "uri": "/scripts/router", "agentIdOverrideKey": "agent"}
    main = {"id": "main", "default": True, "subagents": {"contextScripts": {"run": [script]}}}
    agents = {**VALUES["agents"], "list": [main, {"id": "editor"}]}
    configurations = ServerConfigurations(running, tmp_path)
    await configurations.activate(load_values({"agents": agents}), OPERATOR)
    services = queries_on(running, configurations, tmp_path)
    await LoggedFamily(running.log, max_children=4).spawn("first")
    thinking = {"op": "add", "path": "/agents/list/1/subagents", "value": {"thinking": "high"}}
    for prompts in (False, True):
        (found,) = await verdicts(services, patch=[thinking], prompts=prompts)
        assert found["verdict"] == "not-replayable"


@pytest.mark.told("everything")
async def test_small_pages_small_texts_and_no_shortcut_give_the_same_answer(
    running: RunningLog, services: QueryServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = [
        {"config": STRICT, "cascade": cascade, "prompts": prompts}
        for cascade in (False, True)
        for prompts in (False, True)
    ]
    plainly = [await lines(services, **one) for one in asked]
    monkeypatch.setattr(answers, "EVENTS_AT_ONCE", 3)
    monkeypatch.setattr(answers, "TEXT_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(cases, "is_admitted_alike", lambda *_: False)
    for request, then in zip(asked, plainly, strict=True):
        assert await lines(services, **request) == then


@pytest.mark.parametrize("cascade", [False, True])
async def test_batch_is_decided_together_where_page_range_or_filter_cuts_it(
    running: RunningLog,
    services: QueryServices,
    monkeypatch: pytest.MonkeyPatch,
    cascade: bool,
) -> None:
    family = LoggedFamily(running.log, max_children=4)
    names, ids = ("first", "second", "third"), tuple(map(run_id, (1, 2, 3)))
    for index, name in enumerate(names):
        batch = BatchFacts(batch_id=run_id(9), index=index, run_ids=ids)
        await family.spawn(name, batch=batch)
    request: dict[str, Any] = {"patch": [FEWER], "cascade": cascade}
    whole = await verdicts(services, **request)
    # The first is refused with the others alone.
    assert [one["rule"] for one in whole] == ["batch", "active_children", "active_children"]
    monkeypatch.setattr(answers, "EVENTS_AT_ONCE", 2)
    assert await verdicts(services, **request) == whole
    second = family.run("second").created_position
    assert await verdicts(services, **request, **{"from": f"pos:{second}"}) == whole[1:]
    for one in whole:
        found = await verdicts(services, **request, filter={"runId": one["runId"]})
        assert found == [one]


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
    return isinstance(mode, str) and any(one in mode for one in "wax+")


@contextmanager
def watched_acts() -> Iterator[list[str]]:
    """What this process does to the world meanwhile. An audit hook stays for ever, so it is asked
    to look away behind the block."""
    global _watch
    sys.addaudithook(_note)
    _watch = []
    try:
        yield _watch
    finally:
        _watch = None


async def test_it_runs_nothing_calls_nobody_and_writes_nothing(
    running: RunningLog, tmp_path: Path
) -> None:
    services = await configured(running, tmp_path)
    await tell_everything(running)
    count = await running.ask("SELECT count(*) FROM events")
    ((database,),) = await running.ask("SELECT current_database()")
    await running.ask(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    async with running_on(running.url) as other:
        # Whatever it asks on these connections is refused when it writes.
        with pytest.raises(ReadOnlySqlTransaction):
            await other.ask("DELETE FROM contents")
        services = queries_on(other, ServerConfigurations(other, tmp_path), tmp_path)
        kept = PostgresContents(other.pool)
        assert kept is not None
        await lines(services, patch=[])
        with watched_acts() as acts:
            for cascade in (False, True):
                found = await verdicts(services, config=STRICT, cascade=cascade, prompts=True)
        assert found
        assert acts == []
    assert await running.ask("SELECT count(*) FROM events") == count
