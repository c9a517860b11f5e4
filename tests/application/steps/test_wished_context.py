"""The context of a child in a thread follows the same addresses as the thread itself."""

import json
from pathlib import Path

import pytest

from application.steps.context_fork import read_context_request
from application.steps.thread_binding import ThreadBindingStep
from domain.run.facts import StepState
from tests.support.builders import run_commands as ask
from tests.support.builders.stored_family import KeptFamily
from tests.support.builders.storytelling import START
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import ScriptedHooks, work_with_hooks

STEP = StepState(name="thread_binding", key="k", epoch=1, begun_at=START, limit_seconds=11.0)
READY = {"status": "ok", "threadBindingReady": True}


@pytest.mark.parametrize(
    ("channel", "read"),
    [
        ("discord", "discord"),
        (" discord ", "discord"),
        ("discord\u200b", None),
        ("d" * 1025, None),
        (7, None),
        ("", None),
    ],
    ids=["plain", "blanks", "unseen", "too long", "a number", "empty"],
)
async def test_a_channel_is_one_for_the_context_where_it_is_one_for_the_thread(
    running: RunningLog, tmp_path: Path, channel: object, read: str | None
) -> None:
    work = await work_with_hooks(running, tmp_path, "subagentSpawning")
    family = KeptFamily(running.log, running.pool, tmp_path)
    await family.spawn("a", origin=json.dumps({"channel": channel, "to": "c"}), thread=True)
    epoch = family.run("a").epoch
    await family.tell("a", ask.resolve(epoch), ask.prepare(epoch))
    hooks = ScriptedHooks(READY)
    await ThreadBindingStep(work, hooks).make(family.run("a"), STEP, is_resumed=False)
    requester = hooks.calls[0].event["requester"]
    assert isinstance(requester, dict)
    assert requester.get("channel") == read
    wish = await read_context_request(work, family.run("a"))
    assert wish.mode == ("fork" if read else "isolated")
