"""Transactions of one server in lives without faults."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from application.log.envelope import RecordedEvent
from domain.session.state import Session
from world.checker.history import Call
from world.simulate import bury, rest
from world.simulation.asking import SimulatedAsking
from world.simulation.virtual_time import virtual_time
from world.simulation.world import SimulatedServer, World

ADMITTED = ["SessionObserved", "SpawnRequested", "ChildAdmitted"]
CREATED = [
    "ScriptsResolved",
    "PreparationStarted",
    "SessionCreated",
    "SessionObserved",
    "RunQueued",
]
STARTED = ["RunClaimed", "RunStarted"]
ENDED = ["RunEnded", "ChildReleased", "RunAnnounced"]
Story = Callable[[SimulatedAsking, SimulatedServer], Awaitable[Any]]


def lived(story: Story) -> tuple[list[list[RecordedEvent]], Any]:
    """Return the events of each transaction of a story, and its result."""
    with virtual_time(1) as loop:
        world = World(1, loop, 1, frozenset())

        async def live() -> Any:
            (server,) = world.servers
            server.start()
            await world.heal()
            result = await story(SimulatedAsking("c0", world, []), server)
            assert await rest(world)
            return result

        try:
            notes = loop.run_until_complete(live())
        finally:
            bury(loop, world)
        begin, transactions = 0, []
        for commit in world.store.commits:
            transactions.append(world.store.events[begin : commit.last_position])
            begin = commit.last_position
        return transactions, notes


async def spawned(asking: SimulatedAsking, agent: str, **wishes: Any) -> Call:
    body = {"requester": {"sessionKey": "agent:main:main"}, "agentId": agent, "task": "sweep"}
    return await asking.ask("spawn", "POST", "/v1/spawns", 0, body=body | wishes)


def types(events: list[RecordedEvent]) -> list[str]:
    return [event.envelope.type for event in events]


def test_a_life_without_scripts_steps_or_waiting_is_two_transactions() -> None:
    transactions, call = lived(lambda asking, _: spawned(asking, "quick"))
    first, second, *_ = transactions
    assert types(first) == [*ADMITTED, *CREATED, *STARTED]
    assert types(second) == ENDED
    assert (call.status, call.position) == (201, first[-1].envelope.position)


def test_what_follows_in_a_transaction_is_an_append_of_its_own() -> None:
    (first, *_), _ = lived(lambda asking, _: spawned(asking, "quick"))
    appends: dict[Any, list[RecordedEvent]] = {}
    for event in first:
        appends.setdefault(event.envelope.command_id, []).append(event)
    assert [types(events) for events in appends.values()] == [
        ADMITTED,
        CREATED,
        *([item] for item in STARTED),
    ]
    for events in appends.values():
        assert {item.envelope.append_last for item in events} == {events[-1].envelope.position}
    actors = [events[0].envelope.provenance.actor.kind for events in appends.values()]
    assert actors == ["token", "system", "system", "system"]
    before = [events[0].envelope.provenance.causation for events in appends.values()]
    requested = first[1].envelope.event_id
    assert before == [None, requested, first[7].envelope.event_id, first[8].envelope.event_id]


def test_a_run_for_which_there_is_no_place_is_queued_at_once_and_claimed_in_its_turn() -> None:
    async def story(asking: SimulatedAsking, _server: SimulatedServer) -> None:
        for _ in range(3):
            await spawned(asking, "failing")

    transactions, _ = lived(story)
    request = [
        transaction for transaction in transactions if "SpawnRequested" in types(transaction)
    ]
    assert [types(request)[-2:] for request in request[:2]] == [STARTED, STARTED]
    assert types(request[2])[-1] == "RunQueued"
    behind = transactions[transactions.index(request[2]) + 1 :]
    followed = [name for item in behind for name in types(item)]
    assert followed.index("RunEnded") < followed.index("RunClaimed")


def test_run_of_a_message_is_claimed_as_it_is_queued() -> None:
    async def story(asking: SimulatedAsking, server: SimulatedServer) -> None:
        run_id = (await spawned(asking, "quick")).answer["runId"]
        assert await rest(server.world)
        body = {"message": "again"}
        path = f"/v1/runs/{run_id}/messages"
        await asking.ask("message", "POST", path, 0, body=body, about=run_id, label="again")

    transactions, _ = lived(story)
    (queued,) = [
        types(transaction)
        for transaction in transactions
        if "MessageReceived" in types(transaction)
    ]
    assert queued[-2:] == ["RunQueued", "RunClaimed"]


def test_a_spawn_for_which_somebody_is_asked_goes_on_from_its_record() -> None:
    wishes = {"thread": True, "mode": "session"}
    (first, second, *_), call = lived(lambda asking, _: spawned(asking, "quick", **wishes))
    assert types(first) == ADMITTED
    assert types(second)[-1] == "StepBegun"
    assert call.status == 201


def test_spawn_whose_folder_is_missing_is_admitted_before_it_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(asking: SimulatedAsking, _server: SimulatedServer) -> None:
        for _ in range(4):
            await spawned(asking, "slow")

    transactions, _ = lived(story)
    begun = [
        types(transaction) for transaction in transactions if "StepBegun" in types(transaction)
    ]
    assert begun
    assert not any("SpawnRequested" in names for names in begun)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_spawn_whose_requester_is_another_than_was_assumed_goes_on_from_its_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(asking: SimulatedAsking, server: SimulatedServer) -> Call:
        await spawned(asking, "quick")
        registry = server.work.registry
        last_seen = registry.last_seen_session

        def outdated(key: str) -> Session | None:
            session = last_seen(key)
            before = {"workspace_dir": "/simulated", "version": 1}
            return session.changed(before) if session else None

        monkeypatch.setattr(registry, "last_seen_session", outdated)
        return await spawned(asking, "quick")

    transactions, call = lived(story)
    places = [
        index
        for index, transaction in enumerate(transactions)
        if "SpawnRequested" in types(transaction)
    ]
    # The end of the first run may come with the request, or before the next event.
    assert types(transactions[places[1]])[:3] in (
        ["SpawnRequested", "ChildAdmitted"],
        ["SpawnRequested", "ChildAdmitted", "RunEnded"],
    )
    assert CREATED in [
        types(transaction) for transaction in transactions[places[1] + 1 : places[1] + 3]
    ]
    assert call.status == 201
