"""What-if for announcements: where one would go under another configuration."""

import base64

from tests.support.builders.decisions_again import (
    BINDING,
    Case,
    Outcome,
    Sent,
    Spawn,
    Values,
    below,
    but,
    case,
    differs,
    rows,
    setup,
    unknown,
)

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
HERE = '{"channel": "chat", "to": "room:1"}'
THERE = '{"channel": "mail", "to": "list:1"}'
BASE = but(setup(default={"subagents": {"maxSpawnDepth": 2}}), BINDING)


def sending(**webhooks: Values) -> Values:
    """Return a file with webhooks of these names and values."""
    listed = [
        {"id": name, "url": f"http://hooks.example/{name}", "secrets": [SECRET], **values}
        for name, values in webhooks.items()
    ]
    return but(BASE, {"spawnlog": {"announce": {"webhooks": listed}}})


def hooks(**named: Values) -> Values:
    """Return a file with these hooks."""
    return but(BASE, {"spawnlog": {"hooks": named}})


def delivering(is_delivered: bool) -> Values:
    """Return a runtime that delivers the result to the thread itself, or does not."""
    command = {"type": "command", "command": ["true"], "deliversToOrigin": is_delivered}
    return but(BASE, {"agents": {"defaults": {"runtime": command}}})


ANNOUNCED = Spawn(origin=HERE, announced=True)
THREAD = ANNOUNCED.changed(mode="session", thread=True, thread_origin=THERE)
BOUND = Spawn(mode="session", thread=True, origin=HERE, thread_origin=THERE)
SENT_BOUND = Sent(mode="session", thread=True, thread_origin=THERE)
TARGET = {"subagentDeliveryTarget": {"url": "http://hooks.example/a"}}

OF_CHAT, OF_MAIL = {"origin": {"channel": "chat"}}, {"origin": {"channel": "mail"}}
NOBODY, EVERYBODY, CHAT = sending(), sending(all={}), sending(chat=OF_CHAT)
BY_CHANNEL = sending(chat=OF_CHAT, mail=OF_MAIL)
MOVED = sending(all={"url": "http://elsewhere.example/"})
SLOWER = but(CHAT, {"spawnlog": {"hooks": {"attemptsMax": 3}}})
NO_ADDRESS = unknown("the requester's addresses: they were erased")
DELIVERED = differs("announcement", "/directDelivery", False, True)
NEVER, ITSELF = delivering(is_delivered=False), delivering(is_delivered=True)


def sent_to(*then: str, now: tuple[str, ...]) -> Outcome:
    """Return the outcome with the recorded and the new webhooks."""
    return differs("announcement", "/webhooks", [*then], [*now])


CASES: dict[str, Case] = {
    "another address": case(ANNOUNCED, EVERYBODY, MOVED),
    "address by a hook": case(
        ANNOUNCED.changed(told_to=THERE), NOBODY, BY_CHANNEL, sent_to(now=("mail",))
    ),
    "address of the thread": case(THREAD, NOBODY, BY_CHANNEL, sent_to(now=("mail",))),
    "child of a sub-agent": case(
        ANNOUNCED.changed(requester=below()),
        NOBODY,
        sending(chat=OF_CHAT, all={}),
        sent_to(now=("all",)),
    ),
    "address erased, webhooks as they were": case(ANNOUNCED, CHAT, SLOWER, erased=[HERE]),
    "hook may name another place": case(
        ANNOUNCED, BASE, hooks(**TARGET), Outcome("not-replayable")
    ),
    "hook that named a place is gone": case(
        ANNOUNCED.changed(told_to=THERE), hooks(**TARGET), BASE, Outcome("different-announcement")
    ),
    "runtime delivers a message's result": case(SENT_BOUND, NEVER, ITSELF, DELIVERED),
    "runtime delivers, no recipient": case(
        BOUND.changed(thread_origin='{"channel": "chat"}'), NEVER, ITSELF
    ),
    "runtime delivers, address erased": case(BOUND, NEVER, ITSELF, NO_ADDRESS, erased=[THERE]),
}


@rows(CASES)
def test_announcement(row: Case) -> None:
    row.check()
