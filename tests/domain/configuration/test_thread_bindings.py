"""Which channels and accounts bind sub-agents to threads."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.configuration.configuration import Configuration
from domain.configuration.session import ThreadBindings, ThreadPolicy

NOT = {"spawnSessions": False}


def policy(
    session: dict[str, Any] | None = None,
    channels: Any = None,
    *,
    channel: str | None = "discord",
    account: str | None = "acct",
) -> ThreadPolicy:
    """What holds at an account of a channel."""
    values: dict[str, Any] = {"session": {"threadBindings": session or {}}, "channels": channels}
    return Configuration.model_validate(values).threads_of(channel, account)


def below(channel: dict[str, Any], **accounts: Any) -> dict[str, Any]:
    return {
        "discord": {
            "threadBindings": channel,
            "accounts": {name: {"threadBindings": one} for name, one in accounts.items()},
        }
    }


def test_where_nobody_says_anything_threads_are_bound_and_contexts_forked() -> None:
    assert policy() == ThreadPolicy(enabled=True, spawn_sessions=True, default_spawn_context="fork")
    assert policy().binds


@pytest.mark.parametrize(
    ("session", "channels", "binds"),
    [
        ({"enabled": False}, None, False),
        (NOT, None, False),
        (NOT, below({"spawnSessions": True}), True),
        ({}, below(NOT), False),
        ({}, below(NOT, acct={"spawnSessions": True}), True),
        ({}, below({}, acct=NOT), False),
        ({}, below({}, other=NOT), True),
        ({}, {"slack": {"threadBindings": NOT}}, True),
        ({"enabled": False}, below({"spawnSessions": True}), False),
        ({"enabled": False}, below({}, acct={"enabled": True}), True),
    ],
)
def test_an_account_speaks_before_its_channel_and_that_before_the_session(
    session: dict[str, Any], channels: Any, binds: bool
) -> None:
    assert policy(session, channels).binds is binds


@pytest.mark.parametrize(
    "channels",
    [
        "discord",
        [],
        {"discord": "on"},
        {"discord": {"threadBindings": "on", "accounts": []}},
        below({"enabled": "no", "spawnSessions": 0, "defaultSpawnContext": "both"}),
        below({"enabled": None}, acct="off"),
    ],
)
def test_what_has_another_shape_at_a_channel_says_nothing(channels: Any) -> None:
    assert policy({}, channels) == ThreadPolicy()


def test_each_value_is_looked_for_by_itself() -> None:
    channels = below({"defaultSpawnContext": "isolated"}, acct={"spawnSessions": False})
    found = policy({"enabled": False}, channels)
    assert found == ThreadPolicy(
        enabled=False, spawn_sessions=False, default_spawn_context="isolated"
    )
    fork = below({"defaultSpawnContext": "isolated"}, acct={"defaultSpawnContext": "fork"})
    assert policy({}, fork).default_spawn_context == "fork"


def test_a_channel_is_found_in_any_case_and_no_account_is_the_default_one() -> None:
    channels = below({}, default=NOT)
    assert not policy({}, channels, channel=" DISCORD ", account=None).binds
    assert policy({}, channels, channel=None, account=None).binds


@pytest.mark.parametrize(
    "section",
    [
        {"enabled": 1},
        {"defaultSpawnContext": "both"},
        {"idleHours": -1},
        {"maxAgeHours": "1"},
        {"idleHours": 876_001},
        {"maxAgeHours": 1e300},
    ],
)
def test_the_section_of_the_session_is_checked(section: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ThreadBindings.model_validate(section)
