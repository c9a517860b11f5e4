"""A hanging call blocks only its own bulkhead."""

import asyncio
from typing import get_args

import pytest

from application.concurrency.bulkhead import (
    COMPARTMENTS_MAX,
    Bulkhead,
    BulkheadFullError,
    undo_compartment,
)
from domain.run.facts import STEP_ORDER, HookName
from tests.support.waiting import until


class Guests:
    """Calls that hang until they are released."""

    def __init__(self, rooms: Bulkhead) -> None:
        self.rooms = rooms
        self.inside: list[str] = []
        self.may_leave = asyncio.Event()

    async def visit(self, name: str) -> None:
        async with self.rooms.of(name):
            self.inside.append(name)
            await self.may_leave.wait()

    async def are(self, *names: str) -> None:
        async def is_so() -> bool:
            return self.inside == list(names)

        await until(is_so, f"{names} are inside")


async def test_full_compartment_keeps_nobody_out_of_another() -> None:
    guests = Guests(Bulkhead(at_once_max=1, calls_max=2))
    async with asyncio.TaskGroup() as group:
        group.create_task(guests.visit("subagentEnded"))
        group.create_task(guests.visit("subagentEnded"))
        group.create_task(guests.visit("files"))
        await guests.are("subagentEnded", "files")
        with pytest.raises(BulkheadFullError, match="2 calls already wait for subagentEnded"):
            await guests.visit("subagentEnded")
        guests.may_leave.set()
    assert guests.inside == ["subagentEnded", "files", "subagentEnded"]
    await guests.visit("subagentEnded")


async def test_caller_that_gives_up_makes_room() -> None:
    guests = Guests(Bulkhead(at_once_max=1, calls_max=2))
    inside, waiting = (asyncio.create_task(guests.visit("files")) for _ in range(2))
    await guests.are("files")
    waiting.cancel()
    await asyncio.wait([waiting])
    second_visit = asyncio.create_task(guests.visit("files"))
    guests.may_leave.set()
    await asyncio.gather(inside, second_visit)


def test_compartments_are_as_many_as_are_counted_on() -> None:
    rooms = {*get_args(HookName), *(undo_compartment(step) for step in STEP_ORDER)}
    assert len(rooms) <= COMPARTMENTS_MAX
    assert {step for step in STEP_ORDER if undo_compartment(step) == "files"} == {
        "context_fork",
        "workspace",
        "attachments",
    }
