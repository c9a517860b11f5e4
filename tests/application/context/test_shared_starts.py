"""A run starts with the shared context as of its claim, whatever changes later."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from application.context.shared_context import (
    NOTHING_SHARED,
    SharedStart,
    read_shared_spawn,
    read_shared_start,
)
from application.log.envelope import Actor
from application.log.texts import ContentsErased
from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import LaunchError
from application.queries.views.shared_context import (
    run_shared_context_view,
    shared_context_view,
)
from application.session.shared_context import ContextPatch, ContextPatcher, SharedContextTooLarge
from domain.run.events import RunStarted
from domain.session.decide import ContextMoved
from domain.session.shared_context import effective_shared_keys
from domain.spawn.cascade import CannotShare
from domain.spawn.request import SharedContextInput
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import work_with_hooks

pytestmark = pytest.mark.server

OWNER = Actor(kind="token", token="owner")


@pytest.fixture
async def work(running: RunningLog, tmp_path: Path) -> UnitOfWork:
    return await work_with_hooks(running, tmp_path)


async def patched(
    work: UnitOfWork, key: str = ROOT, expected: int | None = None, **values: object
) -> dict[str, str]:
    """Return the recorded shared context of the session after the patch."""
    patch = ContextPatch(session_key=key, display_key=key, values=values, expected=expected)
    session = (await ContextPatcher(work).patch(patch, OWNER)).session
    keys = [(item.key, item.value) for item in effective_shared_keys(session)]
    return {key: await work.contents.text(value) or "" for key, value in keys if value is not None}


async def start_of(work: UnitOfWork, family: LoggedFamily, name: str) -> SharedStart:
    run = await work.run(family.id(name))
    return await read_shared_start(work, run, run, await work.text_store(run))


def texts(start: SharedStart) -> dict[str, str | None]:
    return {value.key: value.text for value in start.values}


async def test_patch_between_claim_and_start_is_for_the_next(
    work: UnitOfWork, family: LoggedFamily
) -> None:
    await family.queue("first")
    assert await patched(work, goal="win") == {"goal": '"win"'}
    claimed = await family.tell("first", ask.claim())
    await patched(work, goal="lose", more=1)
    start = await start_of(work, family, "first")
    assert (start.position, start.inherits) == (claimed.position, True)
    assert texts(start) == {"goal": '"win"'}
    assert start.whole() == {"goal": "win"}
    again = await family.tell(
        "first", ask.claim(holder="server-2", lost_epoch=family.run("first").epoch)
    )
    start = await start_of(work, family, "first")
    assert start.position == again.position
    assert texts(start) == {"goal": '"lose"', "more": "1"}


async def test_family_that_shares_nothing_is_not_read(
    work: UnitOfWork, family: LoggedFamily
) -> None:
    await family.queue("first")
    await family.tell("first", ask.claim())
    assert await start_of(work, family, "first") is NOTHING_SHARED


async def test_erased_context_is_given_as_erased(
    running: RunningLog, work: UnitOfWork, family: LoggedFamily
) -> None:
    await family.queue("first")
    await patched(work, goal="win")
    await family.spawn("sharing", shared=SharedContextInput(values=(("more", "1"),)))
    shared = await read_shared_spawn(work, family.run("sharing"))
    assert shared is not None
    assert [change.key for change in shared.changes] == ["more"]
    await running.erase(family.sessions[ROOT].session_id)
    await family.tell("first", ask.claim())
    start = await start_of(work, family, "first")
    assert texts(start) == {"goal": None}
    assert start.whole() == {"goal": None}
    assert [key.value for key in start.keys] == [None]
    with pytest.raises(CannotShare, match="was erased"):
        await read_shared_spawn(work, family.run("sharing"))
    with pytest.raises(ContentsErased):
        await patched(work, more=1)


async def begin(work: UnitOfWork, family: LoggedFamily, name: str, by: str = "main") -> int:
    """Spawn a child that starts with the shared context. Return the position of its claim; the root
    shares another key after it.
    """
    await family.queue(name, by)
    claimed = await family.tell(name, ask.claim())
    await patched(work, goal=name)
    run = await work.run(family.id(name))
    text_store = await work.text_store(run)
    start = await read_shared_start(work, run, run, text_store)
    command = ask.start(
        run.epoch,
        shared_context_position=start.position,
        shared_context=start.keys,
        inherits=start.inherits,
    )
    await work.record(run, (command,), text_store)
    return claimed.position


async def test_copy_of_child_outlives_that_of_its_parent(
    running: RunningLog, work: UnitOfWork, family: LoggedFamily
) -> None:
    await patched(work, goal="win")
    await begin(work, family, "child")
    await running.erase(family.sessions[ROOT].session_id)
    own = await work.registry.session(family.key("child"))
    (kept,) = effective_shared_keys(own)
    assert kept.value is not None
    assert await work.contents.text(kept.value) == '"win"'


async def view_of(work: UnitOfWork, key: str) -> dict[str, Any]:
    session = await work.registry.session(key)
    assert session is not None
    view = await shared_context_view(work, session, await work.log.head())
    shown: dict[str, Any] = orjson.loads(view.json_bytes())
    return shown


async def test_view_has_changes_and_who_started_with_them(
    running: RunningLog, work: UnitOfWork
) -> None:
    family = LoggedFamily(running.log, max_spawn_depth=3)
    await patched(work, goal="win")
    first = await work.log.head()
    claimed = await begin(work, family, "child")
    claimed_below = await begin(work, family, "below", "child")
    shown = await view_of(work, ROOT)
    assert (shown["values"], shown["sizes"]) == ({"goal": "below"}, {"goal": 7})
    source = {"kind": "literal", "sessionKey": ROOT, "runId": None, "by": "owner"}
    assert shown["sources"] == {"goal": {**source, "position": shown["version"]}}
    history = [(event["cause"], event["by"], event["keys"]) for event in shown["history"]]
    assert history == [("patch", "owner", ["goal"])] * 3
    started = {"runId": str(family.id("child")), "position": claimed, "version": first}
    assert shown["startedWith"] == [{**started, "label": None}]
    own = await view_of(work, family.key("child"))
    assert [(event["cause"], event["keys"]) for event in own["history"]] == [
        ("inherited", ["goal"])
    ]
    (below,) = own["startedWith"]
    assert (below["runId"], below["position"]) == (str(family.id("below")), claimed_below)
    assert below["version"] == own["version"]
    (recorded,) = await work.log.read(run_id=family.id("child"), types=("RunStarted",), limit=9)
    assert isinstance(recorded.event, RunStarted)
    given = await run_shared_context_view(work.contents, family.id("child"), recorded.event)
    assert given.position == claimed


async def test_context_too_large_at_the_claim_starts_nothing(
    work: UnitOfWork, family: LoggedFamily
) -> None:
    own = SharedContextInput(values=(("own", f'"{"x" * 40_000}"'),), scope="child")
    for name in ("child", "other"):
        await family.spawn(name, shared=own)
        await family.create(name)
    await patched(work, grown="y" * 40_000)
    await family.tell("child", ask.claim())
    with pytest.raises(
        LaunchError, match=r"would have 800\d\d bytes, more than the 65536"
    ) as cannot:
        await start_of(work, family, "child")
    assert cannot.value.reason == "shared_context"
    many: dict[str, Any] = {f"k{number}": number for number in range(64)}
    await patched(work, **many, grown=None)
    await family.tell("other", ask.claim())
    with pytest.raises(LaunchError, match="would have 65 keys, more than the 64"):
        await start_of(work, family, "other")


async def test_patches_of_an_unseen_session_all_land(running: RunningLog, work: UnitOfWork) -> None:
    key = "agent:main:new"
    await asyncio.gather(*(patched(work, key, **{f"k{number}": number}) for number in range(4)))
    assert await patched(work, key) == {f"k{number}": str(number) for number in range(4)}
    types = await running.types()
    assert (types.count("SessionObserved"), types.count("SharedContextChanged")) == (1, 4)


async def test_of_patches_for_one_version_one_lands(work: UnitOfWork) -> None:
    found = await asyncio.gather(
        *(patched(work, expected=0, k=number) for number in range(4)), return_exceptions=True
    )
    assert len([item for item in found if isinstance(item, dict)]) == 1
    assert len([item for item in found if isinstance(item, ContextMoved)]) == 3


async def test_members_are_merged_and_no_change_records_nothing(
    running: RunningLog, work: UnitOfWork
) -> None:
    await patched(work, deep={"a": {"b": 1, "c": 2}}, plain=[1])
    merged = await patched(
        work, deep={"a": {"b": None, "d": None, "e": {"f": None}}}, plain={"x": 1}
    )
    assert merged == {"deep": '{"a":{"c":2,"e":{}}}', "plain": '{"x":1}'}
    head = await running.log.head()
    assert await patched(work, plain={"x": 1}, never=None) == merged
    assert await running.log.head() == head
    with pytest.raises(SharedContextTooLarge, match="more than the 65536"):
        await patched(work, large="x" * 65_536)
    assert await patched(work, deep=None, plain=None) == {}
