"""A waiting run is continued from the record alone, by any number of workers."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from application.context.shared_context import read_shared_start
from application.log.envelope import RecordedEvent
from application.log.unit_of_work import UnitOfWork
from application.queries.views.shared_context import run_shared_context_view
from application.spawn.dependencies import AwaitedRuns, DependencyWaits
from application.spawn.request import resolve_references
from domain.prompt.shared_context import shared_pieces
from domain.run.facts import Dependency
from domain.spawn.dependencies import DependencyRequest
from domain.spawn.request import SharedContextInput
from domain.values.shared_values import ReferenceRequest
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.run_histories import started as run_started
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import work_with_hooks

pytestmark = pytest.mark.server


@pytest.fixture
async def work(running: RunningLog, tmp_path: Path) -> UnitOfWork:
    return await work_with_hooks(running, tmp_path)


def on(family: LoggedFamily, *names: str) -> tuple[Dependency, ...]:
    return tuple(Dependency(run_id=family.id(name), name=name, via="dependsOn") for name in names)


async def waiting(family: LoggedFamily, *names: str) -> None:
    """Begin runs with these names, and one that depends on all of them."""
    for name in names:
        await family.begin(name)
    await family.spawn("after", dependencies=on(family, *names))
    await family.create("after")


async def events_of(work: UnitOfWork, run_id: UUID) -> list[str]:
    return [event.envelope.type for event in await work.log.read(run_id=run_id, limit=99)][-3:]


async def test_many_looks_at_once_record_one_end_of_waiting(
    work: UnitOfWork, family: LoggedFamily
) -> None:
    await waiting(family, "a", "b")
    after = family.id("after")
    await DependencyWaits(work).reevaluate(after)
    assert (await events_of(work, after))[-1] == "RunWaits"
    for name in ("a", "b"):
        await family.end(name)
        await asyncio.gather(*(DependencyWaits(work).reevaluate(after) for _ in range(5)))
    assert await events_of(work, after) == ["DependencyMet", "DependencyMet", "RunQueued"]
    await DependencyWaits(work).reevaluate(after)
    assert await events_of(work, after) == ["DependencyMet", "DependencyMet", "RunQueued"]


async def test_text_names_the_first_that_failed(work: UnitOfWork, family: LoggedFamily) -> None:
    await waiting(family, "a", "b")
    for name in ("b", "a"):
        await family.end(name, outcome="timeout")
    await asyncio.gather(*(DependencyWaits(work).reevaluate(family.id("after")) for _ in range(3)))
    run = await work.run(family.id("after"))
    assert (run.outcome, run.end_reason, run.started_at) == ("error", "dependency_failed", None)
    assert run.error is not None
    assert await work.contents.text(run.error) == (
        f'it was not started: its dependency "a" (run {family.id("a")}) ended as timeout'
    )


async def test_run_with_erased_texts_ends_without_a_reason(
    running: RunningLog, work: UnitOfWork, family: LoggedFamily
) -> None:
    await waiting(family, "a")
    await running.erase(family.run("after").session_id)
    await family.end("a", outcome="error")
    await DependencyWaits(work).reevaluate(family.id("after"))
    run = await work.run(family.id("after"))
    assert (run.outcome, run.error) == ("error", None)


async def test_only_ends_of_awaited_runs_are_heeded(work: UnitOfWork, family: LoggedFamily) -> None:
    await waiting(family, "a")
    await family.begin("b")
    for name in ("b", "a"):
        await family.end(name)
        await family.announce(name)
    awaited = AwaitedRuns()

    def told(recorded: RecordedEvent) -> str:
        run_id = recorded.envelope.provenance.run_id
        assert run_id is not None
        return f"{recorded.envelope.type} {'a' if run_id == family.id('a') else 'another'}"

    heeded = [told(item) for item in await work.log.read(limit=99) if awaited.is_met_by(item)]
    assert heeded == ["RunEnded a", "RunAnnounced a"]


async def test_name_means_newest_run_and_none_above(work: UnitOfWork, family: LoggedFamily) -> None:
    await family.begin("top", label="same")
    await family.spawn("other", label="same")
    request = [
        DependencyRequest("same", "dependsOn"),
        DependencyRequest(str(family.id("other")), "dependsOn"),
    ]
    found = await resolve_references(
        work, request, family.key("top"), family.root, family.run("top")
    )
    assert [dependency.run_id for dependency in found.dependencies] == [family.id("other")]
    assert found.ancestors == (family.id("top"),)
    found = await resolve_references(work, request[:1], family.root, family.root, None)
    assert found.unbound is not None
    assert found.unbound.rule == "dependency_ambiguous"


async def test_only_references_pass_their_results_on(
    work: UnitOfWork, family: LoggedFamily
) -> None:
    for name in ("a", "b"):
        await family.spawn(name)
    ids = [str(family.id(name)) for name in ("a", "b")]
    for item in (
        [DependencyRequest(ids[0], "dependsOn"), DependencyRequest(ids[1], "reference")],
        [DependencyRequest(ids[1], "reference"), DependencyRequest(ids[0], "dependsOn")],
    ):
        found = await resolve_references(work, item, family.root, family.root, None)
        assert [reference.key for reference in found.references] == [ids[1]]


async def test_ancestors_of_a_requested_run_are_known(
    running: RunningLog, work: UnitOfWork
) -> None:
    family = LoggedFamily(running.log, max_spawn_depth=3)
    names = ["top", "below", "lowest"]
    for name, by in zip(names, ["main", *names], strict=False):
        await family.begin(name, by)
    request = [DependencyRequest(str(family.id("top")), "dependsOn")]
    found = await resolve_references(
        work, request, family.key("lowest"), family.root, family.run("lowest")
    )
    assert found.ancestors == tuple(family.id(name) for name in reversed(names))


async def test_result_erased_before_claim_is_on_record_as_gone(
    running: RunningLog, work: UnitOfWork, family: LoggedFamily
) -> None:
    await family.begin("a")
    run = await work.run(family.id("a"))
    text_store = await work.text_store(run)
    end = ask.end(run.epoch, result=text_store.store("result", "a canary"))
    await work.record(run, (end,), text_store)
    shared = SharedContextInput(references=(ReferenceRequest(key="a", run_id=run.run_id),))
    await family.spawn("after", dependencies=on(family, "a"), shared=shared)
    await family.create("after")
    await running.erase(run.session_id)
    await DependencyWaits(work).reevaluate(family.id("after"))
    await family.tell("after", ask.claim())
    after = await work.run(family.id("after"))
    start = await read_shared_start(work, after, after, await work.text_store(after))
    (key,) = start.keys
    assert (key.kind, key.run_id, key.value) == ("reference", run.run_id, None)
    assert [value.text for value in start.values] == [None]
    (piece,) = [
        shared_piece
        for shared_piece in shared_pieces(start.values, after.run_id)
        if "a:" in shared_piece.text
    ]
    assert "(erased)" in piece.text
    started = run_started(shared_context=start.keys, shared_context_position=9)
    view = await run_shared_context_view(work.contents, after.run_id, started)
    assert (view.values, view.erased) == ({"a": None}, ["a"])
