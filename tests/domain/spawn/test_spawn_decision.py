"""Whether a spawn is permitted, from the record, and what stands in the log either way."""

from typing import Any
from uuid import UUID

import pytest

from domain.run.events import SpawnRefused, SpawnRequested
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from domain.session.events import ChildAdmitted, SessionClosed, SessionContinued, SessionObserved
from domain.session.state import Session
from domain.spawn.decide import SpawnDecision, request_spawns
from domain.values.record import run_stream, session_stream
from domain.values.refusals import AgentOnRecord, ReadAgain, SessionIsClosed
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import keep, policy, spawn_request
from tests.support.builders.storytelling import (
    CHILD,
    ROOT,
    observed,
    observed_child,
    ref,
    requester,
    run_id,
    run_of,
    session_of,
)

MINE = run_id(1)
SESSION_MODE = SpawnOptions(mode="session")


def root_with(children: int) -> Session:
    """The root session on record, so many places taken."""
    taken = tuple(
        ChildAdmitted(run_id=run_id(100 + number), active_children=number, max_children=9)
        for number in range(children)
    )
    return session_of(observed(), *taken)


def judge(
    *sessions: Session, runs: tuple[Run, ...] = (), under: Any = None, **request: Any
) -> SpawnDecision:
    """Judge a request of the root session, or of whom the request names."""
    on_record: dict[UUID, Run] = {run.run_id: run for run in runs}
    known = {session.session_key: session for session in sessions}
    return request_spawns(known, on_record, [(spawn_request(**request), keep)], under or policy())


def names(answered: SpawnDecision) -> list[str]:
    """What is recorded, by name, in order."""
    return [type(event).__name__ for _, event in answered.changes]


def requested_in(answered: SpawnDecision) -> SpawnRequested:
    """The request as it is recorded."""
    return next(event for _, event in answered.changes if isinstance(event, SpawnRequested))


def refused_in(answered: SpawnDecision) -> SpawnRefused:
    """The refusal as it is recorded."""
    return next(event for _, event in answered.changes if isinstance(event, SpawnRefused))


# Each request breaks the rule of its row and every rule in the rows below it.
BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("agent_id", {"agent_id_argument": "../x", "target_agent_id": None}),
    ("mode", {"options": SESSION_MODE, "thread": False}),
    ("depth", {"max_spawn_depth": 0}),
    ("active_children", {"max_children": 2}),
    ("allow_agents", {"agent_id_argument": "steward", "target_agent_id": "steward"}),
]
OF_POLICY = ("max_spawn_depth", "max_children")


@pytest.mark.parametrize("first", range(len(BROKEN)), ids=[rule for rule, _ in BROKEN])
def test_of_all_rules_that_are_broken_the_first_in_order_speaks(first: int) -> None:
    broken: dict[str, Any] = {}
    for _, changes in reversed(BROKEN[first:]):
        broken |= changes
    under = policy(**{key: broken.pop(key) for key in OF_POLICY if key in broken})
    answered = judge(root_with(2), under=under, **broken)
    assert answered.refusal is not None
    assert answered.refusal.rule == BROKEN[first][0]
    assert names(answered) == ["SpawnRequested", "SpawnRefused"]


def test_an_agent_id_may_be_required() -> None:
    answered = judge(root_with(0), under=policy(require_agent_id=True, allow_agents=("*",)))
    assert refused_in(answered).rule == "require_agent_id"


def test_full_places_speak_before_the_missing_agent_id() -> None:
    answered = judge(root_with(2), under=policy(require_agent_id=True, max_children=2))
    assert refused_in(answered).rule == "active_children"


@pytest.mark.parametrize(
    ("taken", "cap", "permitted"),
    [(0, 1, True), (1, 1, False), (4, 5, True), (5, 5, False), (3, 2, False), (0, 0, False)],
)
def test_the_cap_is_exact(taken: int, cap: int, permitted: bool) -> None:
    answered = judge(root_with(taken), under=policy(max_children=cap))
    assert (answered.refusal is None) == permitted
    if permitted:
        place = ChildAdmitted(run_id=MINE, active_children=taken, max_children=cap)
        assert answered.changes[-1] == (session_stream(ROOT), place)
    else:
        assert names(answered) == ["SpawnRequested", "SpawnRefused"]
        assert refused_in(answered).inputs == {"current": taken, "limit": cap}


@pytest.mark.parametrize(
    ("depth", "limit", "permitted"), [(0, 1, True), (1, 1, False), (1, 2, True)]
)
def test_depth_is_the_recorded_one_whatever_the_key_looks_like(
    depth: int, limit: int, permitted: bool
) -> None:
    session = session_of(observed_child(depth=depth))
    under = policy(max_spawn_depth=limit)
    own = run_of(*past.a_started_run())
    answered = judge(session, runs=(own,), under=under, requester_key=CHILD)
    assert (answered.refusal is None) == permitted
    assert answered.facts.caller_depth == depth
    assert requested_in(answered).requester.depth == depth


def test_a_requester_that_was_never_seen_is_recorded_first_even_when_it_is_refused() -> None:
    for under, last in ((policy(), "ChildAdmitted"), (policy(max_children=0), "SpawnRefused")):
        answered = judge(under=under)
        assert names(answered) == ["SessionObserved", "SpawnRequested", last]
        assert answered.changes[0] == (
            session_stream(ROOT),
            SessionObserved(
                session_id=run_id(2000),
                session_key=ROOT,
                display_key="main",
                agent_id="main",
                depth=0,
                role="main",
                control_scope="children",
                root_session_key=ROOT,
                asserted_by="admin",
                sandboxed=False,
                depth_from="shape",
            ),
        )


def test_a_requester_that_was_never_seen_is_as_deep_as_its_key_looks() -> None:
    answered = judge(requester_key=CHILD, under=policy(max_spawn_depth=2))
    seen = answered.changes[0][1]
    assert isinstance(seen, SessionObserved)
    assert (seen.depth, seen.role, seen.spawned_by) == (1, "orchestrator", None)
    refused = judge(requester_key=CHILD, under=policy(max_spawn_depth=1))
    assert refused_in(refused).rule == "depth"


def test_a_request_carries_its_requester_as_it_is_on_record() -> None:
    session, own = session_of(observed_child()), run_of(*past.a_started_run())
    answered = judge(
        session, runs=(own,), requester_key=CHILD, requester_display_key="me", origin="{}"
    )
    assert requested_in(answered).requester == requester(
        session_key=CHILD,
        display_key="me",
        depth=1,
        run_id=run_id(1),
        may_yield=True,
        spawned_by=ROOT,
        origin=ref("origin: {}"),
        sandboxed=False,
    )


def test_a_requester_that_went_on_with_another_run_meanwhile_is_read_again() -> None:
    went_on = SessionContinued(run_id=run_id(7), role="leaf", control_scope="none")
    session = session_of(observed_child(), went_on)
    for runs in ((), (run_of(*past.an_announced_run()),)):
        with pytest.raises(ReadAgain):
            judge(session, runs=runs, requester_key=CHILD)


def test_the_agent_on_record_outranks_the_one_that_the_request_names() -> None:
    with pytest.raises(AgentOnRecord) as refused:
        judge(root_with(0), requester_agent_id="steward", target_agent_id="steward")
    assert refused.value.agent_id == "main"


def test_what_was_given_as_an_agent_id_and_is_none_is_kept_beside_the_log() -> None:
    answered = judge(agent_id_argument="rm -rf", target_agent_id=None)
    requested = requested_in(answered)
    assert requested.requested_agent_id is None
    assert requested.agent_id_argument == ref("agentId: rm -rf")
    assert "rm -rf" not in requested.to_json().decode() + refused_in(answered).to_json().decode()


def test_a_good_agent_id_stands_in_the_request_alone() -> None:
    under = policy(allow_agents=("*",))
    answered = judge(under=under, agent_id_argument="Steward", target_agent_id="steward")
    requested = requested_in(answered)
    assert (requested.requested_agent_id, requested.agent_id_argument) == ("steward", None)
    assert answered.refusal is None


def test_a_refusal_records_the_words_that_its_caller_is_told() -> None:
    answered = judge(root_with(1), under=policy(max_children=1))
    assert answered.refusal is not None
    refused = refused_in(answered)
    assert refused.text == keep("refusal", answered.refusal.text)
    assert (refused.step, refused.status, refused.announcement) == ("admission", "forbidden", None)


def test_every_request_records_the_facts_it_was_judged_by() -> None:
    under = policy(allow_agents=("a", "b"), max_children=7)
    answered = judge(root_with(3), under=under)
    assert requested_in(answered).facts == answered.facts
    assert (answered.facts.active_children, answered.facts.max_children) == (3, 7)
    assert answered.facts.allow_agents == ("a", "b")


def test_the_request_and_its_refusal_stand_in_the_runs_own_stream() -> None:
    answered = judge(root_with(1), under=policy(max_children=1))
    assert [stream for stream, _ in answered.changes] == [run_stream(MINE), run_stream(MINE)]


def test_a_closed_session_is_turned_away_without_a_record() -> None:
    session = session_of(observed(), SessionClosed(reason="archived"))
    with pytest.raises(SessionIsClosed, match="session main is closed"):
        judge(session)


@pytest.mark.parametrize(
    ("history", "is_open"),
    [
        (past.a_queued_run(), True),
        (past.a_started_run(), True),
        (past.an_ended_run(), False),
        (past.an_announced_run(), False),
        (past.an_archived_run(), False),
    ],
)
def test_a_child_asks_only_until_its_own_run_is_over(history: past.History, is_open: bool) -> None:
    session, own = session_of(observed_child()), run_of(*history)
    if is_open:
        assert judge(session, runs=(own,), requester_key=CHILD).refusal is None
    else:
        with pytest.raises(SessionIsClosed):
            judge(session, runs=(own,), requester_key=CHILD)
