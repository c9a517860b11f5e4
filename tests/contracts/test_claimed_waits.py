"""Waiting runs are claimed as soon as they can continue, and not before; of two spawns that would
close a cycle, one is refused, in any order.
"""

import asyncio

import pytest

from application.coordination.coordination import Coordination
from application.log.event_log import (
    Appended,
    Decision,
    DecisionContext,
    EventLog,
    LogUnavailableError,
    TreeQuery,
)
from application.ports.registry import RunQuery, StatusRows
from domain.run.commands import SettleDependencies
from domain.run.facts import Dependency
from domain.run.state import Run
from domain.spawn.continuation import Message, continue_session
from domain.spawn.decide import SpawnDecision
from domain.values.record import run_stream, session_stream
from infrastructure.outbound.log.append import load
from tests.contracts.conftest import Claim
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import keep
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import ref
from tests.support.builders.submissions import submission
from tests.support.servers.running_log import RunningLog


def on(family: LoggedFamily, *names: str) -> tuple[Dependency, ...]:
    return tuple(Dependency(run_id=family.id(name), name=name, via="dependsOn") for name in names)


async def ask_for(family: LoggedFamily, name: str, by: str, target: str) -> Appended[SpawnDecision]:
    """Spawn a child with a dependency, for a run that begins below the root."""
    above = (family.id(by),)
    return await family.spawn(name, by, dependencies=on(family, target), ancestors=above)


async def wait_for(family: LoggedFamily, name: str, *names: str, by: str = "main") -> None:
    above = (family.id(by),) if by != "main" else ()
    await family.spawn(name, by, dependencies=on(family, *names), ancestors=above)
    await family.create(name)
    assert family.run(name).waits_for is not None


async def settle(family: LoggedFamily, name: str, culprit: str | None = None) -> None:
    failed = family.id(culprit) if culprit is not None else None
    error = ref("why") if culprit is not None else None
    command = SettleDependencies(lane="subagent", culprit=failed, error=error)
    await family.tell(name, command)


async def test_wait_is_claimed_once_a_target_is_done(claim: Claim, family: LoggedFamily) -> None:
    for name in ("a", "b"):
        await family.begin(name)
    await family.begin("below", "a")
    await wait_for(family, "after", "a", "b")
    await wait_for(family, "last", "after")
    assert await claim("wait") == []
    await family.end("a")
    assert await claim("wait") == [], "what is below it is not done"
    await family.end("below")
    assert await claim("wait") == []
    await family.announce("below")
    assert await claim("wait") == [family.id("after")]
    assert await claim("wait") == [], "somebody is at it"


@pytest.mark.parametrize("how", ["ended", "announced", "archived", "refused", "failed", "stopped"])
async def test_wait_is_claimed_however_its_target_ends(
    claim: Claim, family: LoggedFamily, how: str
) -> None:
    if how == "refused":
        await family.spawn("a")
    else:
        await family.begin("a")
    await wait_for(family, "after", "a")
    match how:
        case "refused":
            await family.tell("a", ask.refuse(family.run("a").epoch))
        case "stopped":
            await family.end("a", outcome="stopped")
        case "failed":
            await family.end("a", outcome="error")
        case _:
            await family.end("a")
    if how in ("announced", "archived"):
        await family.announce("a")
    if how == "archived":
        await family.tell("a", ask.archive())
    due = [family.id("after")]
    assert await claim("wait", seconds=0) == due
    await settle(family, "after", "a" if how in ("refused", "failed", "stopped") else None)
    assert await claim("wait", "other") == []
    assert family.run("after").stage == ("queued" if how[0] == "a" or how == "ended" else "ended")


async def test_wait_for_several_is_claimed_for_each(claim: Claim, family: LoggedFamily) -> None:
    for name in ("a", "b"):
        await family.begin(name)
    await wait_for(family, "after", "a", "b")
    for name in ("b", "a"):
        assert await claim("wait", seconds=0) == []
        await family.end(name)
        due = await claim("wait", seconds=0)
        assert due == [family.id("after")]
        await settle(family, "after")
    assert family.run("after").stage == "queued"


async def test_failed_target_is_seen_before_its_descendants_end(
    claim: Claim, family: LoggedFamily
) -> None:
    await family.begin("a")
    await family.begin("below", "a")
    await wait_for(family, "after", "a")
    any_end = Dependency(run_id=family.id("a"), name="a", via="dependsOn", require="ended")
    await family.spawn("patient", dependencies=(any_end,))
    await family.create("patient")
    await family.end("a", outcome="error")
    due = await claim("wait", seconds=0)
    assert due == [family.id("after")]
    await settle(family, "after", "a")
    assert (family.run("after").stage, family.run("after").outcome) == ("ended", "error")
    assert await claim("wait", seconds=0) == []


async def test_waiting_run_has_no_holder_to_lose(
    postgres: RunningLog, coordination: Coordination, family: LoggedFamily
) -> None:
    await family.begin("a")
    await wait_for(family, "after", "a")
    lost = (await coordination.lost_runs(limit=9)).runs
    assert family.id("after") not in {run.run_id for run in lost}
    registry = postgres.registry()
    at = await family.log.head()
    for waiting, names in ((True, ["after"]), (False, ["a"]), (None, ["after", "a"])):
        rows = StatusRows(("session-created", "started"), waiting=waiting)
        found = await registry.runs(RunQuery.where(status=(rows,)), at=at, limit=9)
        assert family.names(found) == names


async def test_ring_closed_in_one_batch_is_refused(
    family: LoggedFamily,
) -> None:
    for name in ("a", "b"):
        await family.begin(name)
    for round_ in range(5):
        first, second = await asyncio.gather(
            ask_for(family, f"in a {round_}", "a", "b"),
            ask_for(family, f"in b {round_}", "b", "a"),
        )
        result = [first.result.refusal, second.result.refusal]
        assert [answer.rule for answer in result if answer is not None] == ["dependency_cycle"], (
            round_
        )
        passed = f"in a {round_}" if result[0] is None else f"in b {round_}"
        await family.tell(passed, ask.refuse(family.run(passed).epoch))


async def test_ring_is_seen_through_earlier_waits(family: LoggedFamily) -> None:
    for name in ("a", "b"):
        await family.begin(name)
    await wait_for(family, "w", "b")
    await wait_for(family, "in a", "w", by="a")
    refused = await ask_for(family, "in b", "b", "a")
    assert refused.result.refusal is not None
    assert refused.result.refusal.rule == "dependency_cycle"
    await family.end("b")
    await settle(family, "w")
    await family.begin("c")
    assert (await ask_for(family, "in c", "c", "a")).result.refusal is None


async def go_on(family: LoggedFamily, name: str, newest: str) -> None:
    last = family.run(name)
    message = Message(
        run_id=family.call(newest), text=ref("go on"), by="admin", config_revision=1, max_children=5
    )

    def decide(world: DecisionContext) -> Decision[None]:
        result = continue_session(
            world.sessions, world.runs, message, last, continued.planned(), keep
        )
        return Decision(None, result.changes)

    sessions = (family.key(name), last.requester.session_key)
    streams = (*map(run_stream, (last.run_id, message.run_id)), *map(session_stream, sessions))
    family.heard(await family.log.submit(submission(decide, *streams)))


async def test_ring_is_seen_through_a_continued_session(family: LoggedFamily) -> None:
    for name in ("s", "b"):
        await family.begin(name)
    await wait_for(family, "x", "b", by="s")
    await family.tell("s", continued.yield_run())
    await family.end("s")
    await go_on(family, "s", "newest")
    refused = await ask_for(family, "y", "b", "newest")
    assert refused.result.refusal is not None
    assert refused.result.refusal.rule == "dependency_cycle"


async def of_tree(log: EventLog, root: str) -> list[Run]:
    def told(world: DecisionContext) -> Decision[list[Run]]:
        return Decision([*world.tree])

    return (await log.submit(submission(told, tree=TreeQuery(root)))).result


async def test_tree_query_reads_waiting_runs(
    family: LoggedFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    await family.begin("a")
    await family.spawn("plain")
    await family.spawn("prepared", dependencies=on(family, "a"))
    await wait_for(family, "waits", "a")
    other_family = LoggedFamily(family.log, root="agent:main:other", first=500)
    await other_family.begin("x")
    await wait_for(other_family, "y", "x")
    found = family.names(await of_tree(family.log, family.root))
    assert sorted(found) == ["prepared", "waits"]
    assert other_family.names(await of_tree(family.log, other_family.root)) == ["y"]
    assert await of_tree(family.log, "agent:main:nobody") == []
    monkeypatch.setattr(load, "ROWS_MAX", 2)
    with pytest.raises(LogUnavailableError, match="more than 2000 runs of this tree wait"):
        await of_tree(family.log, family.root)
    assert other_family.names(await of_tree(family.log, other_family.root)) == ["y"]


async def test_runs_are_found_by_their_labels(postgres: RunningLog, family: LoggedFamily) -> None:
    registry = postgres.registry()
    for name, label in (("a", "scout"), ("b", "scout"), ("c", "scouting"), ("d", None)):
        await family.spawn(name, label=label)
    await family.tell("b", ask.refuse(family.run("b").epoch))

    async def named(*labels: str) -> list[str]:
        return family.names(await registry.runs_by_label(family.root, labels, limit=9))

    async def called(prefix: str) -> list[str]:
        return family.names(await registry.runs_by_label_prefix(family.root, prefix, limit=9))

    assert await named("scout") == ["a"]
    assert await named("scouting", "scout", "x") == ["c", "a"]
    assert list(await registry.runs_by_label("agent:main:other", ["scout"], limit=9)) == []
    assert await called("scout") == ["a", "c"]
    assert await called("scouti") == ["c"]
    # A run with exactly this label is returned first, so `limit` does not cut it off.
    first = await registry.runs_by_label_prefix(family.root, "scout", limit=1)
    assert family.names(first) == ["a"]
    assert await called("%") == await called("Scout") == []
