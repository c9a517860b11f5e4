"""Given decisions one after another, who would have been counted, and who would not have asked."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.session.role import capabilities_at
from domain.what_if import cascade
from domain.what_if.cascade import CascadeCounts, CascadeTooLarge, CountRange
from domain.what_if.decide_again import DecidedAgain
from domain.what_if.verdict import SAME, Verdict, not_replayable
from tests.support.builders.decisions_again import Sent, Spawn, Values, below, but, limits
from tests.support.builders.storytelling import CHILD, ROOT, plan, run_id

BASE = limits("writer", allowAgents=["*"], maxSpawnDepth=2)
STRICT = limits("writer", allowAgents=["main"], maxSpawnDepth=2)
OTHER = "agent:writer:main"


def child(number: int, agent_id: str | None = "writer", **values: Any) -> Spawn:
    """A spawn of a root session."""
    return Spawn(number=number, agent_id=agent_id, **values)


def noted(counts: CascadeCounts, asked: Spawn, then: Values, now: Values) -> DecidedAgain:
    """It is decided again, and taken in."""
    decided = asked.again(then, now, requester_plan=counts.plan(_key(asked)))
    counts.note(asked.record(then), decided)
    return decided


def _key(asked: Spawn) -> str:
    return str(asked.requester.get("session_key", ROOT))


def following(asked: Iterable[Spawn], then: Values, now: Values) -> CascadeCounts:
    """What came of these in their order."""
    counts = CascadeCounts()
    for one in asked:
        noted(counts, one, then, now)
    return counts


def test_without_a_difference_the_count_is_the_recorded_one() -> None:
    assert following([child(1)], BASE, BASE).active_children(ROOT, 3) == CountRange(3, 3)


def test_what_is_newly_refused_is_not_counted_until_it_was_released() -> None:
    counts = following([child(1), child(2)], BASE, STRICT)
    assert counts.active_children(ROOT, 3) == CountRange(1, 1)
    counts.release(ROOT, run_id(1))
    assert counts.active_children(ROOT, 2) == CountRange(1, 1)
    counts.release(ROOT, run_id(2))
    assert counts.active_children(ROOT, 1) == CountRange(1, 1)


def test_it_is_counted_for_its_own_requester_alone() -> None:
    counts = following([child(1)], BASE, STRICT)
    assert counts.active_children(OTHER, 3) == CountRange(3, 3)
    counts.release(OTHER, run_id(1))
    assert counts.active_children(ROOT, 3) == CountRange(2, 2)


def test_one_that_was_refused_before_was_counted_in_neither() -> None:
    counts = following([child(1)], STRICT, STRICT)
    assert counts.active_children(ROOT, 1) == CountRange(1, 1)


def test_what_is_newly_allowed_may_be_at_work_still_or_not() -> None:
    counts = following([child(1), child(2)], STRICT, BASE)
    assert counts.active_children(ROOT, 3) == CountRange(3, 5, run_id(1))
    counts.release(ROOT, run_id(1))
    assert counts.active_children(ROOT, 3) == CountRange(3, 5, run_id(1))


def test_both_are_reckoned_together() -> None:
    counts = following([child(1)], BASE, STRICT)
    noted(counts, child(2), STRICT, BASE)
    assert counts.active_children(ROOT, 3) == CountRange(2, 3, run_id(2))


def test_what_is_prepared_still_has_its_place_already() -> None:
    counts = following([child(1, is_ready=False)], BASE, STRICT)
    assert counts.active_children(ROOT, 3) == CountRange(2, 2)


def test_what_cannot_be_decided_is_taken_as_it_was() -> None:
    counts = CascadeCounts()
    counts.note(child(1).record(BASE), DecidedAgain(not_replayable("something")))
    assert counts.active_children(ROOT, 3) == CountRange(3, 3)
    assert counts.never_ran(Spawn(requester=below(run_id=run_id(1))).record(BASE).run) is None


def test_what_a_run_that_never_was_asked_for_was_not_asked_for() -> None:
    counts = following([child(1)], BASE, STRICT)
    asked = child(2, requester=below(run_id=run_id(1)))
    assert counts.never_ran(asked.record(BASE).run) == run_id(1)
    assert counts.never_ran(child(3).record(BASE).run) is None
    other = child(4, requester=below(run_id=run_id(9)))
    assert counts.never_ran(other.record(BASE).run) is None


def test_that_goes_down_the_tree() -> None:
    counts = following([child(1)], BASE, STRICT)
    deeper = child(2, agent_id="main", requester=below(run_id=run_id(1)))
    counts.note(deeper.record(BASE), DecidedAgain(Verdict(verdict="newly-refused")))
    deepest = child(3, requester=below(1, run_id=run_id(2)))
    assert counts.never_ran(deepest.record(BASE).run) == run_id(2)


def test_a_message_to_a_session_that_never_began_was_not_sent() -> None:
    """The message is to the session of run 1."""
    counts = following([child(1)], BASE, STRICT)
    assert counts.never_ran(Sent(agent_id="writer").record(BASE).run) == run_id(1)
    assert counts.never_ran(child(1).record(BASE).run) is None


def test_the_places_that_would_be_taken_decide() -> None:
    """One place is left by the run that is newly refused; three are taken by those that are not."""
    full = limits("writer", allowAgents=["main"], maxSpawnDepth=2, maxChildrenPerAgent=3)
    counts = following([child(1)], BASE, full)
    last = child(5, agent_id=None, active_children=3)
    free = counts.active_children(ROOT, 3).least
    assert last.again(BASE, full, active_children=free).verdict == SAME
    assert last.again(BASE, full).verdict.rule == "active_children"


# The plan of whoever asks.

ASKS = below(run_id=run_id(1))
SLOW = but(BASE, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})


def test_a_requester_has_the_plan_that_it_would_have() -> None:
    counts = following([child(1)], BASE, SLOW)
    plan = counts.plan(CHILD)
    assert plan is not None
    assert plan.thinking == "low"
    below_it = child(2, agent_id=None, requester={**ASKS, "thinking": None})
    decided = below_it.again(
        BASE,
        but(SLOW, {"agents": {"defaults": {"subagents": {"thinking": None}}}}),
        requester_plan=plan,
    )
    assert decided.planned is not None
    assert decided.planned.plan.thinking == "low"


@pytest.mark.parametrize(
    "change", [BASE, but(BASE, {"agents": {"defaults": {"subagents": {"maxSpawnDepth": 3}}}})]
)
def test_one_whose_plan_is_as_it_was_has_the_recorded_one(change: Values) -> None:
    assert following([child(1)], BASE, change).plan(CHILD) is None


def test_the_tools_of_a_requester_are_those_that_it_would_have() -> None:
    denied = but(BASE, {"tools": {"subagents": {"tools": {"deny": ["sessions_spawn"]}}}})
    counts = CascadeCounts()
    plan = noted(counts, child(1), BASE, denied).planned
    recorded = child(1).record(BASE).created
    assert plan is not None
    assert recorded is not None
    asks = child(2, agent_id=None, requester=ASKS, own_plan=recorded.plan)
    found = noted(counts, asks, BASE, denied).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "tools")
    alone = asks.again(BASE, denied).verdict
    assert alone.verdict == "different-plan"


def test_a_request_of_before_tools_were_recorded_is_not_judged_by_them() -> None:
    denied = plan(tools_deny=("sessions_spawn",))
    asks = child(2, agent_id=None, requester=ASKS)
    assert asks.again(BASE, BASE, requester_plan=denied).verdict == SAME


def test_one_that_could_not_spawn_and_can_now_asks_with_the_tools_of_now() -> None:
    flat = limits("writer", allowAgents=["*"], maxSpawnDepth=1)
    counts = CascadeCounts()
    noted(counts, child(1), flat, BASE)
    leaf = child(1).record(flat).created
    assert leaf is not None
    assert leaf.role == capabilities_at(1, 1).role == "leaf"
    asks = child(2, agent_id=None, requester=ASKS, own_plan=leaf.plan)
    found = noted(counts, asks, flat, BASE).verdict
    assert (found.verdict, found.rule) == ("newly-allowed", "depth")


def test_a_leaf_either_way_asks_for_nothing_and_is_not_remembered() -> None:
    flat = limits("writer", allowAgents=["*"], maxSpawnDepth=1)
    slow = but(flat, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})
    assert following([child(1)], flat, slow).plan(CHILD) is None


def test_the_plan_of_a_message_takes_the_place_of_that_of_the_run_before() -> None:
    """The session began under other thinking than it would have; its message is planned alike."""
    counts = following([child(1)], BASE, SLOW)
    noted(counts, Sent(agent_id="writer"), BASE, BASE)
    assert counts.plan(CHILD) is None
    noted(counts, Sent(agent_id="writer"), BASE, SLOW)
    again = counts.plan(CHILD)
    assert again is not None
    assert again.thinking == "low"


def test_what_another_agent_asks_for_in_the_place_of_one_nobody_knows() -> None:
    """Until its session goes on as it did."""
    counts = CascadeCounts()
    planned = child(1).again(BASE, SLOW).planned
    other = DecidedAgain(Verdict(verdict="different-agent"), planned)
    counts.note(child(1).record(BASE), other)
    assert (counts.agent(CHILD), counts.plan(CHILD)) == ("writer", None)
    noted(counts, Sent(agent_id="writer"), BASE, BASE)
    assert counts.agent(CHILD) is None


def test_more_than_can_be_remembered_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cascade, "REMOVED_MAX", 2)
    counts = following([child(1), child(2)], BASE, STRICT)
    with pytest.raises(CascadeTooLarge, match="more than 2 runs would not have run"):
        noted(counts, child(3), BASE, STRICT)
    planned = following([child(1)], BASE, SLOW)
    assert planned.active_children(ROOT, 1) == CountRange(1, 1)


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from(["refuse", "allow", "same", "release"])),
        max_size=30,
        unique_by=lambda one: (one[0], one[1] == "release"),
    )
)
def test_whoever_runs_as_it_did_is_counted_and_the_unknown_lies_between(
    steps: list[tuple[int, str]],
) -> None:
    """A plain ledger beside it: who holds a place now, and who would for sure."""
    counts, recorded, sure, perhaps = CascadeCounts(), set[int](), set[int](), list[int]()
    for number, what in steps:
        if what == "release":
            counts.release(ROOT, run_id(number))
            recorded.discard(number)
            sure.discard(number)
            continue
        then, now = {"refuse": (BASE, STRICT), "allow": (STRICT, BASE), "same": (BASE, BASE)}[what]
        noted(counts, child(number), then, now)
        if what == "allow":
            perhaps.append(number)
        else:
            recorded.add(number)
            sure |= {number} if what == "same" else set()
        found = counts.active_children(ROOT, len(recorded))
        unknown = run_id(perhaps[0]) if perhaps else None
        assert found == CountRange(len(sure), len(sure) + len(perhaps), unknown)
