"""What-if for requests: the requester, and admission under other limits."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from domain.run.events import RunEvent, SpawnRequested
from domain.run.facts import BatchFacts, Dependency
from domain.run.state import Run
from domain.session.shared_context import SHARED_BYTES_MAX, SHARED_KEYS_MAX
from domain.values.shared_values import SharedContextRequest
from domain.what_if.decide_again import texts_needed, waits_for_needed
from tests.support.builders import run_histories as past
from tests.support.builders.decisions_again import (
    AS_BEFORE,
    FIRST_POSITION,
    ISOLATING,
    Case,
    Outcome,
    Spawn,
    Values,
    allowed,
    at_hand,
    below,
    but,
    case,
    check,
    limits,
    refused,
    rows,
    setup,
    still_refused,
    unknown,
)
from tests.support.builders.storytelling import ref, requested, run_id, run_of

# Limits. OPEN permits the requests that each other configuration refuses.

OPEN = limits("writer", allowAgents=["*"])
STRICT = limits("writer", allowAgents=["main"])
SHALLOW = limits("writer", maxSpawnDepth=2)
FULL = limits("writer", allowAgents=["*"], maxChildrenPerAgent=4)
NAMING = limits("writer", requireAgentId=True)
SLOW = {"agents": {"defaults": {"subagents": {"thinking": "low"}}}}
FACTS: Values = {"contextScripts": {"run": [{"id": "facts", "uri": "/scripts/facts"}]}}

WRITER = Spawn(agent_id="writer")
DEEP = Spawn(requester=below(2))
CROWDED = Spawn(agent_id="writer", active_children=4)
OTHER = Dependency(run_id=run_id(7), name="a", via="dependsOn")
WAITING = WRITER.changed(changes={"dependencies": (OTHER,)})
SHARING = WRITER.changed(changes={"shared": SharedContextRequest()})

LIMITS: dict[str, tuple[Spawn, Values]] = {
    "depth": (DEEP, SHALLOW),
    "active_children": (CROWDED, FULL),
    "require_agent_id": (Spawn(), NAMING),
    "allow_agents": (WRITER, STRICT),
}


@pytest.mark.parametrize("rule", LIMITS)
def test_limit_refuses_and_allows_and_refuses_both_times(rule: str) -> None:
    request, narrow = LIMITS[rule]
    case(request, OPEN, narrow, refused(rule)).check()
    case(request, narrow, OPEN, allowed(rule)).check()
    case(request, narrow, but(narrow, SLOW)).check()


ADMISSION: dict[str, Case] = {
    "assumptions": case(
        WRITER,
        limits("writer"),
        limits({"id": "writer", "subagents": FACTS}, allowAgents=["*"]),
        allowed(
            "allow_agents", 'context script "facts" proposes no other agent', *at_hand("writer")
        ),
    ),
    "dependency not on record": case(
        WAITING, limits("writer"), OPEN, unknown(f"run {run_id(7)}, which dependsOn names")
    ),
    "dependency that names no run": case(
        WRITER.changed(changes={"dependencies_argument": ref("names")}), limits("writer"), OPEN
    ),
    "sizes of shared keys not on record": case(
        SHARING,
        limits("writer"),
        OPEN,
        allowed("allow_agents", "the shared context fits the limits", *at_hand("writer")),
    ),
}


@rows(ADMISSION)
def test_admission(row: Case) -> None:
    row.check()


def test_rule_without_limit_refuses_under_any() -> None:
    unnamed = Spawn(agent_id="no id at all")
    recorded = unnamed.record(OPEN).refused
    assert recorded is not None
    assert recorded.rule == "agent_id"
    case(unnamed, OPEN, but(OPEN, SLOW)).check()


def named(*events: RunEvent) -> Mapping[UUID, Run]:
    """Return the state of the dependency at that time."""
    return {run_id(7): run_of(*events)}


AT_WORK, DONE = named(*past.a_started_run()), named(*past.an_announced_run())
OTHER_SESSION = {run_id(8): run_of(requested(session_id=run_id(1008)), *past.a_started_run()[1:])}
CYCLE = still_refused("allow_agents", "dependency_cycle")


def waiting_below(number: int) -> Spawn:
    """Return a spawn by a run below that one."""
    changes = {"dependencies": (OTHER,), "ancestors": (run_id(number),)}
    return WAITING.changed(requester=below(), changes=changes)


@pytest.mark.parametrize(
    ("spawn", "runs", "expected"),
    [
        (waiting_below(7), AT_WORK, CYCLE),
        (waiting_below(8), {**AT_WORK, **OTHER_SESSION}, Outcome("not-replayable")),
        (waiting_below(8), AT_WORK, Outcome("not-replayable")),
        (waiting_below(8), {**DONE, **OTHER_SESSION}, allowed("allow_agents")),
    ],
)
def test_dependency_is_judged_as_it_was_then(
    spawn: Spawn, runs: Mapping[UUID, Run], expected: Outcome
) -> None:
    found = spawn.again(limits("writer"), OPEN, waits_for=runs).verdict
    check(found, expected)
    assert all("name" not in item for item in found.assumed)


def test_text_is_read_if_its_limit_changed() -> None:
    wordy = Spawn(model="a model, please", thinking="like a sage", preamble="words", origin="{}")
    shorter = setup(default={"subagents": {"contextPreambleMaxChars": 7}})
    assert texts_needed(wordy.question(setup(), shorter)) == [ref("words")]


def test_dependencies_are_read_if_a_limit_refused_before_them() -> None:
    def needed(spawn: Spawn, values: Values) -> tuple[UUID, ...]:
        request = spawn.record(values).request
        assert isinstance(request, SpawnRequested)
        return waits_for_needed(request)

    assert needed(waiting_below(8), STRICT) == (run_id(7), run_id(8))
    assert needed(waiting_below(8), OPEN) == ()
    assert needed(WRITER, STRICT) == ()


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (
            {"shared_bytes": SHARED_BYTES_MAX, "shared_keys": SHARED_KEYS_MAX},
            allowed("allow_agents"),
        ),
        (
            {"shared_bytes": SHARED_BYTES_MAX + 1, "shared_keys": 1},
            still_refused("allow_agents", "shared_context"),
        ),
    ],
)
def test_recorded_sizes_of_what_is_shared_are_judged(
    sizes: dict[str, object], expected: Outcome
) -> None:
    record = SHARING.record(limits("writer"))
    assert isinstance(record.request, SpawnRequested)
    request = record.request.changed({"facts": record.request.facts.changed(sizes)})
    found = SHARING.again(limits("writer"), OPEN, record=record.changed({"request": request}))
    check(found.verdict, expected)
    assert "the shared context fits the limits" not in found.verdict.assumed


# The requester: resolution of its session key.

BASE = setup("writer")
MEANT_ANOTHER = unknown("the requester: its key means another session under this configuration")
PEER = "agent:main:chat:group:7"


def test_short_key_may_stand_for_another_session() -> None:
    now = setup("main", {"id": "writer", "default": True})
    case(Spawn(), BASE, now, MEANT_ANOTHER).check()
    for key in (PEER, "agent:main:main"):
        spawn = Spawn(display=key, requester={"session_key": key})
        assert spawn.again(BASE, now).verdict.verdict == "same"
    case(Spawn(requester=below(display_key="main")), BASE, now).check()


# Sandbox: recorded state, configuration, and request.


def allowing(*agents: str | Values) -> Values:
    """Return a file in which every agent is allowed, for children, too."""
    return setup(*agents, default={"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}})


def main(mode: str) -> Values:
    """Return the agent main with this sandbox mode."""
    return {"id": "main", "sandbox": {"mode": mode}, "runtime": ISOLATING}


CONFINED, UNCONFINED = allowing(main("all"), "writer"), allowing("main", "writer")
CAREFUL = allowing("main", {"id": "writer", "sandbox": {"mode": "all"}, "runtime": ISOLATING})
ABLE = allowing("main", {"id": "writer", "runtime": ISOLATING})
FREE = Spawn(agent_id="writer", requester={"agent_id": "main"})

SANDBOX: dict[str, Case] = {
    "seen first, free now": case(
        FREE.changed(is_boxed=None), CONFINED, UNCONFINED, allowed("sandbox")
    ),
    "required sandbox is gone": case(
        FREE.changed(options={"sandbox": "require"}), CAREFUL, ABLE, refused("sandbox")
    ),
}


@rows(SANDBOX)
def test_sandbox(row: Case) -> None:
    row.check()


@pytest.mark.parametrize(("index", "expected"), [(0, AS_BEFORE), (1, allowed("sandbox"))])
def test_batch_task_may_see_the_session_first(index: int, expected: Outcome) -> None:
    batch = BatchFacts(batch_id=run_id(5), index=index, run_ids=(run_id(1), run_id(2)))
    request = FREE.changed(is_boxed=None, batch=batch)
    session = request.session(CONFINED).changed({"created_position": FIRST_POSITION - 2})
    case(request, CONFINED, UNCONFINED, expected, requester=session).check()
