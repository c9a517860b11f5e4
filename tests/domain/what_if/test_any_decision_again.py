"""Any decision under any configuration: the replay equals the decision that would be recorded."""

import base64
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from domain.configuration.configuration import Configuration
from domain.run.events import SessionCreated
from domain.what_if.record import RecordedDecision
from domain.what_if.unaffected import differ_in_limits_alone, is_admitted_alike
from domain.what_if.verdict import SAME, not_replayable
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
from tests.support.models.random_decisions import ANY_RULES, MESSAGES, SPAWNS, two_rules
from tests.support.tiers import examples

# Random spawns and configurations: the what-if under another configuration equals the decision
# that would have been recorded there, and under its own configuration nothing changes.


def really(then: RecordedDecision, now: RecordedDecision) -> tuple[str, str | None]:
    """Return the verdict from the decisions recorded under both, and the rule that differs."""
    before, after = then.refused, now.refused
    if before is not None and after is not None:
        return "same", after.rule if after.rule != before.rule else None
    if after is not None:
        return "newly-refused", after.rule
    if before is not None:
        return "newly-allowed", before.rule
    assert then.created is not None
    assert now.created is not None
    plans = then.created.plan, now.created.plan
    if plans[0].model_reference != plans[1].model_reference:
        return "different-model", None
    said_of = {"model_source": "", "thinking_source": None, "run_timeout_source": "defaults"}
    ways = [
        (item.role, item.control_scope, item.hooks, item.plan.changed(said_of))
        for item in (then.created, now.created)
    ]
    if ways[0] != ways[1]:
        return "different-plan", None
    result = [
        # Of the depth limits, a message only depends on whether children are permitted.
        (
            isinstance(item, SessionCreated) and item.max_depth,
            [part for part in item.ingredients if part.position == "preamble"],
        )
        for item in (then.created, now.created)
    ]
    if result[0] != result[1]:
        return "different-context", None
    sent = [
        (item.created and item.created.direct_delivery, item.announced and item.announced.webhooks)
        for item in (then, now)
    ]
    return "same" if sent[0] == sent[1] else "different-announcement", None


def default(rules: Rules) -> str:
    """Return the default agent."""
    marked = rules.marked
    return marked if marked is not None and marked in rules.agents else next(iter(rules.agents))


def folders(rules: Rules) -> object:
    """Return the configuration that decides which requested folder may be used."""
    own = {name: word.workspace for name, word in rules.agents.items()}
    return rules.roots, rules.defaults.workspace, own


def is_known(then: Rules, now: Rules, missing: tuple[str, ...]) -> bool:
    """Return True if facts reported as missing are really not on record."""
    changed = {
        "the requester: its key": (then.main_key, default(then)) != (now.main_key, default(now)),
        "the workspace:": folders(then) != folders(now),
        "the model that was requested:": then.aliases != now.aliases,
    }
    return all(
        any(text.startswith(word) and is_so for word, is_so in changed.items()) for text in missing
    )


@examples(200)
@given(spawn=SPAWNS | MESSAGES, rules=ANY_RULES)
def test_decision_under_its_own_configuration_is_same(spawn: Spawn, rules: Rules) -> None:
    values = rules.configuration()
    again = spawn.again(values, values)
    assert again.verdict.verdict == "same", again.verdict
    assert (again.verdict.difference, again.verdict.assumed) == (None, ())


@examples(200)
@given(spawn=SPAWNS | MESSAGES, rules=two_rules())
def test_decision_under_another_is_what_would_be_recorded(
    spawn: Spawn, rules: tuple[Rules, Rules]
) -> None:
    then, now = rules
    values = then.configuration(), now.configuration()
    found = spawn.again(*values).verdict
    event(found.verdict)
    if found.verdict == "not-replayable":
        assert is_known(then, now, found.missing), found
        return
    expected, rule = really(spawn.record(values[0]), spawn.record(values[1]))
    assert (found.verdict, found.rule) == (expected, rule), found


# Settings for all agents, and receivers of announcements.

HERE, THERE = '{"channel": "chat", "to": "room:1"}', '{"channel": "mail", "to": "list:1"}'
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
HOOKS = ("subagentSpawning", "subagentSpawned", "subagentEnded", "onSubagentEnded")


def webhook(name: str, **values: Any) -> Values:
    """Return a webhook."""
    return {"id": name, "url": f"http://hooks.example/{name}", "secrets": [SECRET], **values}


WEBHOOKS = (
    webhook("all"),
    webhook("writer", agents=["writer"]),
    webhook("chat", origin={"channel": "chat"}),
    webhook("mail", origin={"channel": "m*"}),
)
COMMAND: Values = {"type": "command", "command": ["true"]}


@st.composite
def settings_of_all(draw: st.DrawFn) -> Values:
    """Draw a file."""
    hooks = draw(st.sets(st.sampled_from(HOOKS), max_size=2))
    runtime = {**COMMAND, "deliversToOrigin": draw(st.booleans())}
    return but(
        limits(
            "writer",
            allowAgents=["*"],
            contextPreambleMaxChars=draw(st.sampled_from([0, 40, 41, 4000])),
            archiveAfterMinutes=draw(st.sampled_from([60, 60, 5])),
        ),
        {
            "agents": {"defaults": {"runtime": runtime}},
            "session": {"threadBindings": {"idleHours": draw(st.sampled_from([None, None, 2]))}},
            "channels": {
                "chat": {"threadBindings": {"enabled": draw(st.sampled_from([True] * 5 + [False]))}}
            },
            "spawnlog": {
                "hooks": {hook: {"url": f"http://hooks.example/{hook}"} for hook in hooks},
                "announce": {"webhooks": [webhook for webhook in WEBHOOKS if draw(st.booleans())]},
            },
        },
    )


ORIGINS = st.sampled_from([None, HERE, THERE, '{"to": "room:1"}', "no address"])


@st.composite
def told(draw: st.DrawFn) -> Spawn:
    """Draw a spawn or a message, perhaps with announcements."""
    kind = draw(st.sampled_from([Spawn, Sent]))
    depth = draw(st.sampled_from([0, 0, 1]))
    return kind(
        agent_id=draw(st.sampled_from([None, "writer"])),
        requester=below() if depth else {},
        mode="session" if (thread := draw(st.booleans())) else "run",
        thread=thread,
        thread_origin=draw(ORIGINS) if thread else None,
        origin=draw(ORIGINS),
        preamble=draw(st.none() | st.just("so many words " * 20)) if kind is Spawn else None,
        announced=draw(st.booleans()),
        told_to=draw(st.sampled_from([None, None, THERE])),
    )


@examples(200)
@given(spawn=told(), then=settings_of_all(), now=settings_of_all())
def test_announced_decision_is_what_would_be_recorded(
    spawn: Spawn, then: Values, now: Values
) -> None:
    found = spawn.again(then, now).verdict
    event(found.verdict)
    if found.verdict == "not-replayable":
        assert spawn.thread
        (missing,) = found.missing
        assert missing.endswith("changed (hooks or threadBindings)")
        return
    assert (found.verdict, found.rule) == really(spawn.record(then), spawn.record(now)), found


# Given two configurations, which decisions are known to be the same without a look at them.


def is_unaffected(spawn: Spawn, then: Values, now: Values, *announcing: Values) -> bool:
    """Return True if the fast path decides it. The other configurations were active in between."""
    others = [Configuration.model_validate(item) for item in (then, *announcing)]
    change = change_of(then, now)
    alone = differ_in_limits_alone(change, others)
    return alone and is_admitted_alike(change, spawn.record(then).request)


def require_same(spawn: Spawn, then: Values, now: Values) -> None:
    """Assert that a full replay agrees with the fast path, if that decides it."""
    known = is_unaffected(spawn, then, now)
    event(f"unaffected: {known}")
    if known:
        assert spawn.again(then, now).verdict == SAME


@examples(300)
@given(spawn=SPAWNS | MESSAGES, rules=two_rules())
def test_unaffected_decision_is_same_when_decided(spawn: Spawn, rules: tuple[Rules, Rules]) -> None:
    then, now = rules
    require_same(spawn, then.configuration(), now.configuration())


# The same with context scripts, and with agents whose id differs from their key.

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
    """Return a file with three agents: one possibly in a sandbox, two with thinking levels."""
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
@given(spawn=st.sampled_from(ASKED), then=SETTINGS, now=SETTINGS)
def test_unaffected_considers_every_agent(spawn: Spawn, then: Values, now: Values) -> None:
    require_same(spawn, then, now)


@examples(200)
@given(then=SETTINGS, now=SETTINGS, how=st.sampled_from(["as it was", "sooner", "gone"]))
def test_unaffected_considers_an_overriding_script(then: Values, now: Values, how: str) -> None:
    changed = {"as it was": [ROUTER], "sooner": [{**ROUTER, "priority": 9}], "gone": []}
    before, after = (
        but(values, {"agents": {"defaults": {"subagents": {"contextScripts": {"run": scripts}}}}})
        for values, scripts in ((then, [ROUTER]), (now, changed[how]))
    )
    require_same(ROUTED, before, after)


# The fast path, which most decisions take.

BASE = setting()


def test_limit_that_is_not_reached_either_way_affects_nobody() -> None:
    wide, narrow = setting(maxChildrenPerAgent=9), setting(maxChildrenPerAgent=1)
    assert is_unaffected(Spawn(), wide, narrow)
    assert not is_unaffected(Spawn(active_children=1), wide, narrow)
    assert is_unaffected(Sent(agent_id="writer"), wide, narrow)
    assert not is_unaffected(Sent(agent_id="writer", active_children=1), wide, narrow)


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
def test_section_for_all_affects_each_decision(change: Values) -> None:
    assert not is_unaffected(Spawn(), BASE, but(BASE, change))


def test_script_given_the_configuration_depends_on_limits() -> None:
    telling = {"id": "router", "uri": "/scripts/router", "argMap": {"all": "cfg"}}
    then, now = (setting(scripts=(telling,), maxChildrenPerAgent=count) for count in (5, 9))
    assert is_unaffected(Spawn(), then, then)
    assert not is_unaffected(Spawn(), then, now)


def test_spawn_in_preparation_has_nothing_to_compare_with() -> None:
    preparing = Spawn(is_ready=False)
    assert preparing.again(BASE, BASE, is_unaffected=True).verdict == SAME
    slow = preparing.again(BASE, setting(thinking="high")).verdict
    assert slow == not_replayable(
        "it is still being prepared, so there is no decision to compare with"
    )


def test_refusal_after_the_range_cannot_be_compared() -> None:
    """A range may end between the refusal and its request, which are in one append."""
    crowded = Spawn(active_children=5)
    record = crowded.record(BASE).changed({"refused": None})
    found = crowded.again(BASE, setting(maxChildrenPerAgent=4), record=record).verdict
    assert found.verdict == "not-replayable"
    sent = Sent(agent_id="writer", active_children=5)
    record = sent.record(BASE).changed({"refused": None})
    again = sent.again(BASE, setting(maxChildrenPerAgent=4), record=record).verdict
    assert again.verdict == "not-replayable"
