"""Given two configurations, which decisions are known to be the same without a look at them."""

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from domain.configuration.configuration import Configuration
from domain.run.facts import BatchFacts
from domain.what_if.unaffected import differ_in_limits_alone, is_admitted_alike
from domain.what_if.verdict import SAME
from tests.support.builders.configured_spawns import Rules
from tests.support.builders.decisions_again import (
    Sent,
    Spawn,
    Values,
    below,
    but,
    change_of,
    limits,
)
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import run_id
from tests.support.models.random_decisions import MESSAGES, SPAWNS, two_rules
from tests.support.tiers import examples


def is_unaffected(asked: Spawn, then: Values, now: Values, *announcing: Values) -> bool:
    """Return True if nobody has to look at it. Between the two there were these."""
    others = [Configuration.model_validate(one) for one in (then, *announcing)]
    change = change_of(then, now)
    alone = differ_in_limits_alone(change, others)
    return alone and is_admitted_alike(change, asked.record(then).request)


def must_be_the_same(asked: Spawn, then: Values, now: Values) -> None:
    """To whoever looks at it, if nobody has to."""
    known = is_unaffected(asked, then, now)
    event(f"unaffected: {known}")
    if known:
        assert asked.again(then, now).verdict == SAME


@examples(300)
@given(asked=SPAWNS | MESSAGES, rules=two_rules())
def test_whatever_is_unaffected_is_the_same_to_who_looks_at_it(
    asked: Spawn, rules: tuple[Rules, Rules]
) -> None:
    then, now = rules
    must_be_the_same(asked, then.configuration(), now.configuration())


# The same where scripts run and agents are called otherwise than their keys.

ROUTER: Values = {"id": "router", "uri": "/scripts/router", "agentIdOverrideKey": "agent"}
ROUTED = Spawn(
    receipts=(receipt("router", "empty", exit_code=0, error=None, candidate="editor"),),
    candidates=(candidate("router", "editor"),),
    override_to="editor",
)
ASKED = [
    Spawn(),
    Spawn(agent_id="writer"),
    Spawn(requester={"agent_id": "writer"}, agent_id="writer"),
    Spawn(requester=below(session_key="agent:editor:subagent:7", agent_id="writer")),
    Sent(requester={"agent_id": "writer"}, agent_id="writer", active_children=2),
]


def setting(
    main: str = "off",
    writer: str = "low",
    editor: str = "low",
    scripts: tuple[Values, ...] = (),
    **subagents: Any,
) -> Values:
    """Three agents: one that may be in a sandbox, two of which each has a level of thinking."""
    return limits(
        {"id": "main", "sandbox": {"mode": main}},
        {"id": "writer", "subagents": {"thinking": writer}},
        {"id": "editor", "subagents": {"thinking": editor}},
        contextScripts={"run": list(scripts)},
        **{"allowAgents": ["*"], **subagents},
    )


LEVELS = st.sampled_from(["low", "low", "high"])
SETTINGS = st.builds(
    setting,
    main=st.sampled_from(["off", "off", "all", "non-main"]),
    writer=LEVELS,
    editor=LEVELS,
    allowAgents=st.sampled_from([["*"], ["*"], ["writer"]]),
    maxChildrenPerAgent=st.sampled_from([2, 5, 5]),
)


@examples(200)
@given(asked=st.sampled_from(ASKED), then=SETTINGS, now=SETTINGS)
def test_nor_is_any_agent_forgotten_that_has_a_say(asked: Spawn, then: Values, now: Values) -> None:
    must_be_the_same(asked, then, now)


@examples(200)
@given(then=SETTINGS, now=SETTINGS, how=st.sampled_from(["as it was", "sooner", "gone"]))
def test_nor_one_that_a_script_named(then: Values, now: Values, how: str) -> None:
    changed = {"as it was": [ROUTER], "sooner": [{**ROUTER, "priority": 9}], "gone": []}
    before, after = (
        but(one, {"agents": {"defaults": {"subagents": {"contextScripts": {"run": scripts}}}}})
        for one, scripts in ((then, [ROUTER]), (now, changed[how]))
    )
    must_be_the_same(ROUTED, before, after)


# And what is known without a look, which is most of it.

BASE = setting()


def test_a_limit_that_is_not_reached_either_way_affects_nobody() -> None:
    wide, narrow = setting(maxChildrenPerAgent=9), setting(maxChildrenPerAgent=1)
    assert is_unaffected(Spawn(), wide, narrow)
    assert not is_unaffected(Spawn(active_children=1), wide, narrow)
    assert is_unaffected(Sent(agent_id="writer"), wide, narrow)
    assert not is_unaffected(Sent(agent_id="writer", active_children=1), wide, narrow)


def test_what_is_refused_by_the_same_rule_is_refused_alike() -> None:
    crowded = Spawn(active_children=9)
    assert is_unaffected(crowded, setting(maxChildrenPerAgent=9), setting(maxChildrenPerAgent=1))
    assert not is_unaffected(
        crowded, setting(maxChildrenPerAgent=9), setting(maxChildrenPerAgent=10)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"session": {"mainKey": "home"}},
        {"tools": {"subagents": {"tools": {"deny": ["exec"]}}}},
        {"channels": {"chat": {"threadBindings": {"enabled": False}}}},
        {"spawnlog": {"hooks": {"subagentEnded": {"url": "http://hooks.example/"}}}},
        {"spawnlog": {"workspaceRoots": ["/srv"]}},
        {"models": {"providers": {"acme": {"models": [{"id": "small"}]}}}},
        {"agents": {"defaults": {"models": {"acme/small": {"alias": "small"}}}}},
        {"agents": {"list": [*BASE["agents"]["list"], {"id": "new"}]}},
        {"agents": {"defaults": {"subagents": {"contextScripts": {"run": [ROUTER]}}}}},
    ],
)
def test_what_is_said_for_all_is_looked_at_for_each(change: Values) -> None:
    assert not is_unaffected(Spawn(), BASE, but(BASE, change))


@pytest.mark.parametrize("told_to", ["listed agents", "others"])
def test_script_that_is_told_the_configuration_is_told_its_limits(told_to: str) -> None:
    telling = {"id": "router", "uri": "/scripts/router", "argMap": {"all": "cfg"}}
    ignoring = {"contextScripts": {"ignore": ["router"]}} if told_to == "others" else {}
    listed = [{**one, "subagents": ignoring} for one in BASE["agents"]["list"]]
    then, now = (
        but(setting(scripts=(telling,), maxChildrenPerAgent=count), {"agents": {"list": listed}})
        for count in (5, 9)
    )
    assert is_unaffected(Spawn(), then, then)
    assert not is_unaffected(Spawn(), then, now)


def test_announcements_are_compared_with_all_that_were_in_force_since() -> None:
    more = but(BASE, {"spawnlog": {"announce": {"attemptsMax": 3}}})
    assert is_unaffected(Spawn(), BASE, BASE)
    assert not is_unaffected(Spawn(), BASE, BASE, more)


def test_what_is_prepared_still_is_the_same_where_nothing_differs_and_unknown_else() -> None:
    """What comes of it, nobody knows; but it would be the same."""
    preparing = Spawn(is_ready=False)
    assert preparing.again(BASE, BASE, is_unaffected=True).verdict == SAME
    slow = preparing.again(BASE, setting(thinking="high")).verdict
    assert slow.verdict == "not-replayable"
    assert slow.missing == ("it is still being prepared, so there is nothing to compare with",)


def test_what_is_prepared_still_is_refused_by_a_limit_of_now() -> None:
    found = Spawn(is_ready=False, active_children=3).again(BASE, setting(maxChildrenPerAgent=3))
    assert (found.verdict.verdict, found.verdict.rule) == ("newly-refused", "active_children")


def test_a_refusal_that_lies_behind_the_range_cannot_be_compared() -> None:
    """It stands in one append with its request, and a range may end between them."""
    crowded = Spawn(active_children=5)
    record = crowded.record(BASE).changed({"refused": None})
    found = crowded.again(BASE, setting(maxChildrenPerAgent=4), record=record).verdict
    assert found.verdict == "not-replayable"
    sent = Sent(agent_id="writer", active_children=5)
    record = sent.record(BASE).changed({"refused": None})
    again = sent.again(BASE, setting(maxChildrenPerAgent=4), record=record).verdict
    assert again.verdict == "not-replayable"


def test_a_task_of_a_batch_is_compared_as_any_other() -> None:
    batch = BatchFacts(batch_id=run_id(5), index=0, run_ids=(run_id(1), run_id(2)))
    assert is_unaffected(Spawn(batch=batch), BASE, BASE)
    assert not is_unaffected(Spawn(batch=batch), BASE, setting(maxChildrenPerAgent=1))
