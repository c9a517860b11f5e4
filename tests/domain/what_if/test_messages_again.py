"""Given a message to a session, what would come of it under another configuration."""

import pytest

from domain.plan.credentials import FoundCredentials
from domain.what_if.verdict import SAME, Verdict
from tests.support.builders.decisions_again import ISOLATING, Sent, Values, but, limits, setup

BASE = limits("writer", maxChildrenPerAgent=4)
FEWER = limits("writer", maxChildrenPerAgent=2)
SENT = Sent(agent_id="writer", active_children=2)


def refused(found: Verdict) -> tuple[str, str | None]:
    """The verdict, and its rule."""
    return found.verdict, found.rule


def test_a_place_that_is_not_there_any_more_refuses_it() -> None:
    assert refused(SENT.again(BASE, FEWER).verdict) == ("newly-refused", "active_children")


def test_a_place_that_is_there_now_lets_it_pass() -> None:
    found = SENT.again(FEWER, BASE).verdict
    assert refused(found) == ("newly-allowed", "active_children")
    assert found.assumed == ('the credentials of agent "writer" can be had',)


def test_behind_a_run_that_yielded_it_takes_over_that_ones_place() -> None:
    waking = SENT.changed(is_paused=True)
    assert waking.again(BASE, FEWER).verdict == SAME
    assert waking.again(FEWER, but(FEWER, {"session": {"mainKey": "home"}})).verdict == SAME


def test_places_that_would_be_taken_are_counted_and_not_those_that_were() -> None:
    """With a cascade."""
    assert SENT.again(BASE, FEWER, active_children=1).verdict == SAME
    found = SENT.again(BASE, BASE, active_children=4).verdict
    assert refused(found) == ("newly-refused", "active_children")
    assert SENT.changed(is_paused=True).again(BASE, BASE, active_children=4).verdict == SAME


@pytest.mark.parametrize(
    "limit",
    [
        {"maxSpawnDepth": 1},
        {"requireAgentId": True},
        {"allowAgents": []},
    ],
)
def test_what_limits_spawns_limits_no_message(limit: Values) -> None:
    found = SENT.again(BASE, but(BASE, {"agents": {"defaults": {"subagents": limit}}})).verdict
    assert found.rule is None


def test_how_deep_sessions_may_be_is_said_with_the_task_and_not_with_a_later_message() -> None:
    deeper = limits("writer", maxChildrenPerAgent=4, maxSpawnDepth=4)
    assert SENT.again(BASE, deeper).verdict == SAME
    leaf = SENT.again(BASE, limits("writer", maxChildrenPerAgent=4, maxSpawnDepth=1)).verdict
    assert leaf.verdict == "different-plan"
    assert leaf.difference is not None
    assert leaf.difference.field == "/role"


@pytest.mark.parametrize(
    "naming", [{"session": {"mainKey": "home"}}, {"session": {"scope": "global"}}]
)
def test_its_requester_is_on_record_however_sessions_are_called_now(naming: Values) -> None:
    assert SENT.again(BASE, but(BASE, naming)).verdict == SAME


def test_it_is_planned_anew() -> None:
    found = SENT.again(BASE, but(BASE, {"agents": {"defaults": {"subagents": {"model": "a/b"}}}}))
    assert found.verdict.verdict == "different-model"
    gone = SENT.again(BASE, limits("editor", maxChildrenPerAgent=4)).verdict
    assert refused(gone) == ("newly-refused", "agent_unknown")
    assert gone.text is not None
    assert "is not configured any more" in gone.text


def test_but_it_works_where_its_session_began() -> None:
    """However the agent's folder, or the roots, are configured now."""
    own = but(BASE, {"agents": {"list": [{"id": "main"}, {"id": "writer", "workspace": "/srv/w"}]}})
    roots = but(BASE, {"spawnlog": {"workspaceRoots": ["/srv"]}})
    for source in ("agent", "requester"):
        sent = SENT.changed(before_plan={"workspace_source": source, "workspace_dir": "/srv/old"})
        for now in (own, roots):
            assert sent.again(BASE, now).verdict == SAME


def test_its_requester_is_in_a_sandbox_as_it_was_when_it_spawned_the_child() -> None:
    """What is configured for it is read for a spawn, and is with the message from there on."""
    free = setup("main", "writer")
    confined = setup({"id": "main", "sandbox": {"mode": "all"}, "runtime": ISOLATING}, "writer")
    sent = Sent(agent_id="writer")
    assert sent.again(free, confined).verdict == SAME
    assert sent.changed(is_boxed=True).again(confined, free).verdict == SAME


def test_it_goes_by_the_model_that_its_spawn_named_whatever_aliases_stand_for() -> None:
    """What an alias of words stood for then went into the options that the session keeps."""

    def named(stands_for: str) -> Values:
        return but(BASE, {"agents": {"defaults": {"models": {stands_for: {"alias": "our best"}}}}})

    sent = SENT.changed(model="acme/large")
    assert sent.again(named("acme/large"), named("acme/small")).verdict == SAME
    assert SENT.changed(model="Our Best").again(BASE, named("acme/small")).verdict == SAME


def test_no_script_runs_for_it() -> None:
    script = {"id": "facts", "uri": "/scripts/facts", "position": "prepend"}
    run = {"agents": {"defaults": {"subagents": {"contextScripts": {"run": [script]}}}}}
    assert SENT.again(BASE, but(BASE, run)).verdict == SAME


def test_only_hooks_of_ends_are_told_of_it() -> None:
    def told(*names: str) -> Values:
        hooks = {one: {"url": f"http://hooks.example/{one}"} for one in names}
        return but(BASE, {"spawnlog": {"hooks": hooks}})

    assert SENT.again(BASE, told("subagentSpawned", "subagentSpawning")).verdict == SAME
    found = SENT.again(BASE, told("subagentSpawned", "subagentEnded")).verdict
    assert found.verdict == "different-plan"
    assert found.difference is not None
    assert (found.difference.field, found.difference.decided) == ("/hooks", ["subagentEnded"])


def test_its_credentials_are_those_that_were_found_for_it() -> None:
    keys = FoundCredentials(profile_ids=("acme:default",), given=("acme:default",))
    quick = but(BASE, {"agents": {"defaults": {"subagents": {"archiveAfterMinutes": 5}}}})
    found = SENT.changed(credentials=keys).again(BASE, quick)
    assert (found.verdict.verdict, found.verdict.assumed) == ("different-plan", ())
    assert found.planned is not None
    assert found.planned.plan.auth_profiles == ("acme:default",)


def test_a_session_of_an_agent_that_was_never_configured_is_refused_either_way() -> None:
    nobody = SENT.changed(agent_id="nobody")
    assert nobody.again(BASE, setup("writer")).verdict == SAME
