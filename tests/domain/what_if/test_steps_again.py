"""Given what a spawn asks for behind its plan, whether the steps of its preparation would be taken,
by what is on record of them."""

import pytest

from domain.run.facts import AttachmentsRequest, RespawnFacts
from domain.what_if.verdict import SAME
from tests.support.builders.decisions_again import BINDING, Spawn, Values, below, but, limits
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import ref, run_id

BASE = limits("writer", allowAgents=["*"])
FULL = limits("writer", allowAgents=["*"], maxChildrenPerAgent=1)
HOOK = {"url": "http://hooks.example/a"}
CROWDED = Spawn(agent_id="writer", active_children=1)
OWN = Spawn(active_children=1, fork=True)
FILES = AttachmentsRequest(count=2, total_bytes=90)
WRONG = AttachmentsRequest(count=2, refusal=ref("attachments_invalid_name (empty)"))
ATTACHING = CROWDED.changed(attachments=FILES)
ASSUMED_OF_FORKS = "the conversation that it begins with can be taken over"
NOT_ON_RECORD = ("the attachments: their limits changed, and they are not on record",)


def taking(values: Values = BASE, **attachments: int | bool) -> Values:
    """A file that lets spawns attach files, within these limits."""
    section = {"attachments": {"enabled": True, **attachments}}
    return but(values, {"tools": {"sessions_spawn": section}})


def preparing(values: Values, hook: Values | None = HOOK) -> Values:
    """A file with an engine that prepares."""
    return but(values, {"spawnlog": {"hooks": {"prepareSubagentSpawn": hook}}})


# What was refused at once, or by its plan, and is refused behind that now.

REFUSED_BEHIND: dict[str, tuple[Spawn, str]] = {
    "files, which are switched off": (ATTACHING, "attachments"),
    "the conversation of another agent": (CROWDED.changed(fork=True), "context_fork"),
    "a conversation that nobody has provided": (OWN, "context_fork"),
    "a thread that nobody binds": (CROWDED.changed(thread=True, mode="session"), "thread_binding"),
}


@pytest.mark.parametrize("name", REFUSED_BEHIND)
def test_what_is_newly_admitted_is_refused_behind_that(name: str) -> None:
    asked, rule = REFUSED_BEHIND[name]
    then = asked.record(FULL).refused
    assert then is not None
    assert then.rule == "active_children"
    found = asked.again(FULL, BASE).verdict
    assert (found.verdict, found.rule) == ("same", rule)
    assert found.difference is not None
    assert (found.difference.recorded, found.difference.decided) == ("active_children", rule)


@pytest.mark.parametrize("name", REFUSED_BEHIND)
def test_what_is_newly_planned_is_refused_behind_that(name: str) -> None:
    asked, rule = REFUSED_BEHIND[name]
    slow = but(BASE, {"agents": {"defaults": {"subagents": {"thinking": "a sage"}}}})
    asked = asked.changed(active_children=0)
    then = asked.record(slow).refused
    assert then is not None
    assert then.rule == "thinking"
    found = asked.again(slow, BASE).verdict
    assert (found.verdict, found.rule) == ("same", rule)


@pytest.mark.parametrize("name", REFUSED_BEHIND)
def test_a_step_that_refuses_either_way_is_the_same(name: str) -> None:
    asked, rule = REFUSED_BEHIND[name]
    asked = asked.changed(active_children=0)
    then = asked.record(BASE).refused
    assert then is not None
    assert then.rule == rule
    slow = but(BASE, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})
    assert asked.again(BASE, slow).verdict == SAME


def test_files_that_were_wrong_themselves_are_so_whatever_else_is_allowed() -> None:
    wrong = CROWDED.changed(attachments=WRONG)
    found = wrong.again(taking(FULL), taking()).verdict
    assert (found.verdict, found.rule) == ("same", "attachments")


def test_files_that_were_not_looked_at_are_not_on_record_when_they_are_taken_now() -> None:
    found = ATTACHING.again(FULL, taking()).verdict
    assert (found.verdict, found.missing) == ("not-replayable", NOT_ON_RECORD)


def test_files_that_were_judged_are_taken_to_be_written() -> None:
    found = ATTACHING.again(taking(FULL), taking()).verdict
    assert found.verdict == "newly-allowed"
    assert "what is attached can be written" in found.assumed


def test_what_is_in_order_on_record_is_newly_allowed() -> None:
    below_it = OWN.changed(requester=below())
    provided = OWN.changed(has_transcript=True)
    for asked in (below_it, provided):
        found = asked.again(FULL, BASE).verdict
        assert found.verdict == "newly-allowed"
        assert ASSUMED_OF_FORKS in found.assumed


def test_what_an_earlier_run_was_told_may_be_taken_over_by_any_agent() -> None:
    again = RespawnFacts(run_id=run_id(7), transcript_up_to=3)
    found = CROWDED.changed(changes={"respawn": again}).again(FULL, BASE).verdict
    assert found.verdict == "newly-allowed"
    assert ASSUMED_OF_FORKS in found.assumed


def test_the_first_step_that_refuses_speaks_before_anybody_is_asked() -> None:
    """A live preparation looks what each step needs before it takes the first."""
    asked = CROWDED.changed(thread=True, mode="session", attachments=FILES, fork=True)
    found = asked.again(but(FULL, BINDING), but(BASE, BINDING)).verdict
    assert (found.verdict, found.rule) == ("same", "context_fork")


# What was created, and is refused by a step now.


def test_files_are_refused_where_they_are_switched_off_or_too_many() -> None:
    asked = Spawn(agent_id="writer", attachments=FILES)
    off = asked.again(taking(), BASE).verdict
    assert (off.verdict, off.rule) == ("newly-refused", "attachments")
    assert off.text is not None
    assert "attachments are disabled" in off.text
    many = asked.again(taking(), taking(maxFiles=1)).verdict
    assert (many.verdict, many.rule) == ("newly-refused", "attachments")
    assert many.text == "attachments_file_count_exceeded (maxFiles=1)"
    assert Spawn(agent_id="writer").again(taking(), BASE).verdict == SAME


def test_how_large_each_file_is_decides_only_where_the_limits_may_be_passed() -> None:
    asked = Spawn(agent_id="writer", attachments=FILES)
    for now in (taking(maxFileBytes=90), taking(maxTotalBytes=90), taking(maxFiles=2)):
        assert asked.again(taking(), now).verdict == SAME
    assert asked.again(taking(maxFileBytes=50), taking(maxFileBytes=50, maxFiles=9)).verdict == SAME
    for now in (
        taking(maxFileBytes=89),
        taking(maxTotalBytes=89),
        taking(retainOnSessionKeep=True),
    ):
        found = asked.again(taking(), now).verdict
        assert (found.verdict, found.missing) == ("not-replayable", NOT_ON_RECORD)


ROUTER: Values = {"id": "router", "uri": "/scripts/router", "agentIdOverrideKey": "agent"}


def routing(key: str | None) -> Values:
    """A file in which a script may name another agent, under this key."""
    own = {"contextScripts": {"run": [{**ROUTER, "agentIdOverrideKey": key}]}}
    listed = [{"id": "main", "subagents": own}, {"id": "writer"}]
    return but(BASE, {"agents": {"list": listed}})


SAID = '{"message": "m", "agent": "writer"}'
UNROUTED = Spawn(
    fork=True,
    requester=below(),
    receipts=(receipt("router", output=ref(SAID), exit_code=0, outcome="injected"),),
)


def test_a_child_of_another_agent_now_cannot_begin_with_its_requesters_conversation() -> None:
    UNROUTED.texts.keep(SAID)
    found = UNROUTED.again(routing(None), routing("agent")).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "context_fork")
    plain = UNROUTED.changed(fork=False).again(routing(None), routing("agent")).verdict
    assert plain.verdict == "different-agent"


def test_a_child_of_its_requesters_agent_now_can_begin_with_its_conversation() -> None:
    routed = UNROUTED.changed(
        receipts=(
            receipt("router", "injected", output=ref(SAID), exit_code=0, candidate="writer"),
        ),
        candidates=(candidate("router", "writer"),),
        override_to="writer",
    )
    routed.texts.keep(SAID)
    found = routed.again(routing("agent"), routing(None)).verdict
    assert (found.verdict, found.rule) == ("newly-allowed", "context_fork")
    assert ASSUMED_OF_FORKS in found.assumed


# An engine elsewhere.


def test_an_engine_that_refused_is_not_asked_where_none_is_configured() -> None:
    refused = Spawn(agent_id="writer", refused_by="context_engine")
    found = refused.again(preparing(BASE), BASE).verdict
    assert (found.verdict, found.rule) == ("newly-allowed", "context_engine")


def test_an_engine_that_refused_would_again_and_another_one_may_not() -> None:
    refused = Spawn(agent_id="writer", refused_by="context_engine")
    slow = {"agents": {"defaults": {"subagents": {"thinking": "low"}}}}
    assert refused.again(preparing(BASE), preparing(but(BASE, slow))).verdict == SAME
    elsewhere = preparing(BASE, {"url": "http://elsewhere.example/"})
    found = refused.again(preparing(BASE), elsewhere).verdict
    assert found.missing == ("context_engine: what it goes by changed (hooks or threadBindings)",)
