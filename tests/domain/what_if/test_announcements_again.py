"""Given a run that was announced, where its announcement would go."""

import base64
from typing import Any

import pytest

from domain.what_if.verdict import SAME, Verdict
from tests.support.builders.decisions_again import (
    BINDING,
    Sent,
    Spawn,
    Values,
    below,
    but,
    change_of,
    setup,
)
from tests.support.builders.run_histories import announced

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
HERE = '{"channel": "chat", "to": "room:1"}'
THERE = '{"channel": "mail", "to": "list:1"}'
BASE = but(setup(default={"subagents": {"maxSpawnDepth": 2}}), BINDING)


def webhook(name: str, **values: Any) -> Values:
    """Somebody whom announcements are sent."""
    return {"id": name, "url": f"http://hooks.example/{name}", "secrets": [SECRET], **values}


def sending(*webhooks: Values) -> Values:
    """With these."""
    return but(BASE, {"spawnlog": {"announce": {"webhooks": list(webhooks)}}})


def sent_to(found: Verdict) -> tuple[Any, Any]:
    """To whom it was sent, and to whom it would be."""
    assert (found.verdict, found.difference and found.difference.field) == (
        "different-announcement",
        "/webhooks",
    )
    assert found.difference is not None
    return found.difference.recorded, found.difference.decided


ANNOUNCED = Spawn(origin=HERE, announced=True)
ALL, MAIN, CHAT, MAIL = (
    webhook("all"),
    webhook("main", agents=["main"]),
    webhook("chat", origin={"channel": "chat"}),
    webhook("mail", origin={"channel": "mail"}),
)


def test_another_webhook_is_another_announcement() -> None:
    assert sent_to(ANNOUNCED.again(sending(ALL), sending(ALL, MAIN)).verdict) == (
        ["all"],
        ["all", "main"],
    )
    assert sent_to(ANNOUNCED.again(sending(ALL, MAIN), sending()).verdict) == (["all", "main"], [])


def test_a_webhook_at_another_address_is_sent_the_same() -> None:
    moved = {**ALL, "url": "http://elsewhere.example/"}
    assert ANNOUNCED.again(sending(ALL), sending(moved)).verdict == SAME


def test_a_webhook_for_others_is_sent_nothing() -> None:
    others = webhook("others", agents=["writer"])
    assert ANNOUNCED.again(sending(ALL), sending(ALL, others, MAIL)).verdict == SAME


def test_where_it_was_asked_is_read_from_the_requesters_addresses() -> None:
    assert sent_to(ANNOUNCED.again(sending(), sending(CHAT, MAIL)).verdict) == ([], ["chat"])


def test_where_a_hook_said_it_is_to_go_counts_first() -> None:
    elsewhere = ANNOUNCED.changed(told_to=THERE)
    assert sent_to(elsewhere.again(sending(), sending(CHAT, MAIL)).verdict) == ([], ["mail"])


def test_where_its_thread_is_counts_before_where_its_requester_is() -> None:
    bound = ANNOUNCED.changed(mode="session", thread=True, thread_origin=THERE)
    assert sent_to(bound.again(sending(), sending(CHAT, MAIL)).verdict) == ([], ["mail"])


def test_what_a_sub_agent_asked_for_goes_nowhere_but_to_it() -> None:
    asked = ANNOUNCED.changed(requester=below())
    assert sent_to(asked.again(sending(), sending(CHAT, ALL)).verdict) == ([], ["all"])


def test_a_message_is_announced_to_the_same_as_a_spawn() -> None:
    going_on = Sent(mode="session", thread=True, thread_origin=THERE, origin=HERE, announced=True)
    assert sent_to(going_on.again(sending(), sending(CHAT, MAIL)).verdict) == ([], ["mail"])


def test_the_addresses_are_read_only_where_webhooks_changed() -> None:
    slower = but(sending(CHAT), {"spawnlog": {"hooks": {"attemptsMax": 3}}})
    assert ANNOUNCED.again(sending(CHAT), slower, erased=[HERE]).verdict == SAME
    found = ANNOUNCED.again(sending(CHAT), sending(CHAT, MAIL), erased=[HERE]).verdict
    assert (found.verdict, found.missing) == (
        "not-replayable",
        ("the requester's addresses: they were erased",),
    )


def test_one_that_is_not_announced_yet_has_no_announcement_to_differ() -> None:
    assert Spawn(origin=HERE).again(sending(), sending(ALL)).verdict == SAME


def test_what_was_in_force_at_the_announcement_counts_and_not_at_the_spawn() -> None:
    """Spawned without webhooks; announced when there was one."""
    same = change_of(sending(ALL), sending(ALL))
    assert ANNOUNCED.again(sending(), sending(ALL), announced=same).verdict == SAME


def test_what_would_be_in_force_at_the_announcement_counts_too() -> None:
    """Spawned when there was a webhook, announced when there was none, and there is none now."""
    none = change_of(sending(), sending())
    found = ANNOUNCED.again(sending(), sending(ALL), announced=none)
    assert found.verdict == SAME


@pytest.mark.parametrize("disposition", ["skipped", "not_required"])
def test_what_is_not_announced_is_sent_to_nobody(disposition: str) -> None:
    question = ANNOUNCED.question(sending(), sending(ALL))
    record = question.record.changed({"announced": announced(disposition=disposition)})
    assert ANNOUNCED.again(sending(), sending(ALL), record=record).verdict == SAME


# A runtime that brings the result to the thread itself.


def runtime(*, delivers: bool) -> Values:
    """A program that does so, or does not."""
    command = {"type": "command", "command": ["true"], "deliversToOrigin": delivers}
    return but(BASE, {"agents": {"defaults": {"runtime": command}}})


BOUND = Spawn(mode="session", thread=True, origin=HERE, thread_origin=THERE)


@pytest.mark.parametrize("asked", [BOUND, Sent(mode="session", thread=True, thread_origin=THERE)])
def test_a_runtime_that_delivers_itself_is_another_announcement(asked: Spawn) -> None:
    found = asked.again(runtime(delivers=False), runtime(delivers=True)).verdict
    assert found.verdict == "different-announcement"
    assert found.difference is not None
    one = found.difference
    assert (one.field, one.recorded, one.decided) == ("/directDelivery", False, True)


@pytest.mark.parametrize(
    "asked",
    [
        BOUND.changed(thread_origin='{"channel": "chat"}'),
        BOUND.changed(thread_origin=None),
        Spawn(origin=HERE),
    ],
)
def test_without_a_thread_that_can_be_reached_nothing_is_delivered_there(asked: Spawn) -> None:
    assert asked.again(runtime(delivers=False), runtime(delivers=True)).verdict == SAME


def test_where_the_thread_is_was_erased_is_named() -> None:
    found = BOUND.again(runtime(delivers=False), runtime(delivers=True), erased=[THERE]).verdict
    assert found.missing == ("the requester's addresses: they were erased",)
