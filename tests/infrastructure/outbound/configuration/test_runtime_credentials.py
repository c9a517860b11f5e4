"""Which variables of a runtime are masked in what its child prints: those that are secrets."""

import json
from pathlib import Path

import pytest

from application.ports.configurations import PinnedConfiguration, SecretMissing
from application.ports.credentials import Credential
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import load, load_recorded
from infrastructure.outbound.credentials.agent_credentials import AgentCredentials
from tests.support.builders.configurations import load_values

KEY = "-----BEGIN RSA PRIVATE KEY-----\nabcdefghijklmnop\n-----END RSA PRIVATE KEY-----"
ENV = {
    "API_TOKEN": "named like a secret",
    "BY_REFERENCE": "${ITS_API_KEY}",
    "IDENTITY": KEY,
    "IDENTITY_OF_SERVER": "${ITS_IDENTITY}",
    "STORE": "postgres://user:canary-password@host/db",
    "GREETING": "good morning",
    "PLACE": "${ITS_PLACE}",
}


async def test_what_is_named_like_a_secret_or_shows_itself_as_one_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ITS_API_KEY", "of the server")
    monkeypatch.setenv("ITS_IDENTITY", KEY)
    monkeypatch.setenv("ITS_PLACE", "Harbour")
    runtime = {"type": "command", "command": ["true"], "env": ENV}
    values = {"agents": {"list": [{"id": "main", "runtime": runtime}]}}
    loaded, files = load_values(values, folder=tmp_path), LoadedFiles()
    files.assign(1, loaded)
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    made = await AgentCredentials(files, tmp_path / "agents").environment(pinned, "main")
    assert made["STORE"] == ENV["STORE"]
    masked = {name for name, value in made.items() if isinstance(value, Credential)}
    assert masked == {"API_TOKEN", "BY_REFERENCE", "IDENTITY", "IDENTITY_OF_SERVER", "STORE"}


async def test_error_of_a_missing_file_does_not_tell_its_path(tmp_path: Path) -> None:
    runtime = {"type": "command", "command": ["true"], "env": {"API_TOKEN": "literal"}}
    path = tmp_path / "gone.json5"
    path.write_text(json.dumps({"agents": {"list": [{"id": "main", "runtime": runtime}]}}), "utf-8")
    kept, files = load(path), LoadedFiles()
    path.unlink()
    files.note_found(1, load_recorded(1, kept.source, kept.stored_text))
    pinned = PinnedConfiguration(1, kept.configuration, kept.stored)
    credentials = AgentCredentials(files, tmp_path / "agents")
    found = await credentials.found(pinned, pinned.configuration.effective_agent("main"))
    with pytest.raises(SecretMissing) as failure:
        await credentials.environment(pinned, "main")
    for text in (found.missing[0].text, str(failure.value)):
        assert "its configuration file cannot be used; the server's log says why" in text
        assert "gone" not in text


async def test_error_of_another_file_does_not_tell_its_path(tmp_path: Path) -> None:
    runtime = {"type": "command", "command": ["true"], "env": {"API_TOKEN": "literal"}}
    values = {"agents": {"list": [{"id": "main", "runtime": runtime}]}}
    kept, files = load_values(values, folder=tmp_path), LoadedFiles()
    other = tmp_path / "other.json5"
    other.write_text("{}", "utf-8")
    files.assign(2, load(other))
    pinned = PinnedConfiguration(1, kept.configuration, kept.stored)
    with pytest.raises(SecretMissing, match="the value of API_TOKEN cannot be had") as failure:
        await AgentCredentials(files, tmp_path / "agents").environment(pinned, "main")
    assert "other.json5" not in str(failure.value)
