"""The current registry: runs, sessions, inboxes, lanes, and respawns."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from application.ports.registry import (
    RESPAWNS_MAX,
    InboxQuery,
    Registry,
    RunCondition,
    RunQuery,
    StatusRows,
)
from domain.run.facts import RespawnFacts
from domain.run.state import Run
from infrastructure.outbound.log.rebuild.rebuild import rebuild
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import finish, go_on, send
from tests.support.builders.storytelling import ROOT, ref
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog, running_on

OTHER = "agent:main:other"
STRANGER: dict[str, Any] = {"target_agent_id": "stranger", "agent_id_argument": "stranger"}


async def test_runs_are_found_by_what_they_are(registry: Registry, family: LoggedFamily) -> None:
    other_family = LoggedFamily(family.log, root=OTHER, first=500)
    await family.spawn("one", label="reviewer")
    await family.begin("two")
    await family.spawn("below", "two")
    await family.live("three")
    await family.spawn("four", **STRANGER)
    await other_family.spawn("stranger", requester_agent_id="main")
    at = await family.log.head()
    third = family.run("three").created_at
    since, before = (RunCondition("created_at", sign, third) for sign in (">=", "<"))
    begun, done = StatusRows(("started",)), StatusRows(("announced", "archived"), "success")

    async def found(*conditions: RunCondition, **values: Any) -> str:
        query = RunQuery((*conditions, *RunQuery.where(**values).conditions))
        runs = await registry.runs(query, at=at, limit=99)
        return " ".join(
            family.names(run for run in runs if run.run_id != other_family.id("stranger"))
        )

    every = "four three below two one"
    queries: list[tuple[dict[str, Any], str]] = [
        ({}, every),
        ({"requester": ROOT}, "four three two one"),
        ({"requester": family.key("two")}, "below"),
        ({"root": ROOT}, every),
        ({"agent_id": ("main",)}, "three below two one"),
        ({"agent_id": ("main", "stranger", "nobody")}, every),
        ({"label": ("reviewer",)}, "one"),
        ({"label": ("review",)}, ""),
        ({"label": ("review", "reviewer")}, "one"),
        ({"stage": ("requested",)}, "below one"),
        ({"stage": ("started", "refused")}, "four two"),
        ({"stage": ()}, ""),
        ({"outcome": ("success",)}, "three"),
        ({"outcome": ("error", "success")}, "three"),
        ({"outcome": ("error", "timeout")}, ""),
        ({"status": (begun, done)}, "three two"),
        ({"status": (begun, done), "outcome": ("success",)}, "three"),
        ({"status": (begun, done), "stage": ("started",)}, "two"),
        ({"status": ()}, ""),
        ({"requester": ROOT, "stage": ("requested",), "label": ("reviewer",)}, "one"),
        ({"session_id": family.session_id("two")}, "two"),
        ({"depth": (2, 9)}, "below"),
        ({"run_id": (family.id("one"), family.id("two"))}, "two one"),
    ]
    for values, names in queries:
        assert await found(**values) == names, values
    assert await found(since) == "four three"
    assert await found(before) == "below two one"
    just_after = RunCondition("created_at", "<", third + timedelta(microseconds=1))
    assert await found(since, just_after) == "three"
    assert await found(RunCondition("depth", ">", 1)) == "below"
    assert await found(RunCondition("label", ">=", "reviewer")) == "one"
    assert len(await registry.runs(RunQuery.where(root=OTHER), at=at, limit=99)) == 1


async def test_session_is_found_by_key_and_id(registry: Registry, family: LoggedFamily) -> None:
    await family.queue("scout")
    by_key = await registry.session(family.key("scout"))
    assert by_key is not None
    assert by_key.run_id == family.id("scout")
    assert await registry.session(str(family.session_id("scout"))) == by_key
    assert await registry.session("agent:main:nobody") is None
    assert await registry.session(str(family.id("scout"))) is None


async def test_runs_of_session_are_newest_first_without_refused(
    registry: Registry, family: LoggedFamily
) -> None:
    await family.begin("scout")
    await finish(family, "scout")
    await go_on(family, "second", "scout")
    await send(family, "refused", "scout", max_children=0)
    await send(family, "third", "scout")
    key = family.key("scout")
    found = await registry.runs_of_session(key, limit=9)
    assert family.names(found) == ["third", "second", "scout"]
    assert found == [family.run(name) for name in ("third", "second", "scout")]
    assert family.names(await registry.runs_of_session(key, limit=2)) == ["third", "second"]
    assert await registry.runs_of_session("agent:main:nobody", limit=9) == []
    session = await registry.session(key)
    assert session is not None
    assert session.run_id == family.id("third")
    assert family.names(await registry.runs_below(ROOT)) == ["scout", "second", "third"]


async def test_runs_below_are_parents_first(registry: Registry, postgres: RunningLog) -> None:
    family = LoggedFamily(postgres.log, max_children=20)
    await family.begin("scout")
    siblings = [f"aside-{number}" for number in range(9)]
    for name in siblings:
        await family.spawn(name)
    for name in siblings[3::-1]:
        await family.resolve(name)
    # Known to be small, the table is read as it lies there, newest versions last.
    async with postgres.pool.connection() as connection:
        await connection.execute("ANALYZE runs")
    await family.begin("below", "scout")
    await family.spawn("deepest", "below")
    assert family.names(await registry.runs_below(family.key("scout"))) == ["below", "deepest"]
    everybody = family.names(await registry.runs_below(ROOT))
    assert everybody == ["scout", *siblings, "below", "deepest"]
    assert await registry.runs_below(family.key("deepest")) == []


async def test_inbox_holds_announcements_in_order(
    running: ServedLog, registry: Registry, family: LoggedFamily
) -> None:
    async def inbox_of(requester: str | None, after: int = 0, limit: int = 9) -> Sequence[Run]:
        at = await running.log.head()
        return await registry.inbox(InboxQuery(requester), at=at, after=after, limit=limit)

    for name in ("one", "two", "skipped"):
        await family.begin(name)
        await family.end(name)
    await family.announce("two")
    await family.tell("skipped", ask.announce(disposition="skipped", text=None))
    await family.announce("one")
    await family.spawn("refused")
    await family.tell("refused", ask.refuse(1, announcement=ref("it was refused")))
    inbox = await inbox_of(ROOT)
    assert family.names(inbox) == ["two", "one", "refused"]
    position = inbox[0].inbox.position if inbox[0].inbox else 0
    assert family.names(await inbox_of(ROOT, position, 1)) == ["one"]
    assert await inbox_of(family.key("one")) == []
    await family.tell("two", ask.acknowledge())
    await family.tell("two", ask.archive())
    result = await inbox_of(None)
    assert family.names(result) == ["two", "one", "refused"]
    taken = [run.inbox.acknowledged_at is not None for run in result if run.inbox is not None]
    assert taken == [True, False, False]


async def test_lanes_have_running_and_queued_runs(
    running: ServedLog, registry: Registry, family: LoggedFamily
) -> None:
    assert (await registry.lanes(at=0), await registry.waiting_lanes(width=9)) == ([], [])
    await family.begin("running")
    await family.queue("claimed")
    await family.tell("claimed", ask.claim())
    await family.queue("first")
    await family.queue("second")
    await family.queue("below", "running")
    (top, deeper) = await registry.lanes(at=await running.log.head())
    assert (top.lane, top.depth, deeper.depth) == ("subagent", 1, 2)
    assert family.names(top.running) == ["running", "claimed"]
    assert family.names(top.queued) == ["first", "second"]
    assert (family.names(deeper.running), family.names(deeper.queued)) == ([], ["below"])
    assert await registry.waiting_lanes(width=9) == [
        ("subagent", 1, False),
        ("subagent", 2, False),
    ]
    await family.tell("below", ask.claim())
    assert await registry.waiting_lanes(width=9) == [("subagent", 1, False)]


async def test_full_lane_is_marked(registry: Registry, family: LoggedFamily) -> None:
    await family.begin("running")
    for name in ("overtaken", "second"):
        await family.queue(name)
    assert await registry.waiting_lanes(width=1) == [("subagent", 1, True)]
    assert await registry.waiting_lanes(width=2) == [("subagent", 1, False)]
    await family.tell("second", ask.claim())
    # Full, but not by the first runs in the queue: claimed runs count.
    assert await registry.waiting_lanes(width=2) == [("subagent", 1, False)]
    await family.tell("overtaken", ask.claim())
    assert await registry.waiting_lanes(width=9) == []


async def test_runs_below_count_once_if_parents_continue(
    registry: Registry, family: LoggedFamily
) -> None:
    await family.begin("top")
    await family.end("top")
    await family.announce("top")
    await send(family, "again", "top")
    await family.begin("below", "top")
    await family.begin("deepest", "below")
    assert await registry.descendants(ROOT) == (3, 3)
    found = [run.run_id for run in await registry.runs_below(ROOT)]
    assert sorted(found) == sorted(
        [family.id("top"), family.id("again"), family.id("below"), family.id("deepest")]
    )
    assert found[2:] == [family.id("below"), family.id("deepest")]
    position = family.run("deepest").created_position
    assert await registry.descendants(ROOT, at=position) == (3, 3)


async def test_respawns_are_found_as_of_every_position(
    running: ServedLog, registry: Registry
) -> None:
    family = LoggedFamily(running.log, max_children=4)
    await family.begin("first")
    first = family.run("first").run_id
    created: list[tuple[int, str]] = []
    for name in ("one", "two", "three"):
        # One of them is permitted, and continues to its end.
        refused: dict[str, Any] = STRANGER if name != "two" else {}
        await family.spawn(name, respawn=RespawnFacts(run_id=first), **refused)
        created.append((family.run(name).created_position, name))
    await family.create("two")
    head = await running.log.head()
    for position in range(head + 1):
        expected = [family.run(name).run_id for at, name in created if at <= position]
        found = await registry.respawns(first, at=position)
        assert [run.run_id for run in found] == expected, position
        assert {item.requester for item in found} <= {ROOT}
        query = RunQuery.where(respawned_from=first)
        listed = await registry.runs(query, at=position, limit=9, ascending=True)
        assert [run.run_id for run in listed] == expected, position
    assert not await registry.respawns(family.run("two").run_id, at=head)


async def test_respawns_of_run_are_limited_and_listed_whole(
    running: ServedLog, registry: Registry
) -> None:
    family = LoggedFamily(running.log, max_children=4)
    await family.begin("first")
    first = family.run("first").run_id
    names = [f"again {number}" for number in range(RESPAWNS_MAX + 1)]
    for name in names:
        await family.spawn(name, respawn=RespawnFacts(run_id=first), **STRANGER)
    head = await running.log.head()
    ids = [family.run(name).run_id for name in names]
    found = await registry.respawns(first, at=head)
    assert [run.run_id for run in found] == ids[:RESPAWNS_MAX]
    listed = await registry.runs(RunQuery.where(respawned_from=first), at=head, limit=500)
    assert [run.run_id for run in listed] == ids[::-1]


async def test_rebuild_mends_what_a_server_has_read(
    postgres: RunningLog, family: LoggedFamily
) -> None:
    await family.spawn("one")
    await postgres.ask("UPDATE runs SET state = replace(state, '\"depth\":1', '\"depth\":7')")
    async with running_on(postgres.url) as server:
        registry = PostgresRegistry(server.pool, server.log.remembered)
        read = await registry.run(family.id("one"))
        assert read is not None
        assert read.depth == 7
        assert (await rebuild(postgres.url)).differing
        mended = await registry.run(family.id("one"))
        assert mended is not None
        assert mended.depth == 1
        family.log = server.log
        await family.resolve("one")
        assert family.run("one").depth == 1
        assert (await rebuild(postgres.url)).differing == 0
