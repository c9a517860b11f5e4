"""A child is planned again, for a spawn or a message: its model, agent, credentials and folder."""

from typing import Any

import pytest

from domain.plan.credentials import FoundCredentials, MissingCredential
from domain.run.facts import AttachmentsRequest
from tests.support.builders.decisions_again import (
    AS_BEFORE,
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
    still_refused,
    unknown,
)

BASE = setup("writer", "editor", default={"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}})
WRITER = Spawn(agent_id="writer")
NAMED_SMALL = WRITER.changed(model="acme/small")
INHERITING = Spawn(agent_id="main", requester=below(model="acme/large"))
COMMAND: Values = {"type": "command", "command": ["true"]}


def subagents(**values: Any) -> Values:
    """With this for all sub-agents."""
    return but(BASE, {"agents": {"defaults": {"subagents": values}}})


def own_list(**values: Any) -> Values:
    """What the agent `writer` says itself."""
    return {"agents": {"list": [{"id": "main"}, {"id": "writer", **values}, {"id": "editor"}]}}


def writer(**values: Any) -> Values:
    """With this for the agent `writer`."""
    return but(BASE, own_list(**values))


def serving(*models: str, **values: Any) -> Values:
    """With a runtime of the agent `writer` that serves these."""
    return writer(runtime={"type": "scripted", "models": list(models)}, **values)


def priced(**cost: int) -> Values:
    """With a model that costs so much."""
    offered = {"models": [{"id": "small", "cost": cost}]}
    return but(BASE, {"models": {"providers": {"acme": offered}}})


def hooks(*names: str) -> Values:
    """With these hooks."""
    section = {one: {"url": f"http://hooks.example/{one}"} for one in names}
    return but(BASE, {"spawnlog": {"hooks": section}})


def named(alias: str, stands_for: str) -> Values:
    """With an alias of a model."""
    return but(BASE, {"agents": {"defaults": {"models": {stands_for: {"alias": alias}}}}})


SMALL, HIGH = subagents(model="acme/small"), subagents(thinking="high")
DENYING = but(BASE, {"tools": {"subagents": {"tools": {"allow": ["read"]}}}})
TOLD = hooks("onSubagentEnded", "subagentSpawned", "prepareSubagentSpawn")
FALLING_BACK = {"model": {"primary": "acme/large", "fallbacks": ["acme/small"]}}

# What differs, as it was and as it is: looked at in both directions.
CHANGES: dict[str, Case] = {
    "model": case(WRITER, BASE, SMALL, differs("model", "/model", None, "acme/small")),
    "model of the agent": case(
        WRITER,
        SMALL,
        but(SMALL, own_list(subagents={"model": "acme/large"})),
        differs("model", "/model", "acme/small", "acme/large"),
    ),
    "model that is not served": case(
        WRITER.changed(model="acme/large"),
        serving("acme/large"),
        serving("acme/small"),
        differs("model", "/model", "acme/large", None),
    ),
    "inherited model": case(
        INHERITING, BASE, SMALL, differs("model", "/model", "acme/large", "acme/small")
    ),
    "thinking": case(WRITER, BASE, HIGH, differs("plan", "/thinking", None, "high")),
    "thinking of the agent": case(
        WRITER,
        HIGH,
        but(HIGH, own_list(subagents={"thinking": "low"})),
        differs("plan", "/thinking", "high", "low"),
    ),
    "timeout": case(
        WRITER, BASE, subagents(runTimeoutSeconds=90), differs("plan", "/runTimeoutSeconds", 0, 90)
    ),
    "archive": case(
        WRITER,
        BASE,
        subagents(archiveAfterMinutes=5),
        differs("plan", "/archiveAfterMinutes", 60, 5),
    ),
    "prices": case(
        NAMED_SMALL, BASE, priced(input=1, output=2), differs("plan", "/prices/input", None, 1.0)
    ),
    "output price": case(
        NAMED_SMALL,
        priced(input=1, output=2),
        priced(input=1, output=3),
        differs("plan", "/prices/output", 2.0, 3.0),
    ),
    "tools": case(WRITER, BASE, DENYING, differs("plan", "/tools/allow", None, ["read"])),
    "runtime": case(
        WRITER, BASE, writer(runtime=COMMAND), differs("plan", "/runtime", "scripted", "command")
    ),
    "role": case(
        WRITER, BASE, subagents(maxSpawnDepth=1), differs("plan", "/role", "orchestrator", "leaf")
    ),
    "hooks": case(
        WRITER, BASE, TOLD, differs("plan", "/hooks", [], ["subagentSpawned", "onSubagentEnded"])
    ),
    "folder": case(
        WRITER, BASE, writer(workspace="/srv/x"), differs("plan", "/workspaceDir", None, "/srv/x")
    ),
    "depth": case(
        WRITER, BASE, subagents(maxSpawnDepth=3), differs("context", "/maxSpawnDepth", 2, 3)
    ),
    "model applied": case(
        WRITER,
        serving("acme/small", subagents={"model": "acme/small"}),
        serving("acme/small", subagents=FALLING_BACK),
        differs("plan", "/modelApplied", True, False),
    ),
}


@rows(CHANGES)
def test_difference_is_told_both_ways(row: Case) -> None:
    row.check()
    field, before, after = row.expected.difference
    back = row.expected._replace(difference=(field, after, before))
    case(row.asked, row.now, row.then, back).check()


# Words that name a model, alone or by an alias.

WORDS = WRITER.changed(model="Our Best")
LARGE, LESS = named("our best", "acme/large"), named("our best", "acme/small")
BY_ALIAS = unknown("the model that was requested: maybe by an alias that stands for another now")
DIFFERENT_PLAN = Outcome("different-plan")

MODELS: dict[str, Case] = {
    "asked for before configured": case(NAMED_SMALL, BASE, subagents(model="acme/large")),
    "words are an alias now": case(
        WORDS, BASE, LARGE, differs("model", "/model", None, "acme/large")
    ),
    "words are no alias now": case(WORDS, BASE, named("another", "acme/large")),
    "words erased": case(
        WORDS,
        BASE,
        LARGE,
        unknown("the model that was requested: its text was erased"),
        erased=["Our Best"],
    ),
    "words erased, not needed": case(WORDS, BASE, HIGH, DIFFERENT_PLAN, erased=["Our Best"]),
    "alias stands for another": case(WORDS, LARGE, LESS, BY_ALIAS),
    "alias is gone": case(WORDS, LARGE, BASE, BY_ALIAS),
    "alias is gone, and more": case(WORDS, LARGE, HIGH, BY_ALIAS),
    "alias stays": case(WORDS, LARGE, but(LARGE, named("another", "acme/other"))),
    "name that is no alias": case(WRITER.changed(model="acme/other"), LARGE, BASE),
    "alias of one word": case(
        WRITER.changed(model="best"),
        named("Best", "acme/large"),
        named("Best", "acme/small"),
        differs("model", "/model", "acme/large", "acme/small"),
    ),
}

# Agents, levels of thinking and runtimes that there are or are not.

SAGE = subagents(thinking="like a sage")
WISE = WRITER.changed(thinking="like a sage")
QUICK = subagents(thinking="low")
GONE = setup("editor", default={"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}})
ASSUMED = at_hand("writer")

AGENTS: dict[str, Case] = {
    "thinking asked for": case(WRITER.changed(thinking="high"), BASE, QUICK),
    "timeout asked for": case(
        WRITER.changed(options={"run_timeout_seconds": 30.0}), BASE, subagents(runTimeoutSeconds=90)
    ),
    "no level": case(WISE, BASE, QUICK),
    "no level, erased": case(WISE, BASE, QUICK, erased=["like a sage"]),
    "no level configured": case(WRITER, BASE, SAGE, refused("thinking")),
    "no level was configured": case(WRITER, SAGE, BASE, allowed("thinking")),
    "agent is gone": case(WRITER, BASE, GONE, refused("agent_unknown")),
    "agent is new": case(WRITER, GONE, BASE, allowed("agent_unknown", *ASSUMED)),
    "runtime worker": case(
        WRITER, BASE, writer(runtime={"type": "worker", "queue": "far"}), refused("runtime")
    ),
    "runtime acp": case(WRITER, BASE, writer(runtime={"type": "acp"}), refused("runtime")),
    "runtime embedded": case(
        WRITER, BASE, writer(runtime={"type": "embedded"}), refused("runtime")
    ),
    "refusal before any difference": case(
        WRITER, BASE, subagents(model="acme/small", thinking="a sage"), refused("thinking")
    ),
    "model before plan": case(
        WRITER,
        BASE,
        subagents(model="acme/small", thinking="low", maxSpawnDepth=4),
        Outcome("different-model"),
    ),
    "plan before context": case(
        WRITER, BASE, subagents(thinking="low", maxSpawnDepth=4), DIFFERENT_PLAN
    ),
}

# Credentials and folders: what was found is on record, and what would be found is not.

KEYS = WRITER.changed(
    credentials=FoundCredentials(
        profile_ids=("acme:default", "other:default"), given=("acme:default",)
    )
)
LOST = WRITER.changed(
    credentials=FoundCredentials(missing=(MissingCredential("KEY", "KEY is not set"),))
)
UNSET = WRITER.changed(
    credentials=FoundCredentials(
        missing=(MissingCredential("KEY", "KEY is not set", is_unset=True),)
    )
)
NEEDING = {**COMMAND, "env": {"KEY": "${KEY}"}}
NO_WRITER = setup("writer", default={"subagents": {"allowAgents": ["main"]}})
CANNOT = "The workspace cannot be made: it is a file."
NO_RECORD = unknown("the workspace: whether the folder could be used is not on record")
FORGOTTEN = unknown("the workspace: which folder it was is not on record")
NO_ROOT = unknown(
    "the workspace: whether the folder that was requested lies below workspaceRoots, or the"
    " agent's own, is not on record"
)
ROOTS = but(BASE, {"spawnlog": {"workspaceRoots": ["/elsewhere"]}})
ELSEWHERE = writer(workspace="/srv/elsewhere")
INHERITS = Spawn(requester=below(workspace_dir="/srv/work"))
USELESS = WRITER.changed(unusable=CANNOT)
FORGETFUL = USELESS.changed(is_workspace_forgotten=True)
NAMING = Spawn(folder=True)
HERE, THERE = setup({"id": "main", "workspace": "/srv"}), setup({"id": "main", "workspace": "/x"})


def slow(values: Values) -> Values:
    """The same, with another level of thinking."""
    return but(values, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})


TAKEN = Outcome("different-plan", assumed=ASSUMED[:1])
FOUND: dict[str, Case] = {
    "credentials under another environment": case(
        KEYS, BASE, slow(writer(runtime={**COMMAND, "env": {"ACME": "a word"}})), TAKEN
    ),
    "credentials in another folder": case(KEYS, BASE, slow(writer(agentDir="/srv/a")), TAKEN),
    "credentials in another folder of main": case(
        KEYS,
        BASE,
        slow(but(BASE, {"agents": {"list": [{"id": "main", "agentDir": "/m"}, {"id": "writer"}]}})),
        TAKEN,
    ),
    "missing credentials": case(LOST, BASE, QUICK),
    "missing credentials, not allowed": case(
        LOST, BASE, NO_WRITER, still_refused("credentials", "allow_agents")
    ),
    "useless folder": case(USELESS, BASE, QUICK),
    "useless folder, another now": case(USELESS, BASE, ELSEWHERE, NO_RECORD),
    "forgotten folder": case(FORGETFUL, BASE, QUICK),
    "forgotten folder, other roots": case(FORGETFUL, BASE, ROOTS, FORGOTTEN),
    "forgotten folder, another now": case(FORGETFUL, BASE, ELSEWHERE, FORGOTTEN),
    "inherited folder, other roots": case(INHERITS, BASE, ROOTS),
    "useless inherited folder": case(INHERITS.changed(unusable=CANNOT), BASE, ROOTS),
    "named folder, other roots": case(NAMING, BASE, ROOTS, NO_ROOT),
    "named folder, agent's own is another": case(NAMING, HERE, THERE, NO_ROOT),
    "useless named folder, other roots": case(
        NAMING.changed(unusable=CANNOT), BASE, ROOTS, NO_RECORD
    ),
    "useless named folder, own folder now": case(
        NAMING.changed(unusable=CANNOT), setup("main"), HERE, NO_RECORD
    ),
    "useless named folder": case(NAMING.changed(unusable=CANNOT), BASE, QUICK),
    "folder named for another agent": case(WRITER.changed(folder=True), BASE, ROOTS),
}


@rows(MODELS | AGENTS | FOUND)
def test_plan(row: Case) -> None:
    row.check()


@pytest.mark.parametrize("asked", [KEYS, Sent(agent_id="writer", credentials=KEYS.credentials)])
def test_credentials_that_were_given_are_given_again(asked: Spawn) -> None:
    found = asked.again(BASE, QUICK)
    assert found.planned is not None
    assert found.planned.plan.auth_profiles == ("acme:default",)
    assert found.verdict.assumed == ()


@pytest.mark.parametrize("now", [{"runtime": COMMAND}, {"runtime": NEEDING, "agentDir": "/x"}])
def test_missing_credentials_may_be_found_by_another_runtime(now: Values) -> None:
    then = limits({"id": "writer", "runtime": NEEDING}, allowAgents=["*"])
    case(UNSET, then, then).check()
    found = UNSET.again(then, limits({"id": "writer", **now}, allowAgents=["*"])).verdict
    assert found.verdict != "same"


def test_other_credentials_are_assumed_of_the_same_plan_too() -> None:
    given = FoundCredentials(("openai:default",), ("openai:default",))
    then = limits({"id": "writer", "runtime": COMMAND}, allowAgents=["*"])
    taken = {**COMMAND, "env": {"OPENAI_API_KEY": "${OTHER}"}}
    now = limits({"id": "writer", "runtime": taken}, allowAgents=["*"])
    found = WRITER.changed(credentials=given).again(then, now).verdict
    assert found.verdict == "not-replayable" or found.assumed, found


# When a session that stays open is put away, and steps after the plan.

BOUND = but(BASE, BINDING)
LASTING = WRITER.changed(mode="session", thread=True, origin='{"channel": "chat"}')
FILES = AttachmentsRequest(count=2, total_bytes=90)
TAKING = {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}
STEPS: dict[str, Spawn] = {
    "thread_binding": LASTING,
    "context_fork": WRITER.changed(agent_id=None, requester=below(), fork=True),
    "attachments": WRITER.changed(attachments=FILES),
    "shared_context": WRITER,
    "dependency_failed": WRITER,
}
PREPARING = but(BOUND, TAKING)
REBOUND = {"spawnlog": {"hooks": {"subagentSpawning": {"url": "http://h.example/"}}}}


@pytest.mark.parametrize("name", ["idleHours", "maxAgeHours"])
def test_hours_of_an_open_session_are_part_of_its_plan(name: str) -> None:
    def hours(count: float) -> Values:
        return but(BOUND, {"session": {"threadBindings": {name: count}}})

    case(LASTING, BOUND, hours(2.5), differs("plan", f"/{name}", None, 2.5)).check()
    case(LASTING, BOUND, hours(0)).check()
    case(WRITER, BOUND, hours(2.5)).check()


@pytest.mark.parametrize("rule", STEPS)
def test_step_refuses_again_unless_its_binding_changed(rule: str) -> None:
    asked = STEPS[rule].changed(refused_by=rule)
    case(asked, PREPARING, slow(PREPARING)).check()
    changed = unknown("thread_binding: what it goes by changed (hooks or threadBindings)")
    expected = changed if rule == "thread_binding" else AS_BEFORE
    case(asked, PREPARING, but(slow(PREPARING), REBOUND), expected).check()


LATER: dict[str, Case] = {
    "plan refuses before the step": case(
        WRITER.changed(refused_by="attachments"),
        BASE,
        SAGE,
        still_refused("attachments", "thinking"),
    ),
    **{
        f"{rule} by others": case(WRITER.changed(refused_by=rule), BASE, SAGE)
        for rule in ("stopped", "erased", "batch")
    },
}


@rows(LATER)
def test_refusal_after_the_plan(row: Case) -> None:
    row.check()


# Messages: a session goes on under a plan of its own, in the place where it began.

FOUR = limits("writer", maxChildrenPerAgent=4)
TWO = limits("writer", maxChildrenPerAgent=2)
SENT = Sent(agent_id="writer", active_children=2)
WAKING = SENT.changed(is_paused=True)
CONFINED = setup({"id": "main", "sandbox": {"mode": "all"}, "runtime": ISOLATING}, "writer")
FREE = setup("main", "writer")
OWN_FOLDER = but(
    FOUR, {"agents": {"list": [{"id": "main"}, {"id": "writer", "workspace": "/srv/w"}]}}
)
FACTS = {"run": [{"id": "facts", "uri": "/scripts/facts", "position": "prepend"}]}


def said(section: str, **values: Any) -> Values:
    """A file with this in a section."""
    return but(FOUR, {section: values})


def of_all(**values: Any) -> Values:
    """A file with this for all sub-agents."""
    return but(FOUR, {"agents": {"defaults": {"subagents": values}}})


def aliased(stands_for: str) -> Values:
    """A file with an alias."""
    return but(FOUR, {"agents": {"defaults": {"models": {stands_for: {"alias": "our best"}}}}})


def working(source: str) -> Spawn:
    """A message to a session with this folder."""
    return SENT.changed(before_plan={"workspace_source": source, "workspace_dir": "/srv/old"})


FULL = refused("active_children")
SPAWNING = {"subagentSpawned": {"url": "http://h/a"}, "subagentSpawning": {"url": "http://h/b"}}
ENDING = {"subagentSpawned": {"url": "http://h/a"}, "subagentEnded": {"url": "http://h/b"}}
MESSAGES: dict[str, Case] = {
    "no place now": case(SENT, FOUR, TWO, FULL),
    "a place now": case(SENT, TWO, FOUR, allowed("active_children", ASSUMED[0])),
    "yielded, no place now": case(WAKING, FOUR, TWO),
    "yielded, never a place": case(WAKING, TWO, but(TWO, {"session": {"mainKey": "home"}})),
    "a place in the cascade": case(SENT, FOUR, TWO, active_children=1),
    "no place in the cascade": case(SENT, FOUR, FOUR, FULL, active_children=4),
    "yielded, no place in the cascade": case(WAKING, FOUR, FOUR, active_children=4),
    "depth of a leaf": case(*(SENT, FOUR, of_all(maxSpawnDepth=1)), differs("plan", "/role")),
    "agent id required": case(SENT, FOUR, of_all(requireAgentId=True)),
    "no agent allowed": case(SENT, FOUR, of_all(allowAgents=[])),
    "deeper sessions": case(SENT, FOUR, of_all(maxSpawnDepth=4)),
    "main key": case(SENT, FOUR, said("session", mainKey="home")),
    "one session for all senders": case(SENT, FOUR, said("session", scope="global")),
    "model": case(SENT, FOUR, of_all(model="a/b"), Outcome("different-model")),
    "agent is gone": case(
        SENT,
        FOUR,
        limits("editor", maxChildrenPerAgent=4),
        refused("agent_unknown", "is not configured any more"),
    ),
    "folder of the agent": case(working("agent"), FOUR, OWN_FOLDER),
    "folder of the requester": case(working("requester"), FOUR, OWN_FOLDER),
    "roots": case(working("agent"), FOUR, said("spawnlog", workspaceRoots=["/srv"])),
    "requester confined now": case(Sent(agent_id="writer"), FREE, CONFINED),
    "requester confined then": case(Sent(agent_id="writer", is_boxed=True), CONFINED, FREE),
    "named model": case(
        SENT.changed(model="acme/large"), aliased("acme/large"), aliased("acme/small")
    ),
    "words for a model": case(SENT.changed(model="Our Best"), FOUR, aliased("acme/small")),
    "scripts": case(SENT, FOUR, of_all(contextScripts=FACTS)),
    "hooks of spawns": case(SENT, FOUR, said("spawnlog", hooks=SPAWNING)),
    "hooks of ends": case(
        SENT, FOUR, said("spawnlog", hooks=ENDING), differs("plan", "/hooks", [], ["subagentEnded"])
    ),
    "agent that never was": case(SENT.changed(agent_id="nobody"), FOUR, FREE),
}


@rows(MESSAGES)
def test_message(row: Case) -> None:
    row.check()
