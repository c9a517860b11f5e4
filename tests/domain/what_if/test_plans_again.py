"""Given a child that was planned, which plan it would have under another configuration."""

from typing import Any

import pytest

from domain.plan.credentials import FoundCredentials, MissingCredential
from domain.run.facts import AttachmentsRequest
from domain.what_if.verdict import SAME, Verdict
from tests.support.builders.decisions_again import (
    BINDING,
    Spawn,
    Values,
    below,
    but,
    setup,
)

BASE = setup("writer", "editor", default={"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}})
WRITER = Spawn(agent_id="writer")
Shown = tuple[str, str, Any, Any]


def shown(found: Verdict) -> Shown:
    """What is told of a difference: where, what it was, and what it is."""
    assert found.difference is not None, found
    one = found.difference
    return found.verdict, one.field, one.recorded, one.decided


def subagents(**values: Any) -> Values:
    """With this for all sub-agents."""
    return but(BASE, {"agents": {"defaults": {"subagents": values}}})


def own_list(**values: Any) -> Values:
    """What the agent `writer` says itself."""
    return {"agents": {"list": [{"id": "main"}, {"id": "writer", **values}, {"id": "editor"}]}}


def writer(**values: Any) -> Values:
    """With this for the agent `writer`."""
    return but(BASE, own_list(**values))


def serving(*models: str) -> Values:
    """With a runtime that serves these."""
    return writer(runtime={"type": "scripted", "models": list(models)})


CHANGES: dict[str, tuple[Spawn, Values, Values, Shown]] = {
    "the model of all": (
        WRITER,
        BASE,
        subagents(model="acme/small"),
        ("different-model", "/model", None, "acme/small"),
    ),
    "the model of the agent before that of all": (
        WRITER,
        subagents(model="acme/small"),
        but(subagents(model="acme/small"), own_list(subagents={"model": "acme/large"})),
        ("different-model", "/model", "acme/small", "acme/large"),
    ),
    "a model that was asked for and is not served any more": (
        WRITER.changed(model="acme/large"),
        serving("acme/large"),
        serving("acme/small"),
        ("different-model", "/model", "acme/large", None),
    ),
    "the agent of a requester that was inherited from": (
        Spawn(agent_id="main", requester=below(model="acme/large"), model=None),
        BASE,
        subagents(model="acme/small"),
        ("different-model", "/model", "acme/large", "acme/small"),
    ),
    "thinking of all": (
        WRITER,
        BASE,
        subagents(thinking="high"),
        ("different-plan", "/thinking", None, "high"),
    ),
    "thinking of the agent before that of all": (
        WRITER,
        subagents(thinking="high"),
        but(subagents(thinking="high"), own_list(subagents={"thinking": "low"})),
        ("different-plan", "/thinking", "high", "low"),
    ),
    "a time limit": (
        WRITER,
        BASE,
        subagents(runTimeoutSeconds=90),
        ("different-plan", "/runTimeoutSeconds", 0, 90),
    ),
    "when it is archived": (
        WRITER,
        BASE,
        subagents(archiveAfterMinutes=5),
        ("different-plan", "/archiveAfterMinutes", 60, 5),
    ),
    "prices": (
        WRITER.changed(model="acme/small"),
        BASE,
        but(
            BASE,
            {
                "models": {
                    "providers": {
                        "acme": {"models": [{"id": "small", "cost": {"input": 1, "output": 2}}]}
                    }
                }
            },
        ),
        ("different-plan", "/prices/input", None, 1.0),
    ),
    "tools that are allowed": (
        WRITER,
        BASE,
        but(BASE, {"tools": {"subagents": {"tools": {"allow": ["read"]}}}}),
        ("different-plan", "/tools/allow", None, ["read"]),
    ),
    "a runtime of another kind": (
        WRITER,
        BASE,
        writer(runtime={"type": "command", "command": ["true"]}),
        ("different-plan", "/runtime", "scripted", "command"),
    ),
    "its role": (
        WRITER,
        BASE,
        subagents(maxSpawnDepth=1),
        ("different-plan", "/role", "orchestrator", "leaf"),
    ),
    "hooks that are told": (
        WRITER,
        BASE,
        but(
            BASE,
            {
                "spawnlog": {
                    "hooks": {
                        "onSubagentEnded": {"url": "http://hooks.example/b"},
                        "subagentSpawned": {"url": "http://hooks.example/a"},
                        "prepareSubagentSpawn": {"url": "http://hooks.example/c"},
                    }
                }
            },
        ),
        ("different-plan", "/hooks", [], ["subagentSpawned", "onSubagentEnded"]),
    ),
    "the agent's own folder": (
        WRITER,
        BASE,
        writer(workspace="/srv/elsewhere"),
        ("different-plan", "/workspaceDir", None, "/srv/elsewhere"),
    ),
    "how deep its family may be": (
        WRITER,
        BASE,
        subagents(maxSpawnDepth=3),
        ("different-context", "/maxSpawnDepth", 2, 3),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_otherwise_is_told_with_what_it_was(name: str) -> None:
    asked, then, now, expected = CHANGES[name]
    assert shown(asked.again(then, now).verdict) == expected


@pytest.mark.parametrize("name", CHANGES)
def test_and_back_again(name: str) -> None:
    asked, then, now, (verdict, where, before, after) = CHANGES[name]
    assert shown(asked.again(now, then).verdict) == (verdict, where, after, before)


@pytest.mark.parametrize(
    ("asked", "configured"),
    [
        (WRITER.changed(model="acme/large"), {"model": "acme/small"}),
        (WRITER.changed(thinking="high"), {"thinking": "low"}),
        (WRITER.changed(options={"run_timeout_seconds": 30.0}), {"runTimeoutSeconds": 90}),
    ],
)
def test_what_was_asked_for_counts_before_what_is_configured(
    asked: Spawn, configured: Values
) -> None:
    assert asked.again(BASE, subagents(**configured)).verdict == SAME


def test_an_output_price_alone_is_a_difference() -> None:
    def priced(output: int) -> Values:
        cost = {"input": 1, "output": output}
        offered = {"models": [{"id": "small", "cost": cost}]}
        return but(BASE, {"models": {"providers": {"acme": offered}}})

    found = WRITER.changed(model="acme/small").again(priced(2), priced(3)).verdict
    assert shown(found) == ("different-plan", "/prices/output", 2.0, 3.0)


def test_whether_the_model_is_the_one_that_was_named_is_told() -> None:
    plain = {"runtime": {"type": "scripted", "models": ["acme/small"]}}
    wanted = {"primary": "acme/large", "fallbacks": ["acme/small"]}
    first = writer(**plain, subagents={"model": "acme/small"})
    second = writer(**plain, subagents={"model": wanted})
    found = WRITER.again(first, second).verdict
    assert shown(found) == ("different-plan", "/modelApplied", True, False)


# Words that were given and named nothing.


def named(alias: str, stands_for: str) -> Values:
    """With an alias of a model."""
    return but(BASE, {"agents": {"defaults": {"models": {stands_for: {"alias": alias}}}}})


FREE_WORDS = WRITER.changed(model="Our Best")


def test_free_words_that_are_an_alias_now_name_that_model() -> None:
    found = FREE_WORDS.again(BASE, named("our best", "acme/large")).verdict
    assert shown(found) == ("different-model", "/model", None, "acme/large")


def test_free_words_that_are_no_alias_now_either_stay_free_words() -> None:
    assert FREE_WORDS.again(BASE, named("another", "acme/large")).verdict == SAME


def test_free_words_that_were_erased_are_named_where_aliases_changed_alone() -> None:
    found = FREE_WORDS.again(BASE, named("our best", "acme/large"), erased=["Our Best"]).verdict
    assert (found.verdict, found.missing) == (
        "not-replayable",
        ("the model that was requested: its text was erased",),
    )
    slow = FREE_WORDS.again(BASE, subagents(thinking="low"), erased=["Our Best"]).verdict
    assert slow.verdict == "different-plan"


def test_what_free_words_stood_for_is_on_record_and_not_that_they_were_given() -> None:
    """Where they stand for another model now, nobody knows whether it was asked for by its name."""
    then = named("our best", "acme/large")
    found = FREE_WORDS.again(then, named("our best", "acme/small")).verdict
    assert found.verdict == "not-replayable"
    by_alias = "the model that was requested: maybe by an alias that stands for another now"
    assert found.missing == (by_alias,)
    assert FREE_WORDS.again(then, BASE).verdict.missing == (by_alias,)
    assert FREE_WORDS.again(then, subagents(thinking="low")).verdict.missing == (by_alias,)
    more = but(then, named("another", "acme/other"))
    assert FREE_WORDS.again(then, more).verdict == SAME
    assert WRITER.changed(model="acme/other").again(then, BASE).verdict == SAME


def test_an_alias_that_is_a_name_is_followed_to_where_it_leads_now() -> None:
    asked = WRITER.changed(model="best")
    found = asked.again(named("Best", "acme/large"), named("Best", "acme/small")).verdict
    assert shown(found) == ("different-model", "/model", "acme/large", "acme/small")


def test_a_word_that_is_no_level_refuses_it_whatever_is_configured() -> None:
    asked = WRITER.changed(thinking="like a sage")
    assert asked.again(BASE, subagents(thinking="low")).verdict == SAME
    assert asked.again(BASE, subagents(thinking="low"), erased=["like a sage"]).verdict == SAME


def test_a_word_of_the_configuration_that_is_no_level_refuses() -> None:
    found = WRITER.again(BASE, subagents(thinking="like a sage")).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "thinking")
    back = WRITER.again(subagents(thinking="like a sage"), BASE).verdict
    assert (back.verdict, back.rule) == ("newly-allowed", "thinking")


# Agents.


def test_an_agent_that_is_gone_refuses_and_one_that_is_new_is_allowed() -> None:
    gone = setup("editor", default={"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 2}})
    found = WRITER.again(BASE, gone).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "agent_unknown")
    back = WRITER.again(gone, BASE).verdict
    assert (back.verdict, back.rule) == ("newly-allowed", "agent_unknown")
    assert back.assumed == (
        'the credentials of agent "writer" can be had',
        'the workspace of agent "writer" can be used',
    )


@pytest.mark.parametrize("kind", ["worker", "acp", "embedded"])
def test_a_runtime_that_is_not_served_refuses(kind: str) -> None:
    values: Values = {"type": kind} | ({"queue": "far"} if kind == "worker" else {})
    found = WRITER.again(BASE, writer(runtime=values)).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "runtime")


# Credentials and folders are on this machine: what was found is on record, what would be is not.

KEYS = FoundCredentials(profile_ids=("acme:default", "other:default"), given=("acme:default",))
LOST = FoundCredentials(missing=(MissingCredential("ACME_API_KEY", "ACME_API_KEY is not set"),))


def test_credentials_that_were_given_are_given_again() -> None:
    found = WRITER.changed(credentials=KEYS).again(BASE, subagents(thinking="low"))
    assert found.planned is not None
    assert found.planned.plan.auth_profiles == ("acme:default",)
    assert found.verdict.assumed == ()


@pytest.mark.parametrize(
    "change",
    [
        writer(runtime={"type": "command", "command": ["true"], "env": {"ACME": "a word"}}),
        writer(agentDir="/srv/agents/writer"),
        but(BASE, {"agents": {"list": [{"id": "main", "agentDir": "/srv/m"}, {"id": "writer"}]}}),
    ],
)
def test_another_runtime_or_folder_of_the_agent_is_taken_to_have_its_credentials(
    change: Values,
) -> None:
    slower = but(change, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})
    found = WRITER.changed(credentials=KEYS).again(BASE, slower).verdict
    assert found.verdict == "different-plan"
    assert found.assumed == ('the credentials of agent "writer" can be had',)


def test_credentials_that_were_missing_are_missing_again() -> None:
    lost = WRITER.changed(credentials=LOST)
    assert lost.again(BASE, subagents(thinking="low")).verdict == SAME
    found = lost.again(BASE, setup("writer", default={"subagents": {"allowAgents": ["main"]}}))
    assert (found.verdict.verdict, found.verdict.rule) == ("same", "allow_agents")


# The folder.

GONE = "The workspace cannot be made: it is a file."
NO_RECORD = "the workspace: whether the folder could be used is not on record"


def test_a_folder_that_could_not_be_used_is_not_used_again() -> None:
    asked = WRITER.changed(unusable=GONE)
    assert asked.again(BASE, subagents(thinking="low")).verdict == SAME
    found = asked.again(BASE, writer(workspace="/srv/elsewhere")).verdict
    assert (found.verdict, found.missing) == ("not-replayable", (NO_RECORD,))


def test_one_that_was_forgotten_is_as_it_was_where_no_path_changed() -> None:
    """Refusals of before facts were recorded."""
    asked = WRITER.changed(unusable=GONE, is_workspace_forgotten=True)
    assert asked.again(BASE, subagents(thinking="low")).verdict == SAME
    roots = but(BASE, {"spawnlog": {"workspaceRoots": ["/srv"]}})
    for change in (roots, writer(workspace="/srv/elsewhere")):
        found = asked.again(BASE, change).verdict
        assert (found.verdict, found.missing) == (
            "not-replayable",
            ("the workspace: which folder it was is not on record",),
        )


def test_a_recorded_folder_of_the_requester_is_inherited_whatever_roots_there_are() -> None:
    inherits = Spawn(requester=below(workspace_dir="/srv/work"))
    roots = but(BASE, {"spawnlog": {"workspaceRoots": ["/elsewhere"]}})
    assert inherits.again(BASE, roots).verdict == SAME
    assert inherits.changed(unusable=GONE).again(BASE, roots).verdict == SAME


def test_a_folder_that_was_named_may_lie_below_other_roots_or_not() -> None:
    roots = but(BASE, {"spawnlog": {"workspaceRoots": ["/elsewhere"]}})
    found = Spawn(folder=True).again(BASE, roots).verdict
    assert found.verdict == "not-replayable"
    assert found.missing == (
        "the workspace: whether the folder that was requested lies below workspaceRoots, or the"
        " agent's own, is not on record",
    )
    refused = Spawn(folder=True, unusable=GONE).again(BASE, roots).verdict
    assert refused.missing == (NO_RECORD,)
    assert Spawn(folder=True, unusable=GONE).again(BASE, subagents(thinking="low")).verdict == SAME


def test_a_folder_that_is_named_for_another_agents_child_depends_on_no_root() -> None:
    roots = but(BASE, {"spawnlog": {"workspaceRoots": ["/elsewhere"]}})
    assert WRITER.changed(folder=True).again(BASE, roots).verdict == SAME


# When a session that stays open is put away.

LASTING = WRITER.changed(mode="session", thread=True, origin='{"channel": "chat"}')


@pytest.mark.parametrize(
    ("name", "where"), [("idleHours", "/idleHours"), ("maxAgeHours", "/maxAgeHours")]
)
def test_the_hours_of_a_session_that_stays_open_are_part_of_its_plan(name: str, where: str) -> None:
    bound = but(BASE, BINDING)
    now = but(bound, {"session": {"threadBindings": {name: 2.5}}})
    assert shown(LASTING.again(bound, now).verdict) == ("different-plan", where, None, 2.5)
    never = but(bound, {"session": {"threadBindings": {name: 0}}})
    assert LASTING.again(bound, never).verdict == SAME
    assert WRITER.again(bound, now).verdict == SAME


# A later step.


FILES = AttachmentsRequest(count=2, total_bytes=90)
TAKING = {"tools": {"sessions_spawn": {"attachments": {"enabled": True}}}}
OWN = WRITER.changed(agent_id=None, requester=below(), fork=True)
STEPS: dict[str, Spawn] = {
    "thread_binding": LASTING,
    "context_fork": OWN,
    "attachments": WRITER.changed(attachments=FILES),
    "shared_context": WRITER,
    "dependency_failed": WRITER,
}
PREPARING = but(but(BASE, BINDING), TAKING)


@pytest.mark.parametrize("rule", STEPS)
def test_a_step_behind_the_plan_refuses_again_where_what_it_goes_by_is_as_it_was(rule: str) -> None:
    asked = STEPS[rule].changed(refused_by=rule)
    slow = but(PREPARING, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})
    assert asked.again(PREPARING, slow).verdict == SAME
    hooks = {"subagentSpawning": {"url": "http://h.example/"}}
    found = asked.again(PREPARING, but(slow, {"spawnlog": {"hooks": hooks}})).verdict
    if rule == "thread_binding":
        assert (found.verdict, found.missing) == (
            "not-replayable",
            ("thread_binding: what it goes by changed (hooks or threadBindings)",),
        )
    else:
        assert found == SAME


def test_a_step_that_refused_is_behind_a_plan_that_refuses_now() -> None:
    found = WRITER.changed(refused_by="attachments").again(BASE, subagents(thinking="a sage"))
    assert (found.verdict.verdict, found.verdict.rule) == ("same", "thinking")


@pytest.mark.parametrize("rule", ["stopped", "erased", "batch"])
def test_what_others_ended_would_be_ended_by_them_again(rule: str) -> None:
    asked = WRITER.changed(refused_by=rule)
    assert asked.again(BASE, subagents(thinking="a sage")).verdict == SAME


# The first difference is told, in the order in which it is decided.

ORDER = (
    ("different-model", subagents(model="acme/small")),
    ("different-plan", subagents(thinking="low")),
    ("different-context", subagents(maxSpawnDepth=4)),
)


@pytest.mark.parametrize("number", range(len(ORDER)))
def test_of_several_differences_the_first_that_is_decided_is_told(number: int) -> None:
    now = BASE
    for _, change in ORDER[number:]:
        now = but(now, {"agents": {"defaults": change["agents"]["defaults"]}})
    assert WRITER.again(BASE, now).verdict.verdict == ORDER[number][0]


def test_a_refusal_comes_before_any_difference() -> None:
    now = subagents(model="acme/small", thinking="a sage")
    assert WRITER.again(BASE, now).verdict.verdict == "newly-refused"
