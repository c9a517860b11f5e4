"""Given a child that was bound to a thread, whether it would be bound alike."""

import pytest

from domain.what_if.verdict import SAME
from tests.support.builders.decisions_again import BINDING, Sent, Spawn, Values, but, setup

HERE = '{"channel": "chat", "accountId": "work", "to": "room:1"}'
BASE = but(setup("writer", default={"subagents": {"allowAgents": ["*"]}}), BINDING)
BOUND = Spawn(agent_id="writer", mode="session", thread=True, origin=HERE)
OTHERWISE = "the thread: what binds it changed (hooks or threadBindings)"
OFF = {"threadBindings": {"spawnSessions": False}}

SWITCHED_OFF: dict[str, Values] = {
    "of all": {"session": {"threadBindings": {"enabled": False}}},
    "of the channel": {"channels": {"Chat": OFF}},
    "of the account": {"channels": {"chat": {"accounts": {"work": OFF}}}},
    "nobody is asked": {"spawnlog": {"hooks": {"subagentSpawning": None}}},
}
BINDINGS: dict[str, Values] = {
    "the conversation that it begins with": {
        "session": {"threadBindings": {"defaultSpawnContext": "isolated"}}
    },
    "who is asked to bind": {
        "spawnlog": {"hooks": {"subagentSpawning": {"url": "http://hooks.example/"}}}
    },
}
ALL = BINDINGS | SWITCHED_OFF
ELSEWHERE: dict[str, Values] = {
    "of another channel": {"channels": {"mail": OFF}},
    "of another account": {"channels": {"chat": {"accounts": {"home": OFF}}}},
    "the same in other words": {"session": {"threadBindings": {"enabled": True}}},
}


@pytest.mark.parametrize("name", BINDINGS)
def test_what_binds_a_thread_is_asked_and_its_answer_is_not_on_record(name: str) -> None:
    found = BOUND.again(BASE, but(BASE, BINDINGS[name])).verdict
    assert (found.verdict, found.missing) == ("not-replayable", (OTHERWISE,))


@pytest.mark.parametrize("name", SWITCHED_OFF)
def test_where_nobody_binds_threads_it_is_refused(name: str) -> None:
    off = but(BASE, SWITCHED_OFF[name])
    found = BOUND.again(BASE, off).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "thread_binding")
    assert found.text is not None
    assert "not running on a channel that can bind" in found.text
    assert BOUND.again(off, off).verdict == SAME


@pytest.mark.parametrize("name", SWITCHED_OFF)
def test_where_somebody_binds_threads_now_nobody_knows_what_it_answers(name: str) -> None:
    found = BOUND.again(but(BASE, SWITCHED_OFF[name]), BASE).verdict
    assert found.missing == ("thread_binding: what it goes by changed (hooks or threadBindings)",)


@pytest.mark.parametrize("name", ALL)
def test_without_a_thread_it_is_nobodys_concern(name: str) -> None:
    assert Spawn(agent_id="writer", origin=HERE).again(BASE, but(BASE, ALL[name])).verdict == SAME


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_holds_for_other_threads_holds_not_for_this_one(name: str) -> None:
    assert BOUND.again(BASE, but(BASE, ELSEWHERE[name])).verdict == SAME


@pytest.mark.parametrize("name", ALL)
def test_a_session_that_goes_on_is_bound_already(name: str) -> None:
    going_on = Sent(mode="session", thread=True, origin=HERE, thread_origin=HERE)
    assert going_on.again(BASE, but(BASE, ALL[name])).verdict == SAME


@pytest.mark.parametrize("name", BINDINGS)
def test_a_refusal_to_bind_may_be_none_under_other_bindings(name: str) -> None:
    refused = BOUND.changed(refused_by="thread_binding")
    found = refused.again(BASE, but(BASE, BINDINGS[name])).verdict
    assert found.verdict == "not-replayable"
    assert found.missing == ("thread_binding: what it goes by changed (hooks or threadBindings)",)


def test_an_address_that_was_erased_is_named_since_it_says_which_bindings_hold() -> None:
    found = BOUND.again(BASE, but(BASE, ELSEWHERE["of another channel"]), erased=[HERE]).verdict
    assert (found.verdict, found.missing) == (
        "not-replayable",
        ("the requester's addresses: they were erased",),
    )


def test_a_requester_without_addresses_has_the_bindings_of_all() -> None:
    nowhere = BOUND.changed(origin=None)
    assert nowhere.again(BASE, but(BASE, SWITCHED_OFF["of the channel"])).verdict == SAME
    found = nowhere.again(BASE, but(BASE, BINDINGS["the conversation that it begins with"])).verdict
    assert found.missing == (OTHERWISE,)


def test_what_is_newly_allowed_is_taken_to_be_bound() -> None:
    found = BOUND.again(but(setup("writer"), BINDING), BASE).verdict
    assert found.verdict == "newly-allowed"
    assert "a thread is bound" in found.assumed


@pytest.mark.parametrize("name", SWITCHED_OFF)
def test_what_is_newly_admitted_and_not_bound_stays_refused_by_that_rule(name: str) -> None:
    found = BOUND.again(setup("writer"), but(BASE, SWITCHED_OFF[name])).verdict
    assert (found.verdict, found.rule) == ("same", "thread_binding")
