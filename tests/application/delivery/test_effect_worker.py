"""Effects of one run are attempted side by side where no order binds them."""

import time
from pathlib import Path

import pytest

from application.concurrency.bulkhead import Bulkhead, BulkheadFull
from application.delivery.effects import Attempted, EffectWorker
from domain.run.facts import HOOK_ORDER, Effect, EffectKind
from domain.run.state import Run
from tests.support.builders import run_commands as ask
from tests.support.builders.stored_family import KeptFamily
from tests.support.faults.interruption import uninterrupted
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import work_with_hooks


class Performer:
    """Implements `EffectPerformer`: has room only for some, and fails for others."""

    def __init__(self, kind: EffectKind, **results: Attempted) -> None:
        self.kind = kind
        self._results = results
        self.attempted: list[str] = []

    def room(self, effect: Effect) -> str:
        return effect.name

    async def perform(self, _: Run, effect: Effect) -> Attempted:
        self.attempted.append(effect.name)
        if effect.name not in self._results:
            raise BulkheadFull(f"no room for {effect.name}")
        return self._results[effect.name]


async def test_effect_without_room_holds_up_only_its_own_kind(
    running: RunningLog, tmp_path: Path
) -> None:
    work = await work_with_hooks(running, tmp_path, *HOOK_ORDER)
    family = KeptFamily(running.log, running.pool, tmp_path)
    await family.spawn("a")
    await family.create("a", hooks=HOOK_ORDER)
    await family.tell("a", ask.claim())
    await family.start("a")
    await family.end("a")
    await family.tell("a", ask.announce(webhooks=("gateway", "ops", "full")))
    hooks = Performer("hook")
    fails = Attempted(error="HTTP 503", status_code=503, attempts_max=2)
    webhooks = Performer("webhook", gateway=Attempted(status_code=204), ops=fails)
    worker = EffectWorker(work, [hooks, webhooks], uninterrupted, Bulkhead())
    first_due_at = (await work.run(family.id("a"))).effects_at
    assert first_due_at is not None
    # The webhooks became due after the hook. An answer of the database may be as old as that.
    running.tail.clock.note(first_due_at, asked_at=time.monotonic())
    with pytest.raises(BulkheadFull, match="no room for subagentSpawned"):
        await worker.perform(family.id("a"))
    run = await work.run(family.id("a"))
    assert hooks.attempted == ["subagentSpawned"]
    assert {one.name: (one.phase, one.attempts) for one in run.effects_of("webhook")} == {
        "gateway": ("done", 1),
        "ops": ("due", 1),
        "full": ("due", 0),
    }
