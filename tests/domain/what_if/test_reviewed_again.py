"""What-if where a review found that it said `same` of what would have been otherwise."""

import pytest

from domain.configuration.configuration import Configuration
from domain.plan.credentials import FoundCredentials, MissingCredential
from domain.what_if.unaffected import differ_in_limits_alone, is_admitted_alike
from domain.what_if.verdict import SAME
from tests.support.builders.decisions_again import (
    BINDING,
    Spawn,
    Values,
    but,
    change_of,
    limits,
    setup,
)
from tests.support.builders.script_receipts import candidate, receipt

BASE = limits("writer", "editor", allowAgents=["*"])
HERE = '{"channel": "chat", "to": "room:1"}'
THERE = '{"channel": "mail", "to": "list:1"}'
HOOK = {"url": "http://hooks.example/a"}


def hooks(**named: Values) -> Values:
    """A file with these hooks."""
    return but(BASE, {"spawnlog": {"hooks": named}})


def is_unaffected(asked: Spawn, then: Values, now: Values) -> bool:
    """Whether nobody has to look at it."""
    change = change_of(then, now)
    alone = differ_in_limits_alone(change, [change.then.configuration])
    return alone and is_admitted_alike(change, asked.record(then).request)


# Hooks that are asked, beside the one that binds threads.


def test_an_engine_that_prepares_now_may_refuse_and_nobody_knows() -> None:
    found = Spawn().again(hooks(), hooks(prepareSubagentSpawn=HOOK)).verdict
    assert found.verdict == "not-replayable", found


def test_an_engine_at_another_address_may_say_something_else() -> None:
    elsewhere = {"url": "http://elsewhere.example/"}
    found = (
        Spawn()
        .again(hooks(prepareSubagentSpawn=HOOK), hooks(prepareSubagentSpawn=elsewhere))
        .verdict
    )
    assert found.verdict == "not-replayable", found


def test_who_is_asked_now_where_a_result_goes_may_name_another_place() -> None:
    told = Spawn(origin=HERE, announced=True)
    found = told.again(hooks(), hooks(subagentDeliveryTarget=HOOK)).verdict
    assert found != SAME, found


def test_a_result_goes_to_its_requester_where_nobody_is_asked_any_more() -> None:
    told = Spawn(origin=HERE, announced=True, told_to=THERE)
    found = told.again(hooks(subagentDeliveryTarget=HOOK), hooks()).verdict
    assert found.verdict == "different-announcement", found


def test_what_would_be_allowed_now_is_so_if_the_engine_refuses_nothing() -> None:
    crowded, more = Spawn(active_children=5), hooks(prepareSubagentSpawn=HOOK)
    wide = but(more, {"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 9}}}})
    found = crowded.again(more, wide).verdict
    assert found.verdict == "newly-allowed"
    assert "hook prepareSubagentSpawn refuses nothing" in found.assumed


# A folder that a request names may lie below its agent's own.


def test_a_named_folder_may_lie_below_the_agents_own_which_is_another_one_now() -> None:
    """`ConfiguredWorkspaces` takes the agent's own folder for a root, beside workspaceRoots."""
    named = Spawn(folder=True)
    then = setup({"id": "main", "workspace": "/srv"})
    found = named.again(then, setup({"id": "main", "workspace": "/elsewhere"})).verdict
    assert found.verdict == "not-replayable", found


def test_a_named_folder_that_was_refused_may_lie_below_the_agents_own_of_now() -> None:
    named = Spawn(folder=True, unusable="not below a configured root")
    found = named.again(setup("main"), setup({"id": "main", "workspace": "/srv"})).verdict
    assert found.verdict == "not-replayable", found


# Values that Python takes for equal, and a reader of the file does not.

OFF = {"channels": {"chat": {"threadBindings": {"spawnSessions": False}}}}
ZERO = {"channels": {"chat": {"threadBindings": {"spawnSessions": 0}}}}
TWICE = {"channels": {"Chat": {"threadBindings": {"enabled": False}}, "chat": {}}}
REVERSED = {"channels": {"chat": {}, "Chat": {"threadBindings": {"enabled": False}}}}


@pytest.mark.parametrize(("before", "after"), [(OFF, ZERO), (TWICE, REVERSED)])
def test_sections_are_equal_only_when_they_are_read_alike(before: Values, after: Values) -> None:
    then, now = (but(but(BASE, BINDING), one) for one in (before, after))
    policies = [Configuration.model_validate(one).threads_of("chat", None) for one in (then, now)]
    assert policies[0] != policies[1]
    bound = Spawn(mode="session", thread=True, origin=HERE)
    assert bound.again(then, now).verdict.verdict != "same"
    assert not is_unaffected(bound, then, now)


TELLING: Values = {"id": "router", "uri": "/scripts/router", "argMap": {"all": "cfg"}}


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (0, False), (1, 1.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
)
def test_a_script_is_told_the_configuration_as_it_is_printed(before: object, after: object) -> None:
    scripts = {"agents": {"defaults": {"subagents": {"contextScripts": {"run": [TELLING]}}}}}
    then, now = (but(BASE, {**scripts, "other": {"x": x}}) for x in (before, after))
    assert not change_of(then, now).agent("main").scripts.is_nothing


# Whom a script named and who had no credentials then.

ROUTER: Values = {"id": "router", "uri": "/scripts/router", "agentIdOverrideKey": "agent"}
PASSED_OVER = Spawn(
    receipts=(receipt("router", "empty", exit_code=0, error=None, candidate="editor"),),
    candidates=(candidate("router", "editor", "credentials_missing"),),
)


def test_who_had_no_credentials_may_have_some_under_another_runtime() -> None:
    scripts = {"contextScripts": {"run": [ROUTER]}, "allowAgents": ["*"]}
    command = {"type": "command", "command": ["true"]}
    then = limits({"id": "editor", "runtime": command}, **scripts)
    now = limits({"id": "editor"}, **scripts)
    verdict = PASSED_OVER.again(then, now).verdict
    assert verdict != SAME
    assert not is_unaffected(PASSED_OVER, then, now)


# Credentials are found by the runtime and the folders of an agent.

UNSET = FoundCredentials(missing=(MissingCredential("KEY", "KEY is not set", is_unset=True),))
NEEDING = {"type": "command", "command": ["true"], "env": {"KEY": "${KEY}"}}
NEEDING_NOTHING = {"type": "command", "command": ["true"]}


@pytest.mark.parametrize(
    "now",
    [{"runtime": NEEDING_NOTHING}, {"runtime": NEEDING, "agentDir": "/elsewhere"}],
)
def test_a_refusal_for_want_of_credentials_may_be_none_under_another_runtime(now: Values) -> None:
    asked = Spawn(agent_id="writer", credentials=UNSET)
    then = limits({"id": "writer", "runtime": NEEDING}, allowAgents=["*"])
    assert asked.again(then, then).verdict == SAME
    found = asked.again(then, limits({"id": "writer", **now}, allowAgents=["*"])).verdict
    assert found != SAME, found


def test_what_is_assumed_of_other_credentials_is_said_of_what_is_the_same_too() -> None:
    given = FoundCredentials(("openai:default",), ("openai:default",))
    asked = Spawn(agent_id="writer", credentials=given)
    then = limits({"id": "writer", "runtime": NEEDING_NOTHING}, allowAgents=["*"])
    taken = {**NEEDING_NOTHING, "env": {"OPENAI_API_KEY": "${OTHER}"}}
    found = asked.again(then, limits({"id": "writer", "runtime": taken}, allowAgents=["*"])).verdict
    assert found.verdict == "not-replayable" or found.assumed, found
