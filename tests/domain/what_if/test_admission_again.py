"""Given a request and what it was admitted by, whether it is admitted under other limits."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from domain.run.events import RunEvent, SpawnRequested
from domain.run.facts import AttachmentsRequest, Dependency
from domain.run.state import Run
from domain.session.shared_context import SHARED_BYTES_MAX, SHARED_KEYS_MAX
from domain.values import rules
from domain.values.shared_values import SharedContextRequest
from domain.what_if.verdict import SAME, DecisionDifference
from tests.support.builders import run_histories as past
from tests.support.builders.decisions_again import Spawn, below, but, limits
from tests.support.builders.storytelling import plan, ref, requested, run_id, run_of

OPEN = limits("writer", allowAgents=["*"])
DEEP = below(2)
TAKING = {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}
CROWDED = Spawn(agent_id="writer", active_children=4)

# Who asks for what, what is permitted, and what refuses it.
LIMITS: dict[str, tuple[Spawn, dict[str, Any], dict[str, Any]]] = {
    "depth": (Spawn(requester=DEEP), OPEN, limits("writer", maxSpawnDepth=2)),
    "active_children": (CROWDED, OPEN, limits("writer", allowAgents=["*"], maxChildrenPerAgent=4)),
    "require_agent_id": (Spawn(), OPEN, limits("writer", requireAgentId=True)),
    "allow_agents": (Spawn(agent_id="writer"), OPEN, limits("writer", allowAgents=["main"])),
}


@pytest.mark.parametrize("rule", LIMITS)
def test_what_a_limit_did_not_stop_it_stops_now(rule: str) -> None:
    asked, wide, narrow = LIMITS[rule]
    found = asked.again(wide, narrow).verdict
    assert (found.verdict, found.rule) == ("newly-refused", rule)
    assert found.difference == DecisionDifference(field="/rule", recorded=None, decided=rule)


@pytest.mark.parametrize("rule", LIMITS)
def test_what_a_limit_stopped_it_lets_pass_now(rule: str) -> None:
    asked, wide, narrow = LIMITS[rule]
    found = asked.again(narrow, wide).verdict
    assert (found.verdict, found.rule) == ("newly-allowed", rule)
    assert found.difference == DecisionDifference(field="/rule", recorded=rule, decided=None)


@pytest.mark.parametrize("rule", LIMITS)
def test_what_a_limit_stops_either_way_is_the_same(rule: str) -> None:
    asked, _, narrow = LIMITS[rule]
    stricter = but(narrow, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})
    assert asked.again(narrow, stricter).verdict == SAME


def test_what_another_rule_stops_now_is_the_same_and_names_that_rule() -> None:
    asked = Spawn(agent_id="writer", active_children=4, requester=DEEP)
    narrow = limits("writer", allowAgents=["main"])
    shallow = limits("writer", maxSpawnDepth=2)
    found = asked.again(narrow, shallow).verdict
    assert (found.verdict, found.rule) == ("same", "depth")
    assert found.difference == DecisionDifference(
        field="/rule", recorded="allow_agents", decided="depth"
    )


def test_of_several_rules_that_stop_it_now_the_first_speaks() -> None:
    asked = Spawn(agent_id="writer", active_children=4, requester=DEEP)
    narrow = limits("writer", maxSpawnDepth=2, maxChildrenPerAgent=1, allowAgents=["main"])
    assert asked.again(OPEN, narrow).verdict.rule == "depth"


def test_the_caller_would_be_told_with_the_numbers_of_now() -> None:
    found = CROWDED.again(OPEN, limits("writer", allowAgents=["*"], maxChildrenPerAgent=4)).verdict
    assert found.text == ("sessions_spawn has reached max active children for this session (4/4)")


def test_a_list_of_the_requesters_own_agent_counts_before_the_defaults() -> None:
    own = limits({"id": "main", "subagents": {"allowAgents": []}}, "writer", allowAgents=["*"])
    assert Spawn(agent_id="writer").again(OPEN, own).verdict.rule == "allow_agents"
    of_another = limits(
        "main", {"id": "writer", "subagents": {"allowAgents": []}}, allowAgents=["*"]
    )
    assert Spawn(agent_id="writer").again(OPEN, of_another).verdict == SAME


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ("agent_id", Spawn(agent_id="no id at all")),
        ("mode", Spawn(mode="session")),
        ("tools", Spawn(requester=below(), own_plan=plan(tools_deny=("sessions_spawn",)))),
    ],
)
def test_what_is_in_no_limit_stays_refused_under_any(rule: str, asked: Spawn) -> None:
    """The tools of its requester are those that this one had."""
    refused = asked.record(OPEN).refused
    assert refused is not None
    assert refused.rule == rule
    every_tool = but(OPEN, {"tools": {"subagents": {"tools": {"allow": ["sessions_spawn"]}}}})
    assert asked.again(OPEN, every_tool).verdict == SAME


@pytest.mark.parametrize(
    "rule", [rules.SHARED_CONTEXT.name, rules.DEPENDENCY_UNKNOWN.name, rules.DEPENDENCY_FAILED.name]
)
def test_what_its_family_refused_it_refuses_again(rule: str) -> None:
    """What is shared and what is waited for is in no configuration."""
    asked = Spawn(refused_by=rule, step="admission")
    assert asked.again(OPEN, limits("writer", thinking="low")).verdict == SAME
    narrow = asked.again(OPEN, limits("writer", requireAgentId=True)).verdict
    assert (narrow.verdict, narrow.rule) == ("same", "require_agent_id")


def test_what_is_newly_admitted_is_taken_to_be_in_order_behind_that() -> None:
    script = {"id": "facts", "uri": "/scripts/facts"}
    wide = limits(
        {"id": "writer", "subagents": {"contextScripts": {"run": [script]}}}, allowAgents=["*"]
    )
    found = Spawn(agent_id="writer").again(limits("writer"), wide).verdict
    assert (found.verdict, found.assumed) == (
        "newly-allowed",
        (
            'context script "facts" names no other agent',
            'the credentials of agent "writer" can be had',
            'the workspace of agent "writer" can be used',
        ),
    )


def test_what_is_newly_admitted_and_not_eligible_stays_refused_by_that_rule() -> None:
    found = Spawn(agent_id="nobody").again(limits(), limits(allowAgents=["*"])).verdict
    assert (found.verdict, found.rule) == ("same", "agent_unknown")


OTHER = Dependency(run_id=run_id(7), name="a", via="dependsOn")
WAITING = Spawn(agent_id="writer", changes={"dependencies": (OTHER,)})


def named(*events: RunEvent) -> Mapping[UUID, Run]:
    """The run that is waited for, as it was then."""
    return {run_id(7): run_of(*events)}


def test_what_was_not_admitted_is_told_what_it_waits_for_and_that_was_there() -> None:
    for target in (named(*past.a_started_run()), named(*past.an_announced_run())):
        found = WAITING.again(limits("writer"), OPEN, waits_for=target).verdict
        assert found.verdict == "newly-allowed"
        assert all("name" not in one for one in found.assumed)


def test_what_waits_for_a_run_that_had_failed_stays_refused_by_that_rule() -> None:
    target = named(*past.a_started_run(), past.ended(outcome="error"))
    found = WAITING.again(limits("writer"), OPEN, waits_for=target).verdict
    assert (found.verdict, found.rule) == ("same", "dependency_failed")
    anyhow = {"dependencies": (OTHER.changed({"require": "ended"}),)}
    found = WAITING.changed(changes=anyhow).again(limits("writer"), OPEN, waits_for=target).verdict
    assert found.verdict == "newly-allowed"


def test_what_waits_for_the_run_above_it_stays_refused_and_for_a_run_at_work_is_unknown() -> None:
    other = run_of(requested(session_id=run_id(1008)), *past.a_started_run()[1:])
    at_work, over = named(*past.a_started_run()), named(*past.an_announced_run())
    same_session = at_work[run_id(7)]

    def decided(above: UUID, known: Mapping[UUID, Run]) -> tuple[str, str | None]:
        changes = {"dependencies": (OTHER,), "ancestors": (above,)}
        asked = WAITING.changed(requester=below(), changes=changes)
        found = asked.again(limits("writer"), OPEN, waits_for=known).verdict
        return found.verdict, found.rule

    assert decided(run_id(7), at_work) == ("same", "dependency_cycle")
    assert decided(run_id(8), {**at_work, run_id(8): same_session}) == ("same", "dependency_cycle")
    assert decided(run_id(8), {**at_work, run_id(8): other}) == ("not-replayable", None)
    assert decided(run_id(8), at_work) == ("not-replayable", None)
    assert decided(run_id(8), {**over, run_id(8): other})[0] == "newly-allowed"


def test_what_names_no_run_stays_refused_whatever_else_is_allowed() -> None:
    unbound = {"dependencies_argument": ref("names")}
    found = Spawn(agent_id="writer", changes=unbound).again(limits("writer"), OPEN).verdict
    assert found == SAME


def test_a_run_that_is_waited_for_and_not_on_record_is_named() -> None:
    found = WAITING.again(limits("writer"), OPEN).verdict
    assert found.missing == (f"run {run_id(7)}, which dependsOn names",)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"shared_bytes": SHARED_BYTES_MAX, "shared_keys": SHARED_KEYS_MAX}, "newly-allowed"),
        ({"shared_bytes": SHARED_BYTES_MAX + 1, "shared_keys": 1}, "same"),
        ({"shared_bytes": 9, "shared_keys": SHARED_KEYS_MAX + 1}, "same"),
    ],
)
def test_how_much_a_family_would_share_is_on_record(
    sizes: dict[str, object], expected: str
) -> None:
    asked = Spawn(agent_id="writer", changes={"shared": SharedContextRequest()})
    record = asked.record(limits("writer"))
    assert isinstance(record.request, SpawnRequested)
    request = record.request.changed({"facts": record.request.facts.changed(sizes)})
    found = asked.again(limits("writer"), OPEN, record=record.changed({"request": request})).verdict
    assert (found.verdict, "what is shared fits" in found.assumed) == (expected, False)
    assert found.rule == ("shared_context" if expected == "same" else "allow_agents")


def test_how_much_was_shared_before_that_was_recorded_is_assumed_to_fit() -> None:
    asked = Spawn(agent_id="writer", changes={"shared": SharedContextRequest()})
    found = asked.again(limits("writer"), OPEN).verdict
    assert found.verdict == "newly-allowed"
    assert "what is shared fits" in found.assumed


def test_what_a_limit_refuses_it_refuses_whatever_is_attached() -> None:
    attached = CROWDED.changed(attachments=AttachmentsRequest(count=1, total_bytes=9))
    narrow = limits("writer", allowAgents=["*"], maxChildrenPerAgent=4)
    found = attached.again(but(OPEN, TAKING), narrow).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "active_children")
    assert attached.again(narrow, but(narrow, TAKING)).verdict == SAME
