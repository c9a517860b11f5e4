"""Both clients on a real server."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from spawnlog import (
    AsyncClient,
    Client,
    NotFoundError,
    PermissionDeniedError,
    Problem,
    RunFailedError,
    SpawnedRun,
    SpawnRefusedError,
    WaitTimeoutError,
)
from tests.support.servers.server import Server

pytestmark = pytest.mark.server


def other(server: Server) -> AsyncClient:
    return AsyncClient(server.url, token=server.token)


async def test_family_is_spawned_awaited_and_read(server: Server) -> None:
    async with other(server) as client, client.session(server.new_session()) as family:
        run = await family.spawn("say it", label="one", agent_id="talker")
        two, three = await family.spawn_all(["this", "that"], label="pair")
        assert await asyncio.gather(*(run.result(seconds=30) for run in family.runs)) == [
            "done",
            "done",
            "done",
        ]
        assert family.runs == (run, two, three)
        assert [run.view.label for run in family.runs if run.view] == ["one", "pair-1", "pair-2"]
        output = [entry.body.get("text") async for entry in run.transcript()]
        assert {"thinking", "spoken"} <= set(output)
        kinds = [event.type async for event in run.events()]
        assert (kinds[0], kinds[-1]) == ("SpawnRequested", "RunAnnounced")
        further = await run.send("and now?")
        assert await further.result(seconds=30) == "done"
        assert str((await further.refresh()).continues) == run.run_id


def test_blocking_client_does_the_same(server: Server, client: Client) -> None:
    with client.session(server.new_session()) as family:
        run = family.spawn("say it", agent_id="talker")
        assert run.result(seconds=30) == "done"
        assert [entry.kind for entry in run.transcript(tools=True)][-1] == "result"
        steered = run.steer("do something else")
        assert not isinstance(steered, SpawnedRun)
        assert steered.status == "done"
        assert client.run(run.run_id).refresh().stage in ("announced", "archived")


def test_unsuccessful_run_has_its_reason(server: Server, client: Client) -> None:
    run = client.session(server.new_session()).spawn("try", agent_id="failing")
    with pytest.raises(RunFailedError, match="it went wrong") as failure:
        run.result(seconds=30)
    assert failure.value.run is not None
    assert failure.value.run.outcome == "error"


def test_left_family_stops_runs_if_told_to(server: Server, client: Client) -> None:
    with client.session(server.new_session()) as family:
        left = family.spawn("long", agent_id="slow")
    left.wait("started", seconds=30)
    with pytest.raises(LookupError):  # noqa: PT012
        with client.session(server.new_session(), stop_on_error=True) as family:
            stopped = family.spawn("long", agent_id="slow")
            raise LookupError("canary")
    assert stopped.wait("ended", seconds=30).status == "stopped"
    with pytest.raises(WaitTimeoutError) as late:
        left.wait("ended", seconds=0.05)
    assert late.value.run is not None
    assert late.value.run.status == "running"
    assert left.stop("it is over").was_over is False
    assert left.wait("ended", seconds=30).status == "stopped"


@pytest.mark.parametrize("turns", [1, 20])
async def test_run_of_cancelled_spawn_is_stopped(server: Server, turns: int) -> None:
    key = server.new_session()
    async with other(server) as client:
        await client.get_health()
        with pytest.raises(asyncio.CancelledError):  # noqa: PT012
            async with client.session(key, stop_on_error=True) as family:
                spawning = asyncio.create_task(family.spawn("long", agent_id="slow"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                spawning.cancel()
                await spawning
        made = [run async for run in client.runs(requester=key)]
        assert len(made) == 1
        assert (await client.run(str(made[0].run_id)).wait("ended", seconds=30)).status == "stopped"


async def test_steered_run_has_the_next_result(server: Server) -> None:
    async with other(server) as client, client.session(server.new_session()) as family:
        run = await family.spawn("long", agent_id="slow", cleanup="keep")
        await run.wait("started", seconds=30)
        result = asyncio.create_task(run.result(seconds=30))
        in_its_place = await run.steer("shorter")
        assert isinstance(in_its_place, type(run))
        await in_its_place.wait("started", seconds=30)
        await in_its_place.stop()
        with pytest.raises(RunFailedError, match="stopped"):
            await result
        assert run.run_id == in_its_place.run_id


def test_refusal_has_rule_and_numbers(server: Server, client: Client) -> None:
    requester = server.new_session()
    with pytest.raises(SpawnRefusedError) as refused:
        client.spawn("x", requester, agent_id="nobody-knows")
    assert (refused.value.code, refused.value.status) == ("spawn_error", 422)
    assert refused.value.rule is not None
    assert refused.value.rule in str(refused.value)
    assert refused.value.run_id is not None
    family = client.session(requester)
    spawned = [family.spawn("long", agent_id="slow") for _ in range(5)]
    with pytest.raises(SpawnRefusedError) as full:
        family.spawn("one too many")
    assert (full.value.code, full.value.status) == ("spawn_forbidden", 403)
    assert (full.value.limit, full.value.current) == (5, 5)
    for run in spawned:
        run.stop()


def test_problems_have_kind_code_and_faults(server: Server, client: Client) -> None:
    with pytest.raises(NotFoundError) as missing:
        client.get_run("11111111-0000-4000-8000-000000000001")
    assert (missing.value.code, missing.value.status) == ("not_found", 404)
    with pytest.raises(Problem) as invalid:
        client.spawn("x", server.new_session(), label="two\nlines")
    assert [error.pointer for error in invalid.value.errors] == ["/label"]
    wrong = "canary-wrong-token"
    with Client(server.url, token=wrong) as stranger:
        with pytest.raises(PermissionDeniedError) as closed:
            stranger.get_me()
        assert closed.value.code == "unauthorized"
        assert wrong not in f"{stranger!r} {closed.value!r} {closed.value} {stranger.address!r}"


async def test_pages_are_iterated_by_item(server: Server) -> None:
    requester = server.new_session()
    ids = {server.accepted(session=requester) for _ in range(5)}
    async with other(server) as client:
        found = [run.run_id async for run in client.runs(requester=requester, limit=2)]
        assert (len(found), set(found)) == (5, ids)
        head = (await client.get_readiness()).head
        forwards = [event.position async for event in client.events(limit=500, at=f"pos:{head}")]
        assert forwards == list(range(1, head + 1))
        backwards = [
            event.position
            async for event in client.events(limit=500, order="desc", at=f"pos:{head}")
        ]
        assert backwards == forwards[::-1]


async def test_events_are_followed_from_a_position(server: Server) -> None:
    requester = server.new_session()
    async with other(server) as client:
        head = (await client.get_readiness()).head
        run = await client.session(requester).spawn("say it")
        seen = []
        async with client.follow_events(after=head, run_id=run.run_id) as events:
            async for event in events:
                seen.append(event.type)
                if event.type == "RunAnnounced":
                    break
            assert events.position is not None
            assert events.position >= head + len(seen)
    assert "SpawnRequested" in seen


def test_same_key_gives_the_same_run(server: Server, client: Client) -> None:
    requester, key = server.new_session(), server.new_session("key")
    first, second = (client.spawn("once", requester, idempotency_key=key) for _ in range(2))
    assert (first.is_replayed, second.is_replayed) == (False, True)
    assert first == second
    assert first.model_dump() == second.model_dump()
    assert first.log_position is not None
    assert first.runs[0].log_position is None
    read = client.get_run(first.runs[0].run_id, min_position=first.log_position)
    assert read.log_position is not None
    assert read.log_position >= first.log_position


async def test_cancelled_wait_leaves_the_run(server: Server) -> None:
    async with other(server) as client:
        run = await client.session(server.new_session()).spawn("long", agent_id="slow")
        await run.wait("started", seconds=30)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.result(), 0.1)
        assert (await run.refresh()).status == "running"
        await run.stop()


def test_threads_share_a_client(server: Server, client: Client) -> None:
    requesters = [server.new_session() for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        results = threads.map(
            lambda requester: client.session(requester).spawn("say it").result(seconds=30),
            requesters,
        )
        assert list(results) == ["done"] * 6


def test_child_token_spawns_for_its_session(server: Server) -> None:
    with (
        server.held(server.new_session()) as held,
        Client(server.url, token=held.token) as own,
        own.session("current") as family,
    ):
        run = family.spawn("say it", agent_id="main")
        run.wait("announced", seconds=30)
        assert run.view is not None
        assert run.view.requester_session_key == held.child


def test_failed_stop_is_a_note(server: Server) -> None:
    client = Client(server.url, token=server.token)
    with pytest.raises(LookupError) as left:  # noqa: PT012
        with client.session(server.new_session(), stop_on_error=True) as family:
            run = family.spawn("say it")
            client.close()
            raise LookupError("canary")
    assert run.run_id in left.value.__notes__[0]
