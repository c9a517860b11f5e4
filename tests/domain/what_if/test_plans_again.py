"""What-if for plans of a spawn or a message: model, agent, credentials and folder."""

from typing import Any

import pytest

from domain.plan.credentials import FoundCredentials, MissingCredential
from tests.support.builders.decisions_again import (
    BINDING,
    ISOLATING,
    Case,
    Outcome,
    Sent,
    Spawn,
    Values,
    allowed,
    at_hand,
    below,
    but,
    case,
    differs,
    limits,
    refused,
    rows,
    setup,
    unknown,
)

BASE = setup("writer", "editor", default={"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}})
WRITER = Spawn(agent_id="writer")
NAMED_SMALL = WRITER.changed(model="acme/small")
INHERITING = Spawn(agent_id="main", requester=below(model="acme/large"))
COMMAND: Values = {"type": "command", "command": ["true"]}


def subagents(**values: Any) -> Values:
    """Return a file with these values for all sub-agents."""
    return but(BASE, {"agents": {"defaults": {"subagents": values}}})


def own_list(**values: Any) -> Values:
    """Return an agent list with these values for `writer`."""
    return {"agents": {"list": [{"id": "main"}, {"id": "writer", **values}, {"id": "editor"}]}}


def writer(**values: Any) -> Values:
    """Return a file with these values for the agent `writer`."""
    return but(BASE, own_list(**values))


def priced(**cost: int) -> Values:
    """Return a file with a model at this price."""
    offered = {"models": [{"id": "small", "cost": cost}]}
    return but(BASE, {"models": {"providers": {"acme": offered}}})


def hooks(*names: str) -> Values:
    """Return a file with these hooks."""
    section = {name: {"url": f"http://hooks.example/{name}"} for name in names}
    return but(BASE, {"spawnlog": {"hooks": section}})


def named(alias: str, stands_for: str) -> Values:
    """Return a file with an alias of a model."""
    return but(BASE, {"agents": {"defaults": {"models": {stands_for: {"alias": alias}}}}})


SMALL, HIGH = subagents(model="acme/small"), subagents(thinking="high")
DENYING = but(BASE, {"tools": {"subagents": {"tools": {"allow": ["read"]}}}})
TOLD = hooks("onSubagentEnded", "subagentSpawned", "prepareSubagentSpawn")

# Differences of plans, in both directions.
CHANGES: dict[str, Case] = {
    "inherited model": case(
        INHERITING, BASE, SMALL, differs("model", "/model", "acme/large", "acme/small")
    ),
    "output price": case(
        NAMED_SMALL,
        priced(input=1, output=2),
        priced(input=1, output=3),
        differs("plan", "/prices/output", 2.0, 3.0),
    ),
    "tools": case(WRITER, BASE, DENYING, differs("plan", "/tools/allow", None, ["read"])),
    "hooks": case(
        WRITER, BASE, TOLD, differs("plan", "/hooks", [], ["subagentSpawned", "onSubagentEnded"])
    ),
    "depth": case(
        WRITER, BASE, subagents(maxSpawnDepth=3), differs("context", "/maxSpawnDepth", 2, 3)
    ),
}


@rows(CHANGES)
def test_difference_is_told_both_ways(row: Case) -> None:
    row.check()
    field, before, after = row.expected.difference
    back = row.expected._replace(difference=(field, after, before))
    case(row.request, row.now, row.then, back).check()


# Words that name a model, alone or by an alias.

WORDS = WRITER.changed(model="Our Best")
LARGE, LESS = named("our best", "acme/large"), named("our best", "acme/small")
BY_ALIAS = unknown("the requested model: it may be an alias that means another model now")
DIFFERENT_PLAN = Outcome("different-plan")

MODELS: dict[str, Case] = {
    "asked for before configured": case(NAMED_SMALL, BASE, subagents(model="acme/large")),
    "words are an alias now": case(
        WORDS, BASE, LARGE, differs("model", "/model", None, "acme/large")
    ),
    "words erased": case(
        WORDS,
        BASE,
        LARGE,
        unknown("the requested model: its text was erased"),
        erased=["Our Best"],
    ),
    "words erased, not needed": case(WORDS, BASE, HIGH, DIFFERENT_PLAN, erased=["Our Best"]),
    "alias stands for another": case(WORDS, LARGE, LESS, BY_ALIAS),
    "alias stays": case(WORDS, LARGE, but(LARGE, named("another", "acme/other"))),
}

# Agents, levels of thinking and runtimes that there are or are not.

QUICK = subagents(thinking="low")
ASSUMED = at_hand("writer")

AGENTS: dict[str, Case] = {
    "timeout asked for": case(
        WRITER.changed(options={"run_timeout_seconds": 30.0}), BASE, subagents(runTimeoutSeconds=90)
    ),
    "model before plan": case(
        WRITER,
        BASE,
        subagents(model="acme/small", thinking="low", maxSpawnDepth=4),
        Outcome("different-model"),
    ),
}

# Credentials and folders: the record has those found then, not those found now.

KEYS = WRITER.changed(
    credentials=FoundCredentials(
        profile_ids=("acme:default", "other:default"), given=("acme:default",)
    )
)
UNSET = WRITER.changed(
    credentials=FoundCredentials(
        missing=(MissingCredential("KEY", "KEY is not set", is_unset=True),)
    )
)
CANNOT = "The workspace cannot be made: it is a file."
NO_RECORD = unknown("the workspace: whether the folder could be used is not recorded")
FORGOTTEN = unknown("the workspace: its folder is not recorded")
NO_ROOT = unknown(
    "the workspace: whether the requested folder is below workspaceRoots or the agent's own"
    " folder is not recorded"
)
ROOTS = but(BASE, {"spawnlog": {"workspaceRoots": ["/elsewhere"]}})
ELSEWHERE = writer(workspace="/srv/elsewhere")
INHERITS = Spawn(requester=below(workspace_dir="/srv/work"))
USELESS = WRITER.changed(unusable=CANNOT)
FORGETFUL = USELESS.changed(is_workspace_forgotten=True)
NAMING = Spawn(folder=True)


def slow(values: Values) -> Values:
    """Return the file with another thinking level."""
    return but(values, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})


TAKEN = Outcome("different-plan", assumed=ASSUMED[:1])
FOUND: dict[str, Case] = {
    "credentials under another environment": case(
        KEYS, BASE, slow(writer(runtime={**COMMAND, "env": {"ACME": "a word"}})), TAKEN
    ),
    "useless folder": case(USELESS, BASE, QUICK),
    "forgotten folder": case(FORGETFUL, BASE, QUICK),
    "forgotten folder, another now": case(FORGETFUL, BASE, ELSEWHERE, FORGOTTEN),
    "inherited folder, other roots": case(INHERITS, BASE, ROOTS),
    "useless inherited folder": case(INHERITS.changed(unusable=CANNOT), BASE, ROOTS),
    "named folder, other roots": case(NAMING, BASE, ROOTS, NO_ROOT),
    "useless named folder, other roots": case(
        NAMING.changed(unusable=CANNOT), BASE, ROOTS, NO_RECORD
    ),
    "useless named folder": case(NAMING.changed(unusable=CANNOT), BASE, QUICK),
}


@rows(MODELS | AGENTS | FOUND)
def test_plan(row: Case) -> None:
    row.check()


def test_missing_credentials_may_be_found_by_another_runtime() -> None:
    then, now = (
        limits({"id": "writer", "runtime": item}, allowAgents=["*"])
        for item in ({**COMMAND, "env": {"KEY": "${KEY}"}}, COMMAND)
    )
    case(UNSET, then, then).check()
    assert UNSET.again(then, now).verdict.verdict != "same"


# When a session that stays open is put away.

BOUND = but(BASE, BINDING)
LASTING = WRITER.changed(mode="session", thread=True, origin='{"channel": "chat"}')


@pytest.mark.parametrize("name", ["idleHours", "maxAgeHours"])
def test_hours_of_an_open_session_are_part_of_its_plan(name: str) -> None:
    def hours(count: float) -> Values:
        return but(BOUND, {"session": {"threadBindings": {name: count}}})

    case(LASTING, BOUND, hours(2.5), differs("plan", f"/{name}", None, 2.5)).check()
    case(LASTING, BOUND, hours(0)).check()
    case(WRITER, BOUND, hours(2.5)).check()


@pytest.mark.parametrize("rule", ["attachments", "shared_context"])
def test_step_refuses_again(rule: str) -> None:
    request = WRITER.changed(refused_by=rule)
    case(request, BASE, slow(BASE)).check()


@pytest.mark.parametrize("rule", ["stopped", "erased", "batch"])
def test_refusal_by_others_stays(rule: str) -> None:
    case(WRITER.changed(refused_by=rule), BASE, subagents(thinking="a sage")).check()


# Messages: a session continues under a new plan, in its recorded folder.

FOUR = limits("writer", maxChildrenPerAgent=4)
TWO = limits("writer", maxChildrenPerAgent=2)
SENT = Sent(agent_id="writer", active_children=2)
WAKING = SENT.changed(is_paused=True)
CONFINED = setup({"id": "main", "sandbox": {"mode": "all"}, "runtime": ISOLATING}, "writer")
FREE = setup("main", "writer")


MESSAGES: dict[str, Case] = {
    "a place now": case(SENT, TWO, FOUR, allowed("active_children", ASSUMED[0])),
    "yielded, no place now": case(WAKING, FOUR, TWO),
    "agent is gone": case(
        SENT,
        FOUR,
        limits("editor", maxChildrenPerAgent=4),
        refused("agent_unknown", "is no longer configured"),
    ),
    "requester confined then": case(Sent(agent_id="writer", is_boxed=True), CONFINED, FREE),
}


@rows(MESSAGES)
def test_message(row: Case) -> None:
    row.check()
