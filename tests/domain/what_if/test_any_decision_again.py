"""However a spawn is asked for and whatever is configured: decided again, it is what would have
been recorded under the other configuration, and under its own it is the same."""

import base64
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from domain.run.events import SessionCreated
from domain.what_if.record import RecordedDecision
from tests.support.builders.configured_spawns import Rules
from tests.support.builders.decisions_again import Sent, Spawn, Values, below, but, limits
from tests.support.models.random_decisions import ANY_RULES, MESSAGES, SPAWNS, two_rules
from tests.support.tiers import examples


def really(then: RecordedDecision, now: RecordedDecision) -> tuple[str, str | None]:
    """The verdict, by looking at what was recorded under both; the rule that came or went."""
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
        (one.role, one.control_scope, one.hooks, one.plan.changed(said_of))
        for one in (then.created, now.created)
    ]
    if ways[0] != ways[1]:
        return "different-plan", None
    told = [
        # What a message is told of depths is whether there may be children, and so its role.
        (
            isinstance(one, SessionCreated) and one.max_depth,
            [part for part in one.ingredients if part.position == "preamble"],
        )
        for one in (then.created, now.created)
    ]
    if told[0] != told[1]:
        return "different-context", None
    sent = [
        (one.created and one.created.direct_delivery, one.announced and one.announced.webhooks)
        for one in (then, now)
    ]
    return "same" if sent[0] == sent[1] else "different-announcement", None


def default(rules: Rules) -> str:
    """The default agent."""
    marked = rules.marked
    return marked if marked is not None and marked in rules.agents else next(iter(rules.agents))


def folders(rules: Rules) -> object:
    """Return the configuration that says which requested folder may be used."""
    own = {name: word.workspace for name, word in rules.agents.items()}
    return rules.roots, rules.defaults.workspace, own


def is_known(then: Rules, now: Rules, missing: tuple[str, ...]) -> bool:
    """Whether what is said to be missing is not on record indeed."""
    changed = {
        "the requester: its key": (then.main_key, default(then)) != (now.main_key, default(now)),
        "the workspace:": folders(then) != folders(now),
        "the model that was requested:": then.aliases != now.aliases,
    }
    return all(
        any(one.startswith(word) and is_so for word, is_so in changed.items()) for one in missing
    )


@examples(200)
@given(asked=SPAWNS | MESSAGES, rules=ANY_RULES)
def test_under_its_own_configuration_a_decision_is_the_same(asked: Spawn, rules: Rules) -> None:
    values = rules.configuration()
    again = asked.again(values, values)
    assert again.verdict.verdict == "same", again.verdict
    assert (again.verdict.difference, again.verdict.assumed) == (None, ())


@examples(200)
@given(asked=SPAWNS | MESSAGES, rules=two_rules())
def test_under_another_it_is_what_would_have_been_recorded(
    asked: Spawn, rules: tuple[Rules, Rules]
) -> None:
    then, now = rules
    values = then.configuration(), now.configuration()
    found = asked.again(*values).verdict
    event(found.verdict)
    if found.verdict == "not-replayable":
        assert is_known(then, now, found.missing), found
        return
    expected, rule = really(asked.record(values[0]), asked.record(values[1]))
    assert (found.verdict, found.rule) == (expected, rule), found


# What is said for all agents, and whoever may be told of a run.

HERE, THERE = '{"channel": "chat", "to": "room:1"}', '{"channel": "mail", "to": "list:1"}'
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
HOOKS = ("subagentSpawning", "subagentSpawned", "subagentEnded", "onSubagentEnded")


def webhook(name: str, **values: Any) -> Values:
    """Somebody whom announcements are sent."""
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
    """A file."""
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
                "hooks": {one: {"url": f"http://hooks.example/{one}"} for one in hooks},
                "announce": {"webhooks": [one for one in WEBHOOKS if draw(st.booleans())]},
            },
        },
    )


ORIGINS = st.sampled_from([None, HERE, THERE, '{"to": "room:1"}', "no address"])


@st.composite
def told(draw: st.DrawFn) -> Spawn:
    """A spawn or a message, of which somebody may be told."""
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
@given(asked=told(), then=settings_of_all(), now=settings_of_all())
def test_and_so_it_is_with_whoever_is_told_of_it(asked: Spawn, then: Values, now: Values) -> None:
    found = asked.again(then, now).verdict
    event(found.verdict)
    if found.verdict == "not-replayable":
        assert asked.thread
        (missing,) = found.missing
        assert missing.endswith("changed (hooks or threadBindings)")
        return
    assert (found.verdict, found.rule) == really(asked.record(then), asked.record(now)), found
