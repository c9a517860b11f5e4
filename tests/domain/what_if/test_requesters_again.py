"""Given who asked, whether it is the same session under another configuration, and in a sandbox."""

from typing import Any

import pytest

from domain.what_if.decide_again import OtherSession, is_session_needed
from domain.what_if.verdict import SAME
from tests.support.builders.decisions_again import ISOLATING, Spawn, below, but, setup
from tests.support.builders.storytelling import plan

MEANT_ANOTHER = "the requester: its key stands for another session under this configuration"
BASE = setup("writer")
NAMING: dict[str, dict[str, Any]] = {
    "main key": but(BASE, {"session": {"mainKey": "home"}}),
    "one for all senders": but(BASE, {"session": {"scope": "global"}}),
    "default agent": setup("main", {"id": "writer", "default": True}),
}


@pytest.mark.parametrize("name", NAMING)
def test_a_short_name_that_means_another_session_now_is_no_record_of_that_one(name: str) -> None:
    found = Spawn().again(BASE, NAMING[name]).verdict
    assert (found.verdict, found.missing) == ("not-replayable", (MEANT_ANOTHER,))


@pytest.mark.parametrize("name", NAMING)
def test_a_full_key_means_the_same_session_under_any_naming(name: str) -> None:
    peer = "agent:main:chat:group:7"
    for key in (peer, "agent:main:main"):
        asked = Spawn(display=key, requester={"session_key": key})
        assert asked.again(BASE, NAMING[name]).verdict.verdict == "same"


@pytest.mark.parametrize("name", NAMING)
def test_a_child_that_asks_is_the_child_that_was_spawned(name: str) -> None:
    assert Spawn(requester=below(display_key="main")).again(BASE, NAMING[name]).verdict == SAME


def test_a_name_that_can_be_no_key_now_stands_for_no_session_that_is_on_record() -> None:
    """With the id of another default agent in front of it, it is too long."""
    name = "peer:" + "x" * 490
    asked = Spawn(display=name, requester={"session_key": f"agent:main:{name}"})
    found = asked.again(BASE, setup("main", {"id": "w" * 64, "default": True})).verdict
    assert (found.verdict, found.missing) == ("not-replayable", (MEANT_ANOTHER,))


def test_the_name_that_main_goes_by_stands_for_it_under_both() -> None:
    then = but(BASE, {"session": {"mainKey": "home"}})
    asked = Spawn(display="main", requester={"session_key": "agent:main:home"})
    assert asked.again(then, but(then, {"session": {"mainKey": " HOME "}})).verdict == SAME


# In a sandbox or not: what is on record, what is configured, and what the request says.

CONFINED = setup({"id": "main", "sandbox": {"mode": "all"}, "runtime": ISOLATING}, "writer")
UNCONFINED = setup("main", "writer")
FREE = Spawn(agent_id="writer", requester={"agent_id": "main"})


def allowing(values: dict[str, Any]) -> dict[str, Any]:
    """Anybody may be asked for, by a child too."""
    subagents = {"allowAgents": ["*"], "maxSpawnDepth": 2}
    return but(values, {"agents": {"defaults": {"subagents": subagents}}})


def test_a_requester_that_is_put_into_a_sandbox_spawns_no_free_child() -> None:
    found = FREE.again(allowing(UNCONFINED), allowing(CONFINED)).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "sandbox")
    assert found.text == (
        "Sandboxed sessions cannot spawn unsandboxed subagents. Set a sandboxed target agent or use"
        " the same agent runtime."
    )


def test_the_agent_in_the_key_counts_beside_the_one_that_a_requester_says_it_is() -> None:
    posed = FREE.changed(requester={"agent_id": "writer"})
    found = posed.again(allowing(UNCONFINED), allowing(CONFINED)).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "sandbox")


def test_one_that_is_seen_for_the_first_time_leaves_the_sandbox_of_then() -> None:
    first = FREE.changed(is_boxed=None)
    found = first.again(allowing(CONFINED), allowing(UNCONFINED)).verdict
    assert (found.verdict, found.rule) == ("newly-allowed", "sandbox")


def test_one_that_was_on_record_in_a_sandbox_stays_in_it() -> None:
    known = FREE.changed(is_boxed=True)
    assert known.again(allowing(CONFINED), allowing(UNCONFINED)).verdict == SAME


def test_one_that_was_on_record_free_was_confined_by_the_configuration_alone() -> None:
    known = FREE.changed(is_boxed=False)
    found = known.again(allowing(CONFINED), allowing(UNCONFINED)).verdict
    assert (found.verdict, found.rule) == ("newly-allowed", "sandbox")


def test_one_that_says_it_is_in_a_sandbox_is_under_any_configuration() -> None:
    said = FREE.changed(options={"requester_sandboxed": True}, is_boxed=None)
    assert said.again(allowing(CONFINED), allowing(UNCONFINED)).verdict == SAME


def test_the_plan_that_a_requester_would_have_says_where_it_is() -> None:
    """With a cascade: its own child session is in a sandbox, or not any more."""
    confined = FREE.changed(requester=below(), is_boxed=True)
    free = confined.again(
        allowing(CONFINED),
        allowing(UNCONFINED),
        requester_now=OtherSession(plan=plan(sandboxed=False)),
    )
    assert (free.verdict.verdict, free.verdict.rule) == ("newly-allowed", "sandbox")
    now = FREE.changed(requester=below()).again(
        allowing(UNCONFINED),
        allowing(UNCONFINED),
        requester_now=OtherSession(plan=plan(sandboxed=True)),
    )
    assert (now.verdict.verdict, now.verdict.rule) == ("newly-refused", "sandbox")


@pytest.mark.parametrize(
    ("then", "now", "asked", "needed"),
    [
        (CONFINED, UNCONFINED, Spawn(is_boxed=None), True),
        (UNCONFINED, CONFINED, Spawn(is_boxed=None), False),
        (CONFINED, CONFINED, Spawn(is_boxed=None), False),
        (UNCONFINED, UNCONFINED, Spawn(is_boxed=True), False),
        (CONFINED, UNCONFINED, Spawn(options={"requester_sandboxed": True}), False),
    ],
)
def test_the_session_is_read_only_where_it_is_not_clear_who_confined_it(
    then: dict[str, Any], now: dict[str, Any], asked: Spawn, needed: bool
) -> None:
    question = asked.question(then, now)
    assert is_session_needed(question) == needed
    assert (question.requester is not None) == needed


def test_in_non_main_mode_the_main_session_is_free_and_its_peers_are_not() -> None:
    mode = {"sandbox": {"mode": "non-main"}}
    few = allowing(setup({"id": "main", **mode, "runtime": ISOLATING}, "writer"))
    assert FREE.again(allowing(UNCONFINED), few).verdict == SAME
    peer = "agent:main:chat:group:7"
    aside = FREE.changed(requester={"session_key": peer}, display=peer)
    assert aside.again(allowing(UNCONFINED), few).verdict.rule == "sandbox"


def test_a_child_whose_runtime_isolates_nothing_cannot_be_confined() -> None:
    careless = setup("main", {"id": "writer", "sandbox": {"mode": "all"}})
    found = FREE.again(allowing(UNCONFINED), allowing(careless)).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "sandbox")
    assert found.text is not None
    assert "its runtime does not provide one" in found.text


def test_a_child_that_is_confined_now_is_another_plan() -> None:
    careful = setup("main", {"id": "writer", "sandbox": {"mode": "all"}, "runtime": ISOLATING})
    free = setup("main", {"id": "writer", "runtime": ISOLATING})
    found = FREE.again(allowing(free), allowing(careful)).verdict
    assert found.verdict == "different-plan"
    assert found.difference is not None
    assert (found.difference.field, found.difference.decided) == ("/sandboxed", True)


def test_a_sandbox_that_was_required_is_missed_when_it_is_gone() -> None:
    careful = setup("main", {"id": "writer", "sandbox": {"mode": "all"}, "runtime": ISOLATING})
    free = setup("main", {"id": "writer", "runtime": ISOLATING})
    found = FREE.changed(options={"sandbox": "require"}).again(allowing(careful), allowing(free))
    assert (found.verdict.verdict, found.verdict.rule) == ("newly-refused", "sandbox")
