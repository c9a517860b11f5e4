"""Hooks are told from the record, whatever becomes of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from application.concurrency.bulkhead import Bulkhead, BulkheadFull
from application.delivery.effects import EffectWorker
from application.delivery.hooks import ERROR_BYTES_MAX, HookPerformer
from application.log.envelope import SYSTEM
from application.log.unit_of_work import UnitOfWork
from application.ports.hooks import HookFailure
from domain.run.effects import NothingParked
from domain.run.events import EffectAttempted
from domain.run.facts import HOOK_ORDER, EffectKind
from tests.support.builders import run_commands as ask
from tests.support.builders.stored_family import KeptFamily
from tests.support.builders.storytelling import ref
from tests.support.faults.interruption import uninterrupted
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import ScriptedHooks, work_with_hooks

FAILS = HookFailure("the hook answered HTTP 500", status_code=500)
ORIGIN = '{"channel": "discord", "to": "c", "groupId": "g"}'


class LongWinded(KeptFamily):
    """Its texts are long."""

    def text(self, kind: str, name: str) -> str:
        return f"{kind}: {'ä' * 5_000} {name}"


class Story:
    """A child of which two hooks are told, and somebody who tells them."""

    def __init__(self, family: KeptFamily, work: UnitOfWork, hooks: ScriptedHooks) -> None:
        self.family, self.work, self.hooks = family, work, hooks
        performer = HookPerformer(work, hooks)
        self.effects = EffectWorker(work, [performer], uninterrupted, Bulkhead())

    async def queued(self, **request: Any) -> None:
        await self.family.spawn("a", **request)
        await self.family.create("a", hooks=HOOK_ORDER)

    async def ended(self, **end: Any) -> None:
        await self.family.tell("a", ask.claim())
        await self.family.start("a")
        await self.family.end("a", **end)

    async def tell(self) -> None:
        await self.effects.perform(self.family.id("a"))

    async def phases(self) -> dict[str, tuple[str, int]]:
        run = await self.work.run(self.family.id("a"))
        return {one.name: (one.phase, one.attempts) for one in run.effects}

    def told(self) -> list[str]:
        return [call.name for call in self.hooks.calls]


async def story(running: RunningLog, folder: Path, *replies: Any, **limits: Any) -> Story:
    work = await work_with_hooks(running, folder, *HOOK_ORDER, **limits)
    family = KeptFamily(running.log, running.pool, folder)
    return Story(family, work, ScriptedHooks(*replies))


async def test_each_hook_is_told_once_and_in_turn(running: RunningLog, tmp_path: Path) -> None:
    a = await story(running, tmp_path)
    await a.queued(origin=ORIGIN)
    await a.tell()
    await a.tell()
    assert a.told() == ["subagentSpawned"]
    assert a.hooks.calls[0].event["requester"] == {"channel": "discord", "to": "c"}
    await a.ended()
    await a.family.announce("a")
    await a.tell()
    await a.tell()
    assert a.told() == list(HOOK_ORDER)
    assert await a.phases() == dict.fromkeys(HOOK_ORDER, ("done", 1))


async def test_of_the_end_is_told_after_the_beginning_was_taken(
    running: RunningLog, tmp_path: Path
) -> None:
    a = await story(running, tmp_path, FAILS, None)
    await a.queued()
    await a.ended()
    await a.family.announce("a")
    await a.tell()
    assert a.told() == ["subagentSpawned"]
    assert await a.phases() == {
        "subagentSpawned": ("due", 1),
        "subagentEnded": ("due", 0),
        "onSubagentEnded": ("due", 0),
    }
    await a.tell()
    assert a.told() == ["subagentSpawned", *HOOK_ORDER]
    assert await a.phases() == {
        "subagentSpawned": ("done", 2),
        "subagentEnded": ("done", 1),
        "onSubagentEnded": ("done", 1),
    }


async def test_a_hook_that_fails_too_often_is_parked_and_the_next_is_told(
    running: RunningLog, tmp_path: Path
) -> None:
    a = await story(running, tmp_path, FAILS, FAILS, None, attemptsMax=2)
    await a.queued()
    await a.ended()
    await a.family.announce("a")
    await a.tell()
    await a.tell()
    assert a.told() == ["subagentSpawned", "subagentSpawned", "subagentEnded", "onSubagentEnded"]
    assert await a.phases() == {
        "subagentSpawned": ("parked", 2),
        "subagentEnded": ("done", 1),
        "onSubagentEnded": ("done", 1),
    }
    failed = [one.event for one in await running.events()]
    errors = [one.error for one in failed if isinstance(one, EffectAttempted) and one.error]
    assert [await a.work.contents.text(one) for one in errors] == [str(FAILS)] * 2


async def test_too_many_calls_of_our_own_are_no_attempt(
    running: RunningLog, tmp_path: Path
) -> None:
    busy = HookFailure("too many calls are under way", was_asked=False, has_no_room=True)
    a = await story(running, tmp_path, busy, FAILS, attemptsMax=2)
    await a.queued()
    with pytest.raises(BulkheadFull, match="too many calls"):
        await a.tell()
    assert (await a.phases())["subagentSpawned"] == ("due", 0)
    await a.tell()
    assert (await a.phases())["subagentSpawned"] == ("due", 1)


@pytest.mark.parametrize("replies", [(None,), (FAILS,)], ids=["told", "failed"])
async def test_two_that_tell_at_once_record_it_once(
    running: RunningLog, tmp_path: Path, replies: tuple[Any, ...]
) -> None:
    a = await story(running, tmp_path, *replies)
    await a.queued()
    a.hooks.may_answer.clear()
    tellers = [asyncio.create_task(a.tell()) for _ in range(2)]
    while len(a.hooks.calls) < 2:
        await asyncio.sleep(0)
    a.hooks.may_answer.set()
    await asyncio.gather(*tellers)
    assert len({call.key for call in a.hooks.calls}) == 1
    recorded = [one for one in await running.events() if one.envelope.type.startswith("Effect")]
    assert len(recorded) == 1
    assert (await a.phases())["subagentSpawned"][1] == 1


async def test_an_error_is_told_as_far_as_it_is_short(running: RunningLog, tmp_path: Path) -> None:
    a = await story(running, tmp_path)
    a.family = LongWinded(running.log, running.pool, tmp_path)
    await a.queued()
    await a.tell()
    await a.ended(outcome="error", error=ref("why"))
    await a.family.announce("a")
    await a.tell()
    error = next(call.event["error"] for call in a.hooks.calls if call.name == "subagentEnded")
    assert isinstance(error, str)
    assert error.startswith("error: ää")
    assert ERROR_BYTES_MAX - 2 <= len(error.encode()) <= ERROR_BYTES_MAX


async def test_a_failure_about_erased_texts_parks_the_hook(
    running: RunningLog, tmp_path: Path
) -> None:
    a = await story(running, tmp_path, FAILS)
    await a.queued()
    session_id = a.family.run("a").session_id
    await running.ask("DELETE FROM content_keys WHERE session_id = %s", session_id)
    await a.tell()
    assert (await a.phases())["subagentSpawned"] == ("parked", 0)


@pytest.mark.parametrize("is_over", [False, True], ids=["queued", "announced"])
async def test_parked_hook_is_called_again_when_redriven(
    running: RunningLog, tmp_path: Path, is_over: bool
) -> None:
    a = await story(running, tmp_path, FAILS, None, attemptsMax=1)
    await a.queued()
    if is_over:
        await a.ended()
        await a.family.announce("a")
    await a.tell()
    assert (await a.phases())["subagentSpawned"] == ("parked", 1)
    run = await a.work.run(a.family.id("a"))
    nothing: list[tuple[EffectKind, str | None]] = [("hook", "subagentEnded"), ("webhook", None)]
    for kind, name in nothing:
        with pytest.raises(NothingParked, match="has no parked delivery"):
            await a.effects.redrive(run, kind, name, "it is back", SYSTEM)
    answer = await a.effects.redrive(run, "hook", "subagentSpawned", "it is back", SYSTEM)
    assert answer.body == {
        "runId": str(run.run_id),
        "webhooks": [],
        "hooks": ["subagentSpawned"],
    }
    await a.tell()
    assert (await a.phases())["subagentSpawned"] == ("done", 2)
