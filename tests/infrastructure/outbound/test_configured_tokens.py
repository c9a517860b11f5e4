"""Tokens of a file: each secret is read once a revision, and one that is missing is no stop."""

import logging
from pathlib import Path
from typing import Any

import pytest

from application.envelope import SYSTEM
from infrastructure.outbound.configuration.active import ActiveConfigurations
from infrastructure.outbound.configuration.loading import load_values
from infrastructure.outbound.configured_tokens import ConfiguredTokens
from infrastructure.outbound.identities import RandomIdentities
from infrastructure.outbound.tables.contents import PostgresContents
from infrastructure.outbound.tokens import digest_of
from tests.support.running_log import RunningLog

SET, UNSET = "SPAWNLOG_TEST_TOKEN", "SPAWNLOG_TEST_TOKEN_NOBODY_SETS"


def values(*names: str) -> dict[str, Any]:
    tokens = [
        {"id": name.lower(), "token": f"${{{name}}}", "scopes": ["read"], "sessions": ["*"]}
        for name in names
    ]
    return {"spawnlog": {"tokens": tokens}}


def configurations(running: RunningLog, folder: Path) -> ActiveConfigurations:
    contents = PostgresContents(running.pool)
    return ActiveConfigurations(running.log, contents, RandomIdentities(), folder)


async def test_a_token_that_cannot_be_had_is_warned_about_once_and_the_others_work(
    running: RunningLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(SET, "a-secret-of-some-length")
    monkeypatch.delenv(UNSET, raising=False)
    active = configurations(running, tmp_path)
    await active.activate(load_values(values(UNSET, SET)), SYSTEM)
    tokens = ConfiguredTokens(active)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            (known,) = tokens()
            assert known.digest == digest_of("a-secret-of-some-length")
    (warning,) = caplog.messages
    assert f"token {UNSET.lower()} cannot be used" in warning
    assert UNSET in warning
    assert "a-secret" not in caplog.text


async def test_a_new_revision_is_read_again(
    running: RunningLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(SET, "a-secret-of-some-length")
    monkeypatch.delenv(UNSET, raising=False)
    active = configurations(running, tmp_path)
    tokens = ConfiguredTokens(active)
    await active.activate(load_values(values(UNSET)), SYSTEM)
    assert tokens() == ()
    await active.activate(load_values(values(UNSET, SET)), SYSTEM)
    assert [one.id for one in tokens()] == [SET.lower()]
    assert len(caplog.messages) == 2


async def test_the_same_file_read_again_gives_a_token_that_was_changed_meanwhile(
    running: RunningLog, tmp_path: Path
) -> None:
    """The text of a token is no part of a revision: a reload that changes nothing else reads it."""
    secret = tmp_path / "token"
    token = {"id": "board", "token": {"file": str(secret)}, "scopes": ["read"], "sessions": ["*"]}
    active = configurations(running, tmp_path)
    tokens = ConfiguredTokens(active)
    for text in ("the-first-secret", "the-second-secret"):
        secret.write_text(text, "utf-8")
        assert await active.activate(load_values({"spawnlog": {"tokens": [token]}}), SYSTEM) == 1
        assert [one.digest for one in tokens()] == [digest_of(text)]
