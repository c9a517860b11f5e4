"""What a request records of the session it comes from: what a child will inherit, on whose word."""

from typing import Any

import pytest

from domain.run.facts import AdmissionFacts, Requester, SpawnOptions
from domain.run.state import Run
from domain.session.events import SessionObserved
from domain.session.state import Session
from domain.spawn.decide import SpawnDecision, request_spawns
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import keep, policy, spawn_request
from tests.support.builders.storytelling import (
    CHILD,
    observed,
    observed_child,
    plan,
    run_of,
    session_of,
)

IN_A_BOX = SpawnOptions(requester_sandboxed=True)


def judge(*sessions: Session, runs: tuple[Run, ...] = (), **request: Any) -> SpawnDecision:
    """Judge a request of the root session, or of whom it names, as deep as it likes."""
    known = {session.session_key: session for session in sessions}
    under = policy(max_spawn_depth=5, allow_agents_from="agent", require_agent_id_from="defaults")
    on_record = {run.run_id: run for run in runs}
    return request_spawns(known, on_record, [(spawn_request(**request), keep)], under)


def asked_by(answered: SpawnDecision) -> Requester:
    """The requester as it is recorded with the request."""
    return next(event.requester for _, event in answered.changes if hasattr(event, "requester"))


def first_seen(answered: SpawnDecision) -> SessionObserved:
    """What is recorded of a session that was not known."""
    event = answered.changes[0][1]
    assert isinstance(event, SessionObserved)
    return event


def a_run_that_executes(**of_its_plan: Any) -> Run:
    """The run of `CHILD`, with this in its plan."""
    history = [
        past.created(plan=plan(**of_its_plan)) if isinstance(event, type(past.created())) else event
        for event in past.a_started_run()
    ]
    return run_of(*history)


def test_a_child_that_asks_hands_on_the_model_and_the_thinking_of_its_own_run() -> None:
    run = a_run_that_executes(model_provider="small", model="one", thinking="low")
    answered = judge(session_of(observed_child()), runs=(run,), requester_key=CHILD)
    requester = asked_by(answered)
    assert (requester.model, requester.thinking) == ("small/one", "low")


def test_a_model_without_a_provider_is_handed_on_by_its_name_alone() -> None:
    run = a_run_that_executes(model="one")
    answered = judge(session_of(observed_child()), runs=(run,), requester_key=CHILD)
    assert asked_by(answered).model == "one"


def test_a_child_that_asks_hands_on_the_folder_on_its_session() -> None:
    session = session_of(observed_child(workspace_dir="/srv/of-the-session"))
    run = a_run_that_executes(workspace_dir="/srv/of-the-plan")
    answered = judge(session, runs=(run,), requester_key=CHILD)
    assert asked_by(answered).workspace_dir == "/srv/of-the-session"


def test_a_session_of_an_older_release_hands_on_the_folder_of_its_run() -> None:
    run = a_run_that_executes(workspace_dir="/srv/of-the-plan")
    answered = judge(session_of(observed_child()), runs=(run,), requester_key=CHILD)
    assert asked_by(answered).workspace_dir == "/srv/of-the-plan"


def test_a_session_that_was_not_spawned_hands_on_nothing() -> None:
    requester = asked_by(judge(session_of(observed())))
    assert (requester.model, requester.thinking, requester.workspace_dir) == (None, None, None)


@pytest.mark.parametrize(
    ("recorded", "configured", "said", "holds"),
    [
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, True),
        (False, False, False, False),
    ],
)
def test_the_record_says_whether_a_requester_is_in_a_sandbox_and_its_word_only_tightens(
    recorded: bool | None, configured: bool, said: bool, holds: bool
) -> None:
    answered = judge(
        session_of(observed(sandboxed=recorded)),
        requester_in_sandbox=configured,
        options=SpawnOptions(requester_sandboxed=said),
    )
    assert asked_by(answered).sandboxed is holds


def test_what_rests_on_the_word_of_a_session_first_seen_is_named() -> None:
    seen = first_seen(judge(asserts_agent=True, options=IN_A_BOX))
    assert seen.assertions == ("agentId", "sandboxed")
    assert seen.sandboxed is True
    assert seen.depth_from == "shape"
    assert first_seen(judge()).assertions == ()


def test_a_session_first_seen_is_in_the_sandbox_that_its_agent_is_configured_for() -> None:
    seen = first_seen(judge(requester_in_sandbox=True))
    assert (seen.sandboxed, seen.assertions) == (True, ())


def test_a_known_session_keeps_who_asserted_what() -> None:
    seen = first_seen(judge(asserts_agent=True, options=IN_A_BOX))
    known = session_of(seen)
    assert (known.asserted_by, known.assertions) == ("admin", ("agentId", "sandboxed"))
    answered = judge(known)
    assert not any(isinstance(event, SessionObserved) for _, event in answered.changes)


def test_the_facts_say_where_depth_and_lists_were_found() -> None:
    def places(facts: AdmissionFacts) -> tuple[str | None, ...]:
        return facts.depth_from, facts.require_agent_id_from, facts.allow_agents_from

    assert places(judge().facts) == ("shape", "defaults", "agent")
    assert places(judge(session_of(observed())).facts) == ("record", "defaults", "agent")


def test_a_folder_that_is_asked_for_is_kept_beside_the_log() -> None:
    answered = judge(workspace_argument="/home/somebody/secret-project")
    recorded = "".join(event.to_json().decode() for _, event in answered.changes)
    assert "secret-project" not in recorded
    assert '"workspaceArgument":{"id":' in recorded
