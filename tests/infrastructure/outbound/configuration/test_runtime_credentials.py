"""Which variables of a runtime are masked in what its child prints: those that are secrets."""

from pathlib import Path

import pytest

from application.ports.configurations import PinnedConfiguration
from application.ports.credentials import Credential
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.credentials.agent_credentials import AgentCredentials
from tests.support.builders.loaded_configurations import load_values

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
