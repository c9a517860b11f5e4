"""Steps that call hooks: effects, refusals and undos; and the choice of a delivery target."""

import json
from pathlib import Path
from typing import Any

import pytest

from application.delivery.announce import ask_delivery_target
from application.log.unit_of_work import UnitOfWork
from application.ports.hooks import HookError
from application.steps.context_engine import ContextEngineStep
from application.steps.context_fork import read_context_request
from application.steps.step import StepMaker, StepPlace, StepRefusedError, StepResult, UndoError
from application.steps.thread_binding import ThreadBindingStep
from domain.run.facts import SpawnOptions, StepState
from domain.run.state import Run
from tests.support.builders import run_commands as ask
from tests.support.builders.facts import fact_of
from tests.support.builders.stored_family import KeptFamily
from tests.support.builders.storytelling import START, plan
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import ScriptedHooks, work_with_hooks

ASKED = HookError("the hook did not answer in 10 s")
UNASKED = HookError("the hook cannot be reached", was_asked=False)
GONE = HookError("the hook answered HTTP 410", status_code=410)
READY = {"status": "ok", "threadBindingReady": True, "deliveryOrigin": {"to": "t"}}
ORIGIN = '{"channel": "discord", "accountId": "a", "to": "c"}'
ASKING = (
    "subagentSpawning",
    "prepareSubagentSpawn",
    "subagentEnded",
    "subagentDeliveryTarget",
)


async def prepared_run(running: RunningLog, folder: Path, **request: Any) -> Run:
    family = KeptFamily(running.log, running.pool, folder)
    options = fact_of(SpawnOptions, request.pop("options", {}))
    await family.spawn("a", **{"origin": ORIGIN, "thread": True, **request}, options=options)
    epoch = family.run("a").epoch
    await family.tell("a", ask.resolve(epoch), ask.prepare(epoch))
    return family.run("a")


def state(maker: StepMaker, **changes: Any) -> StepState:
    plain = {"name": maker.name, "key": "k", "epoch": 1, "begun_at": START, "limit_seconds": 11.0}
    return fact_of(StepState, plain | changes)


@pytest.fixture
async def work(running: RunningLog, tmp_path: Path) -> UnitOfWork:
    return await work_with_hooks(running, tmp_path, *ASKING)


@pytest.fixture
async def run(running: RunningLog, tmp_path: Path, work: UnitOfWork) -> Run:
    return await prepared_run(running, tmp_path)


async def refused(maker: StepMaker, run: Run, *, is_resumed: bool = False) -> StepRefusedError:
    with pytest.raises(StepRefusedError) as caught:
        await maker.make(run, state(maker), is_resumed=is_resumed)
    return caught.value


async def test_step_may_take_a_little_longer_than_hook(work: UnitOfWork, run: Run) -> None:
    for maker in (
        ThreadBindingStep(work, ScriptedHooks()),
        ContextEngineStep(work, ScriptedHooks()),
    ):
        assert await maker.place(run, plan()) == StepPlace(None, None, 11.0)


async def test_no_hook_is_no_step(running: RunningLog, tmp_path: Path) -> None:
    work = await work_with_hooks(running, tmp_path)
    run = await prepared_run(running, tmp_path, thread=False)
    assert await ThreadBindingStep(work, ScriptedHooks()).place(run, plan()) is None
    assert await ContextEngineStep(work, ScriptedHooks()).place(run, plan()) is None


@pytest.mark.parametrize(
    ("names", "bindings"),
    [((), {}), (ASKING, {"enabled": False}), (ASKING, {"spawnSessions": False})],
    ids=["no hook", "not enabled", "no sessions"],
)
async def test_thread_without_binding_hook_is_refused(
    running: RunningLog, tmp_path: Path, names: tuple[str, ...], bindings: dict[str, bool]
) -> None:
    session = {"threadBindings": bindings}
    work = await work_with_hooks(running, tmp_path, *names, session=session)
    run = await prepared_run(running, tmp_path)
    with pytest.raises(StepRefusedError, match="thread=true is only available on channels"):
        await ThreadBindingStep(work, ScriptedHooks()).place(run, plan())


async def test_thread_has_origin_of_hook_and_requester(work: UnitOfWork, run: Run) -> None:
    maker = ThreadBindingStep(work, ScriptedHooks(READY))
    made = await maker.make(run, state(maker), is_resumed=False)
    origin = '{"channel":"discord","accountId":"a","to":"t"}'
    assert made == StepResult(outcome="bound", can_undo=True, origin=origin)


@pytest.mark.parametrize("kind", [ThreadBindingStep, ContextEngineStep])
@pytest.mark.parametrize(
    ("threw", "is_resumed", "is_nothing"),
    [(ASKED, False, False), (UNASKED, False, True), (UNASKED, True, False)],
)
async def test_only_unreached_hook_has_done_nothing(
    work: UnitOfWork,
    run: Run,
    kind: Any,
    threw: HookError,
    is_resumed: bool,
    is_nothing: bool,
) -> None:
    refusal = await refused(kind(work, ScriptedHooks(threw)), run, is_resumed=is_resumed)
    assert refusal.is_nothing is is_nothing
    assert str(threw) in str(refusal)


async def test_unbound_thread_is_not_undone(work: UnitOfWork, run: Run) -> None:
    hooks = ScriptedHooks({"status": "error", "error": "no"})
    maker = ThreadBindingStep(work, hooks)
    assert (await refused(maker, run, is_resumed=False)).is_nothing
    assert await maker.undo(run, state(maker, phase="taken", made=False)) == "nothing_there"
    assert len(hooks.calls) == 1


async def test_thread_perhaps_bound_before_crash_is_undone(work: UnitOfWork, run: Run) -> None:
    hooks = ScriptedHooks({"status": "error", "error": "there is a thread already"})
    refusal = await refused(ThreadBindingStep(work, hooks), run, is_resumed=True)
    assert not refusal.is_nothing


async def test_undo_of_thread_needs_hook_of_ends(running: RunningLog, tmp_path: Path) -> None:
    work = await work_with_hooks(running, tmp_path, "subagentSpawning")
    run = await prepared_run(running, tmp_path)
    maker = ThreadBindingStep(work, ScriptedHooks())
    assert await maker.undo(run, state(maker, phase="taken", made=True)) == "no_hook"


@pytest.mark.parametrize("changes", [{}, {"phase": "taken", "made": True, "can_undo": True}])
async def test_undo_is_repeated_until_acknowledged(
    work: UnitOfWork, run: Run, changes: dict[str, Any]
) -> None:
    for kind, name in (
        (ThreadBindingStep, "subagentEnded"),
        (ContextEngineStep, "rollbackSubagentSpawn"),
    ):
        hooks = ScriptedHooks(ASKED, None)
        maker = kind(work, hooks)
        with pytest.raises(UndoError, match="did not answer in 10 s"):
            await maker.undo(run, state(maker, **changes))
        assert await maker.undo(run, state(maker, **changes)) == "undone"
        assert [call.name for call in hooks.calls] == [name] * 2


async def test_gone_preparation_is_not_rolled_back(work: UnitOfWork, run: Run) -> None:
    maker = ContextEngineStep(work, ScriptedHooks(GONE))
    assert await maker.undo(run, state(maker)) == "nothing_there"
    # The hook is called even if the thread is gone.
    binding = ThreadBindingStep(work, ScriptedHooks(GONE))
    with pytest.raises(UndoError):
        await binding.undo(run, state(binding))


async def test_engine_without_rollback_is_not_called(work: UnitOfWork, run: Run) -> None:
    hooks = ScriptedHooks()
    maker = ContextEngineStep(work, hooks)
    taken = state(maker, phase="taken", made=True, can_undo=False)
    assert await maker.undo(run, taken) == "nothing_there"
    assert hooks.calls == []


async def test_engine_hears_limit_of_run(running: RunningLog, tmp_path: Path) -> None:
    work = await work_with_hooks(running, tmp_path, *ASKING)
    run = await prepared_run(running, tmp_path, options={"run_timeout_seconds": 1.9})
    hooks = ScriptedHooks({"rollback": "seven"})
    maker = ContextEngineStep(work, hooks)
    made = await maker.make(run, state(maker), is_resumed=False)
    assert made == StepResult(outcome="prepared", can_undo=True, token="seven")
    event = hooks.calls[0].event
    session = await work.registry.session(run.requester.session_key)
    assert session is not None
    assert (event["ttlMs"], event["parentSessionId"]) == (1000, str(session.session_id))


async def test_delivery_target_is_asked_for_root_sessions_alone(work: UnitOfWork, run: Run) -> None:
    output = {"origin": {"to": " x "}}
    origin = '{"channel":"discord","accountId":"a","to":"x"}'
    assert await ask_delivery_target(work, ScriptedHooks(output), run) == origin
    below = run.changed({"requester": run.requester.changed({"depth": 1})})
    bound = run.changed({"delivery_origin": run.requester.origin})
    for relative in (below, bound):
        hooks = ScriptedHooks(output)
        assert await ask_delivery_target(work, hooks, relative) is None
        assert hooks.calls == []


@pytest.mark.parametrize("reply", [None, ASKED, {"origin": {"channel": "webchat", "to": "x"}}])
async def test_delivery_target_without_answer_changes_nothing(
    work: UnitOfWork, run: Run, reply: Any
) -> None:
    hooks = ScriptedHooks(reply)
    assert await ask_delivery_target(work, hooks, run) is None
    assert len(hooks.calls) == 1


@pytest.mark.parametrize(
    ("channel", "read"), [(" discord ", "discord"), ("discord\u200b", None), (7, None)]
)
async def test_channel_is_read_alike_for_context_and_thread(
    running: RunningLog, work: UnitOfWork, tmp_path: Path, channel: object, read: str | None
) -> None:
    run = await prepared_run(running, tmp_path, origin=json.dumps({"channel": channel, "to": "c"}))
    hooks = ScriptedHooks(READY)
    maker = ThreadBindingStep(work, hooks)
    await maker.make(run, state(maker), is_resumed=False)
    requester = hooks.calls[0].event["requester"]
    assert isinstance(requester, dict)
    assert requester.get("channel") == read
    wish = await read_context_request(work, run)
    assert wish.mode == ("fork" if read else "isolated")
