"""Hooks and webhooks are called from the record, whatever the result of a call."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from application.concurrency.bulkhead import Bulkhead, BulkheadFullError
from application.delivery.effects import AttemptResult, EffectWorker
from application.delivery.hooks import ERROR_BYTES_MAX, HookPerformer
from application.delivery.webhooks import WebhookPerformer
from application.log.envelope import SYSTEM
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.hooks import HookError
from application.ports.webhooks import WebhookAnswer
from domain.delivery.webhook import WebhookMessage
from domain.run.effects import NothingParked
from domain.run.events import EffectAttempted, EffectRedriven
from domain.run.facts import HOOK_ORDER, Effect, EffectKind
from domain.run.state import Run
from tests.support.builders import run_commands as ask
from tests.support.builders.stored_family import KeptFamily
from tests.support.builders.storytelling import ref
from tests.support.faults.interruption import uninterrupted
from tests.support.servers.running_log import RunningLog, running_on
from tests.support.servers.scripted_hooks import ScriptedHooks, work_with_hooks
from world.storm.stormy_database import CLOCK

FAILS = HookError("the hook answered HTTP 500", status_code=500)
ORIGIN = '{"channel": "discord", "to": "c", "groupId": "g"}'


class LongWinded(KeptFamily):
    """Its texts are long."""

    def text(self, kind: str, name: str) -> str:
        return f"{kind}: {'ä' * 5_000} {name}"


class Story:
    """A child with two hooks, and the worker that calls them."""

    def __init__(self, family: KeptFamily, work: UnitOfWork, hooks: ScriptedHooks) -> None:
        self.family, self.work, self.hooks = family, work, hooks
        performer = HookPerformer(work, hooks)
        self.effects = EffectWorker(work, [performer], uninterrupted, Bulkhead())

    async def queued(self, **request: Any) -> None:
        await self.family.spawn("a", **request)
        await self.family.create("a", hooks=HOOK_ORDER)

    async def ended(self, **end: Any) -> None:
        await self.family.execute("a")
        await self.family.end("a", **end)

    async def announced(self) -> None:
        await self.ended()
        await self.family.announce("a")

    async def tell(self) -> None:
        await self.effects.perform(self.family.id("a"))

    async def phases(self) -> dict[str, tuple[str, int]]:
        run = await self.work.run(self.family.id("a"))
        return {effect.name: (effect.phase, effect.attempts) for effect in run.effects}

    def told(self) -> list[str]:
        return [call.name for call in self.hooks.calls]


Tell = Callable[..., Awaitable[Story]]


@pytest.fixture
def story(running: RunningLog, tmp_path: Path) -> Tell:
    """Return a function that begins a story in which the hooks reply so."""

    async def begin(*replies: Any, **limits: Any) -> Story:
        work = await work_with_hooks(running, tmp_path, *HOOK_ORDER, **limits)
        family = KeptFamily(running.log, running.pool, tmp_path)
        return Story(family, work, ScriptedHooks(*replies))

    return begin


async def test_each_hook_is_told_once_and_in_turn(story: Tell) -> None:
    a = await story()
    await a.queued(origin=ORIGIN)
    await a.tell()
    await a.tell()
    assert a.told() == ["subagentSpawned"]
    assert a.hooks.calls[0].event["requester"] == {"channel": "discord", "to": "c"}
    await a.announced()
    await a.tell()
    await a.tell()
    assert a.told() == list(HOOK_ORDER)
    assert await a.phases() == dict.fromkeys(HOOK_ORDER, ("done", 1))


async def test_end_is_told_after_the_beginning_was_taken(story: Tell) -> None:
    a = await story(FAILS, None)
    await a.queued()
    await a.announced()
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


async def test_failing_hook_is_parked_before_the_next(story: Tell, running: RunningLog) -> None:
    a = await story(FAILS, FAILS, None, attemptsMax=2)
    await a.queued()
    await a.announced()
    await a.tell()
    await a.tell()
    assert a.told() == ["subagentSpawned", "subagentSpawned", "subagentEnded", "onSubagentEnded"]
    assert await a.phases() == {
        "subagentSpawned": ("parked", 2),
        "subagentEnded": ("done", 1),
        "onSubagentEnded": ("done", 1),
    }
    failed = [event.event for event in await running.events()]
    errors = [item.error for item in failed if isinstance(item, EffectAttempted) and item.error]
    assert [await a.work.contents.text(error) for error in errors] == [str(FAILS)] * 2


async def test_call_without_room_is_no_attempt(story: Tell) -> None:
    busy = HookError("too many calls are under way", was_asked=False, is_busy=True)
    a = await story(busy, FAILS, attemptsMax=2)
    await a.queued()
    with pytest.raises(BulkheadFullError, match="too many calls"):
        await a.tell()
    assert (await a.phases())["subagentSpawned"] == ("due", 0)
    await a.tell()
    assert (await a.phases())["subagentSpawned"] == ("due", 1)


@pytest.mark.parametrize("replies", [(None,), (FAILS,)], ids=["told", "failed"])
async def test_two_calls_at_once_are_recorded_once(
    story: Tell, running: RunningLog, replies: tuple[Any, ...]
) -> None:
    a = await story(*replies)
    await a.queued()
    a.hooks.may_answer.clear()
    tellers = [asyncio.create_task(a.tell()) for _ in range(2)]
    while len(a.hooks.calls) < 2:
        await asyncio.sleep(0)
    a.hooks.may_answer.set()
    await asyncio.gather(*tellers)
    assert len({call.key for call in a.hooks.calls}) == 1
    recorded = [
        event for event in await running.events() if event.envelope.type.startswith("Effect")
    ]
    assert len(recorded) == 1
    assert (await a.phases())["subagentSpawned"][1] == 1


async def test_long_error_is_cut(story: Tell, running: RunningLog, tmp_path: Path) -> None:
    a = await story()
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


async def test_failure_with_erased_texts_parks_the_hook(story: Tell, running: RunningLog) -> None:
    a = await story(FAILS)
    await a.queued()
    session_id = a.family.run("a").session_id
    await running.ask("DELETE FROM content_keys WHERE session_id = %s", session_id)
    await a.tell()
    assert (await a.phases())["subagentSpawned"] == ("parked", 0)


@pytest.mark.parametrize("is_over", [False, True], ids=["queued", "announced"])
async def test_parked_hook_is_called_again_when_redriven(story: Tell, is_over: bool) -> None:
    a = await story(FAILS, None, attemptsMax=1)
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


async def test_parked_deliveries_of_several_runs_are_redriven_in_one_append(
    running: RunningLog, tmp_path: Path
) -> None:
    work = await work_with_hooks(running, tmp_path)
    family = KeptFamily(running.log, running.pool, tmp_path)
    for name in ("a", "b", "erased", "delivered"):
        await family.begin(name)
        await family.end(name)
        await family.tell(name, ask.announce(webhooks=("gateway", "ops")))
    refused = AttemptResult(error="HTTP 410", status_code=410, is_final=True)
    down = Performer("webhook", gateway=refused, ops=refused)
    up = Performer("webhook", gateway=AttemptResult(status_code=204), ops=AttemptResult())
    for name in ("a", "b", "erased"):
        await EffectWorker(work, [down], uninterrupted, Bulkhead()).perform(family.id(name))
    await EffectWorker(work, [up], uninterrupted, Bulkhead()).perform(family.id("delivered"))
    erased = family.run("erased").session_id
    await running.ask("DELETE FROM content_keys WHERE session_id = %s", erased)
    worker = EffectWorker(work, [up], uninterrupted, Bulkhead())
    runs = [await work.run(family.id(name)) for name in ("a", "b", "erased", "delivered")]
    before = len(await running.events())

    answer = await worker.redrive_many(runs, None, "it is back", SYSTEM, more_after=7, until=9)

    ids = {name: str(family.id(name)) for name in ("a", "b", "erased")}
    assert answer.body == {
        "redriven": [{"runId": ids[name], "webhooks": ["gateway", "ops"]} for name in ("a", "b")],
        "refused": [
            {
                "runId": ids["erased"],
                "code": "erased",
                "detail": f"the texts of session {erased} were erased",
            }
        ],
        "moreAfter": 7,
        "until": 9,
    }
    recorded = (await running.events())[before:]
    assert [event.envelope.provenance.run_id for event in recorded] == [
        *[family.id("a")] * 2,
        *[family.id("b")] * 2,
    ]
    assert len({event.envelope.append_last for event in recorded}) == 1
    reasons = [event.event.reason for event in recorded if isinstance(event.event, EffectRedriven)]
    assert [await work.contents.text(reason) for reason in reasons] == ["it is back"] * 4
    for name in ("a", "b"):
        await worker.perform(family.id(name))
        assert not (await work.run(family.id(name))).is_parked
    with pytest.raises(NothingParked, match="no delivery to webhook ops is parked"):
        await worker.redrive_many(runs[:2], "ops", "again", SYSTEM, until=9)
    assert len(await running.events()) == before + 8


# Side by side where no order binds them.


class Performer:
    """Implements `EffectPerformer`: has room only for some, and fails for others."""

    def __init__(self, kind: EffectKind, **results: AttemptResult) -> None:
        self.kind = kind
        self._results = results
        self.attempted: list[str] = []

    def room(self, effect: Effect) -> str:
        return effect.name

    async def perform(self, _: Run, effect: Effect) -> AttemptResult:
        self.attempted.append(effect.name)
        if effect.name not in self._results:
            raise BulkheadFullError(f"no room for {effect.name}")
        return self._results[effect.name]


async def test_effect_without_room_holds_up_only_its_own_kind(
    running: RunningLog, tmp_path: Path
) -> None:
    work = await work_with_hooks(running, tmp_path, *HOOK_ORDER)
    family = KeptFamily(running.log, running.pool, tmp_path)
    await family.spawn("a")
    await family.create("a", hooks=HOOK_ORDER)
    await family.execute("a")
    await family.end("a")
    await family.tell("a", ask.announce(webhooks=("gateway", "ops", "full")))
    hooks = Performer("hook")
    fails = AttemptResult(error="HTTP 503", status_code=503, attempts_max=2)
    webhooks = Performer("webhook", gateway=AttemptResult(status_code=204), ops=fails)
    worker = EffectWorker(work, [hooks, webhooks], uninterrupted, Bulkhead())
    first_due_at = (await work.run(family.id("a"))).effects_at
    assert first_due_at is not None
    # The webhooks became due after the hook. An answer of the database may be as old as that.
    running.tail.clock.note(first_due_at, asked_at=time.monotonic())
    with pytest.raises(BulkheadFullError, match="no room for subagentSpawned"):
        await worker.perform(family.id("a"))
    run = await work.run(family.id("a"))
    assert hooks.attempted == ["subagentSpawned"]
    assert {
        effect.name: (effect.phase, effect.attempts) for effect in run.effects_of("webhook")
    } == {
        "gateway": ("done", 1),
        "ops": ("due", 1),
        "full": ("due", 0),
    }


# Due by the clock of the log, not by the server's own.

WEBHOOK = {"id": "gateway", "url": "http://gateway.test/", "secrets": ["whsec_" + "A" * 43 + "="]}


class Receiver:
    """Implements `WebhookClient`: takes everything."""

    def __init__(self) -> None:
        self.taken: list[WebhookMessage] = []

    async def send(
        self, pinned: PinnedConfiguration, webhook_id: str, message: WebhookMessage
    ) -> WebhookAnswer:
        self.taken.append(message)
        return WebhookAnswer(204)


@pytest.mark.parametrize("ahead_seconds", [0, 60, -60])
async def test_webhook_is_sent_at_once_when_clocks_differ(
    database_url: str, tmp_path: Path, ahead_seconds: int
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        database = connection.info.dbname
        connection.execute(CLOCK.format(database=database).encode())
        connection.execute("UPDATE clock SET ahead = %s", [ahead_seconds])
    async with running_on(database_url) as running:
        ahead = running.log.now() - datetime.now(UTC)
        assert abs(ahead - timedelta(seconds=ahead_seconds)) < timedelta(seconds=10)
        work = await work_with_hooks(running, tmp_path, announce={"webhooks": [WEBHOOK]})
        family, receiver = KeptFamily(running.log, running.pool, tmp_path), Receiver()
        await family.begin("a")
        await family.end("a")
        await family.tell("a", ask.announce(webhooks=("gateway",)))
        performer = WebhookPerformer(work, receiver)
        worker = EffectWorker(work, [performer], uninterrupted, Bulkhead())
        await worker.perform(family.id("a"))
        assert len(receiver.taken) == 1
        await worker.perform(family.id("a"))
        assert len(receiver.taken) == 1
