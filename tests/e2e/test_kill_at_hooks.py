"""kill -9 around each request to a hook: what can go on does, and nobody is told more than twice,
with one key."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import (
    AT_THE_THREAD,
    BOUND,
    Hooked,
    all_of,
    hooked_on,
    threaded,
)
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

STEPS = ("thread_binding", "context_engine")
TOLD = ("subagentSpawned", "subagentEnded")
MADE = [
    *(
        f"{moment}:{step}"
        for step in STEPS
        for moment in (
            "before StepBegun",
            "after StepBegun",
            "before step",
            "after step",
            "before StepTaken",
            "after StepTaken",
        )
    ),
    "after SessionCreated",
]
WHEN = ("before", "after")
TELLING = [
    f"{moment}:{hook}"
    for hook in TOLD
    for moment in (f"{when} {what}hook" for when in WHEN for what in ("", "EffectAttempted:"))
]
UNDOING = [
    f"{moment}:{step}"
    for step in reversed(STEPS)
    for moment in (f"{when} {what}undo" for when in WHEN for what in ("", "EffectAttempted:"))
]


@pytest.fixture(scope="module")
def one_hooked(databases: Databases, outside: HookServer) -> Iterator[Hooked]:
    with hooked_on(databases, all_of(outside)) as server:
        yield server


@pytest.fixture
def server(one_hooked: Hooked, outside: HookServer) -> Hooked:
    outside.forget()
    outside.replies("subagentSpawning", Reply(said=BOUND))
    outside.replies("prepareSubagentSpawn", Reply(said={"rollback": "seven"}))
    one_hooked.alive()
    return one_hooked


def called_once(outside: HookServer, run_id: str, expected: dict[str, str]) -> None:
    """Each of these hooks was called with its key alone, and at most twice; no other was."""
    calls = [call for call in outside.calls() if call.key.startswith(run_id)]
    assert {call.hook: call.key.removeprefix(f"{run_id}:") for call in calls} == expected
    counted = Counter((call.hook, call.key) for call in calls)
    assert len(counted) == len(expected)
    assert max(counted.values()) <= 2, counted
    events = {call.key: call.event for call in calls}
    assert all(call.event == events[call.key] for call in calls)


def name_of(moment: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in moment.lower())


def goes_on(server: Hooked, outside: HookServer, moment: str) -> None:
    """The same request is accepted, and all is told."""
    body = threaded(name_of(moment))
    answer = server.answer_again(key=moment, **body)
    assert answer.status_code == 201, answer.text
    run_id = str(answer.json()["runId"])
    story = server.comes_to(run_id, "hook:subagentEnded:done")
    assert Counter(one for one in story if one.startswith(("StepTaken", "hook:"))) == {
        **{f"StepTaken:{step}": 1 for step in STEPS},
        **{f"hook:{hook}:done": 1 for hook in TOLD},
    }
    assert not [one for one in story if one.startswith("undo:")]
    called_once(
        outside,
        run_id,
        {
            "subagentSpawning": "thread_binding",
            "prepareSubagentSpawn": "context_engine",
            **{hook: hook for hook in TOLD},
        },
    )
    key = body["requester"]["sessionKey"]
    assert server.session(key)["activeChildren"] == 0
    (item,) = server.inbox(key)
    assert item["origin"] == AT_THE_THREAD


@pytest.mark.parametrize(
    "moment",
    nightly_but([*MADE, *TELLING], ["after step:context_engine", "after hook:subagentEnded"]),
)
def test_a_spawn_goes_on_when_its_server_is_killed_while_it_asks_or_tells(
    server: Hooked, outside: HookServer, moment: str
) -> None:
    server.dies(moment, key=moment, **threaded(name_of(moment)))
    server.again()
    goes_on(server, outside, moment)


@pytest.mark.parametrize("moment", nightly_but(UNDOING, ["after undo:thread_binding"]))
def test_what_others_made_is_undone_when_the_server_is_killed_meanwhile(
    server: Hooked, outside: HookServer, moment: str
) -> None:
    outside.replies("prepareSubagentSpawn", Reply(500))
    body = threaded(name_of(moment))
    server.dies(moment, key=moment, **body)
    server.again()
    answer = server.answer_again(key=moment, **body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "context_engine")
    run_id = str(answer.json()["runId"])
    story = server.comes_to(run_id, *(f"undo:{step}:done" for step in STEPS))
    assert story[-2:] == [f"undo:{step}:done" for step in reversed(STEPS)]
    called_once(
        outside,
        run_id,
        {
            "subagentSpawning": "thread_binding",
            "prepareSubagentSpawn": "context_engine",
            "rollbackSubagentSpawn": "context_engine:undo",
            "subagentEnded": "thread_binding:undo",
        },
    )
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0
