"""Tokens of a file: each secret is read once per revision, and a missing one does not prevent a
start.
"""

import logging
from pathlib import Path
from typing import Any

import pytest

from application.log.envelope import SYSTEM
from infrastructure.outbound.identity.page_tokens import PostgresPageTokens, digest_of
from infrastructure.outbound.identity.tokens import (
    ChildTokenSigner,
    ConfiguredTokens,
    KnownTokens,
    admin_token,
)
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.configurations import load_values
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations

SET, UNSET = "SPAWNLOG_TEST_TOKEN", "SPAWNLOG_TEST_TOKEN_NOBODY_SETS"


def values(*names: str) -> dict[str, Any]:
    tokens = [
        {"id": name.lower(), "token": f"${{{name}}}", "scopes": ["read"], "sessions": ["*"]}
        for name in names
    ]
    return {"spawnlog": {"tokens": tokens}}


@pytest.fixture
async def active(
    running: RunningLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ServerConfigurations:
    monkeypatch.setenv(SET, "a-secret-of-some-length")
    monkeypatch.delenv(UNSET, raising=False)
    return ServerConfigurations(running, tmp_path)


async def test_unset_token_is_warned_of_once(
    active: ServerConfigurations, caplog: pytest.LogCaptureFixture
) -> None:
    await active.activate(load_values(values(UNSET, SET)), SYSTEM)
    tokens = ConfiguredTokens(active, active.files)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            (known,) = tokens()
            assert known.digest == digest_of("a-secret-of-some-length")
    (warning,) = caplog.messages
    assert f"token {UNSET.lower()} cannot be used" in warning
    assert UNSET in warning
    assert "a-secret" not in caplog.text


async def test_new_revision_is_read_again(
    active: ServerConfigurations, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = ConfiguredTokens(active, active.files)
    await active.activate(load_values(values(UNSET)), SYSTEM)
    assert tokens() == ()
    await active.activate(load_values(values(UNSET, SET)), SYSTEM)
    assert [token.id for token in tokens()] == [SET.lower()]
    assert len(caplog.messages) == 2


async def test_reload_reads_changed_token_of_same_revision(
    active: ServerConfigurations, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    token = {"id": "board", "token": {"file": str(secret)}, "scopes": ["read"], "sessions": ["*"]}
    tokens = ConfiguredTokens(active, active.files)
    for text in ("the-first-secret", "the-second-secret"):
        secret.write_text(text, "utf-8")
        assert await active.activate(load_values({"spawnlog": {"tokens": [token]}}), SYSTEM) == 1
        assert [token.digest for token in tokens()] == [digest_of(text)]


def for_sessions(*patterns: str, **session: str) -> dict[str, Any]:
    token = {"id": "one", "token": f"${{{SET}}}", "scopes": ["read"], "sessions": list(patterns)}
    agents = {"list": [{"id": "steward"}, {"id": "main"}]}
    return {"spawnlog": {"tokens": [token]}, "session": session, "agents": agents}


@pytest.mark.parametrize(
    ("written", "fits"),
    [
        ("main", "agent:steward:home"),
        (" HOME ", "agent:steward:home"),
        ("agent::Main : Cli:", "agent:main:cli"),
        ("board", "agent:steward:board"),
        ("Agent:Main:\u03a3:X\u03a3:Y", "agent:main:\u03c3:x\u03c3:y"),
        ("*", "*"),
        ("Agent::Main : Cli-*", "agent:main:cli-*"),
        ("agent:*:subagent:*:", "agent:*:subagent:*"),
    ],
)
async def test_pattern_is_spelled_as_freely_as_a_key(
    active: ServerConfigurations, written: str, fits: str
) -> None:
    await active.activate(load_values(for_sessions(written, mainKey="Home")), SYSTEM)
    (known,) = ConfiguredTokens(active, active.files)()
    assert known.patterns == (fits,)


async def test_revision_says_what_main_is(active: ServerConfigurations) -> None:
    tokens = ConfiguredTokens(active, active.files)
    output: list[tuple[str, ...]] = []
    for session in ({}, {"mainKey": "home"}, {"scope": "global"}):
        await active.activate(load_values(for_sessions("main", **session)), SYSTEM)
        output += [known.patterns for known in tokens()]
    assert output == [("agent:steward:main",), ("agent:steward:home",), ("global",)]


async def test_session_spelled_twice_is_one(
    active: ServerConfigurations, running: RunningLog
) -> None:
    await active.activate(load_values(for_sessions("main", "Agent:Steward:MAIN")), SYSTEM)
    tokens = KnownTokens(
        admin_token("admin"),
        ConfiguredTokens(active, active.files),
        ChildTokenSigner(b"k" * 32),
        PostgresRegistry(running.pool),
        PostgresPageTokens(running.pool),
    )
    caller = await tokens.caller_of("a-secret-of-some-length")
    assert caller is not None
    assert caller.only_session == caller.actor.name == "agent:steward:main"


@pytest.mark.parametrize("wrong", ["agent:main", "agent:a b:x", ":*", "* :", "::"])
async def test_pattern_that_fits_no_session_is_warned_of(
    active: ServerConfigurations, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    await active.activate(load_values(for_sessions(wrong, "agent:main:*")), SYSTEM)
    with caplog.at_level(logging.WARNING):
        (known,) = ConfiguredTokens(active, active.files)()
    assert known.patterns == ("agent:main:*",)
    (warning,) = caplog.messages
    assert "token one" in warning
    assert "matches no session" in warning
    assert warning.isprintable()
