"""Configuration files that are loaded, stored as revisions and found again."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from application.configuration.activate import REVISIONS_REMEMBERED_MAX
from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.configuration.runtimes import CommandRuntime, OpenClawRuntime
from domain.configuration.secrets import SecretReference
from domain.plan.effective import effective_agent_values, effective_values
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import (
    LoadedConfiguration,
    configuration_from_stored,
    load,
    load_recorded,
)
from tests.support.builders.configurations import load_text, load_values
from tests.support.servers.ordinary_user import Becoming

# A file that was written for OpenClaw.
OPENCLAW = """// ~/.openclaw/openclaw.json
{
  $schema: "https://example.com/schema.json",
  meta: { lastTouchedVersion: "2026.5.2" },
  env: { vars: { OPENAI_API_KEY: "sk-s3cret" }, shellEnv: { enabled: true } },
  auth: { profiles: { "anthropic:me": { provider: "anthropic", mode: "token" } } },
  agents: {
    defaults: {
      workspace: "~/.openclaw/workspace",
      model: { primary: "anthropic/claude", fallbacks: ["openai/gpt"] },
      models: { "anthropic/claude": { alias: "opus", params: { temperature: 0.7 } } },
      imageModel: "openai/image",
      maxConcurrent: 4,
      timeoutSeconds: 600,
      heartbeat: { every: "30m" },
      sandbox: { mode: "non-main", scope: "agent", docker: { env: { X: "s3cret" } } },
      subagents: { maxConcurrent: 8, archiveAfterMinutes: 60, thinking: "low" },
    },
    list: [
      { id: "main", default: true, identity: { name: "Molty" },
        subagents: { allowAgents: ["*"], delegationMode: "prefer" } },
      { id: "codex", models: {}, runtime: { type: "acp", acp: { agent: "codex" } } },
    ],
  },
  tools: {
    profile: "coding",
    sessions: { visibility: "tree" },
    subagents: { tools: { deny: ["gateway", "cron"] } },
    sessions_spawn: { attachments: { enabled: true, maxFiles: 10 } },
  },
  models: { providers: { openai: { baseUrl: "https://x/v1", apiKey: "sk-s3cret", models: [
    { id: "gpt", name: "GPT", input: ["text"], cost: { input: 1.25, output: 10, cacheRead: 0 } },
  ] } } },
  session: { scope: "per-sender", dmScope: "main", store: "~/sessions.json" },
  channels: { telegram: { botToken: "123:s3cret", allowFrom: [123456789012] } },
  gateway: { port: 18789, auth: { mode: "token", token: "s3cret" } },
}
"""

RUNTIME = {"type": "command", "command": ["true"]}
LEAD = {"name": "Lead", "subagents": {"allowAgents": ["dev"]}}
DEV = {"subagents": {"allowAgents": [], "thinking": "low"}, "model": "acme/small"}
REFERENCE = SecretReference.model_validate({"$secret": "/agents/list/0/runtime/env/WORD"})


def entries(**defaults: Any) -> dict[str, Any]:
    """Return a roster of agents that is keyed by their ids."""
    return {
        "ownership": "explicit",
        "defaults": {"runtime": RUNTIME, **defaults},
        "entries": {"Lead": LEAD, "dev": DEV},
    }


def test_openclaw_file_is_loaded() -> None:
    loaded = load_text(OPENCLAW, "openclaw.json")
    configuration = loaded.configuration
    main = configuration.effective_agent("main")
    assert configuration.agent_ids() == ("main", "codex")
    assert main.subagents.allow_agents == ("*",)
    assert (main.model, main.sandbox_mode) == ("anthropic/claude", "non-main")
    assert configuration.subagent_defaults.thinking == "low"
    assert configuration.model_aliases() == {"opus": "anthropic/claude"}
    assert configuration.tools.subagents.tools.deny == ("gateway", "cron")
    assert configuration.tools.sessions_spawn.attachments.max_files == 10
    assert isinstance(configuration.effective_agent("codex").runtime, OpenClawRuntime)
    cost = configuration.models.cost_of("openai", "gpt")
    assert cost is not None
    assert cost.output == 10
    assert "s3cret" not in loaded.stored_text
    assert configuration.extra["channels"]["telegram"]["allowFrom"] == [123456789012]

    assert configuration_from_stored(loaded.stored) == configuration
    again = load_values(loaded.stored)
    assert (again.stored, again.secret_pointers) == (loaded.stored, ())


def test_stored_revision_holds_no_value_of_this_process() -> None:
    text = """{
      spawnlog: { databaseUrl: "postgres://u:s3cret@h/d",
        tokens: [{ id: "a", token: "${A}", scopes: ["read"], sessions: ["agent:main:*"] }] },
      agents: { defaults: { runtime: { type: "command", command: ["x"], env: { A: "s3cret" } } } },
    }"""
    configuration = configuration_from_stored(load_text(text, "x").stored)
    assert configuration.spawnlog.database_url is None
    assert configuration.spawnlog.tokens[0].token.variable == "A"
    runtime = configuration.effective_agent("main").runtime
    assert isinstance(runtime, CommandRuntime)
    place = "/agents/defaults/runtime/env/A"
    assert runtime.env["A"] == SecretReference.model_validate({"$secret": place})


def test_stored_revision_that_cannot_be_read_says_why() -> None:
    with pytest.raises(ConfigurationError) as refused:
        configuration_from_stored({"spawnlog": {"invented_later": 1}})
    assert str(refused.value) == "kept revision: spawnlog.invented_later: unknown key"


def test_keys_keep_the_order_of_the_file() -> None:
    assert load_text("{z: 1, a: {y: 2, b: 'é'}}", "x").stored_text == '{"z":1,"a":{"y":2,"b":"é"}}'
    assert load_text("{}", "x").configuration == Configuration()


def test_builtin_configuration_needs_no_file() -> None:
    loaded = load(None)
    assert (loaded.configuration, loaded.path) == (Configuration.builtin(), None)
    assert configuration_from_stored(loaded.stored) == loaded.configuration
    assert loaded.stored_text == (
        '{"agents":{"list":[{"id":"main","runtime":'
        '{"type":"command","command":["cat"],"input":"stdin-text"}}]}}'
    )
    assert loaded.source == "built-in"
    found = load_recorded(1, loaded.source, loaded.stored_text)
    assert (found.missing, found.path, found.stored) == (None, None, loaded.stored)


def test_relative_paths_start_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "x.json5").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    loaded = load(Path("here/x.json5"))
    assert loaded.folder == tmp_path / "here"
    assert loaded.source == str(tmp_path / "here" / "x.json5")
    assert loaded.path_of("a/b") == tmp_path / "here" / "a" / "b"
    assert loaded.path_of("/a") == Path("/a")
    assert loaded.path_of("~/a") == Path("/home/somebody/a")
    with pytest.raises(ConfigurationError, match="home folder"):
        loaded.path_of("~nobody-of-this-name/a")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", ":1:1: is empty"),
        (b"{a: 1", ":1:1: the { that opens here is never closed"),
        (b"{a: 1}\n{a: 2}", ":2:1: unexpected text"),
        (b"{a: 'x\xff'}", ":1: is not UTF-8"),
        (b"{\n}\n\x00", ":3:1: contains NUL"),
        (b"\xff\xfe{\x00}\x00", ":1: is not UTF-8"),
        (b"{a: '" + b"x" * 600_000 + b"'}", ": is larger than 512 KiB"),
        (b"[" * 500_000, "nested deeper than 100 levels"),
        (b"{a: NaN}", ":1:5: a: NaN and Infinity are not allowed"),
        (b"{a: '\\ud800'}", ":1:5: a: the string contains half of a surrogate pair"),
        (b"{a: '\\0'}", "NUL"),
        (b"{a: 1, a: 2}", ":1:8: a: duplicate key"),
    ],
)
def test_unreadable_content_says_where_and_why(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "x.json5"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as refused:
        load(path)
    assert str(refused.value).startswith(f"{path}:")
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("none.json5", "there is no such file"),
        ("a\0b", "cannot be read"),
        ("x" * 5000, "cannot be read"),
        (".", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("/dev/zero", "is not a regular file"),
    ],
)
def test_path_without_regular_file_is_refused(tmp_path: Path, path: str, problem: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match=problem):
        load(tmp_path / path)


def test_file_without_permission_is_refused(tmp_path: Path, becoming_ordinary: Becoming) -> None:
    path = tmp_path / "x.json5"
    path.write_text("{}")
    path.chmod(0)
    denied = pytest.raises(ConfigurationError, match="cannot be read: Permission denied")
    with becoming_ordinary(), denied:
        load(path)


# Agents as `agents.entries`, keyed by their ids.


def test_entries_are_read_like_a_list() -> None:
    agents = {
        "defaults": {"runtime": RUNTIME},
        "list": [{"id": "Lead", **LEAD}, {"id": "dev", **DEV}],
    }
    listed = load_values({"agents": agents}).configuration
    keyed = load_values({"agents": entries()}).configuration
    assert keyed.agent_ids() == ("lead", "dev")
    for agent_id in keyed.agent_ids():
        assert keyed.agent(agent_id) == listed.agent(agent_id)
        assert keyed.effective_agent(agent_id) == listed.effective_agent(agent_id)


def test_entries_stay_entries_in_stored_revision() -> None:
    loaded = load_values({"agents": entries()})
    assert loaded.stored["agents"] == entries()
    read_back = configuration_from_stored(loaded.stored)
    assert read_back.agent_ids() == ("lead", "dev")
    written = effective_values(read_back, loaded.stored)["agents"]
    assert list(written["entries"]) == ["lead", "dev"]
    assert "list" not in written


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "lead"),
        ({"systemAgent": {"agentId": "DEV"}}, "dev"),
        ({"systemAgent": {"agentId": "x"}}, "lead"),
    ],
)
def test_system_agent_is_the_default(more: dict[str, Any], expected: str) -> None:
    loaded = load_values({"agents": entries(**more)})
    assert loaded.configuration.default_agent_id == expected


def test_values_and_warnings_name_their_entry() -> None:
    rows = effective_agent_values(load_values({"agents": entries()}).configuration, "dev") or ()
    sources = {row.key: row.source for row in rows}
    assert sources["id"] == "agents.entries.dev"
    assert sources["thinking"] == "agents.entries.dev.subagents.thinking"
    assert sources["model"] == "agents.entries.dev.model"
    agents = {"entries": {"a": {"runtime": RUNTIME, "subagents": {"allowAgents": ["b"]}}}}
    (warning,) = load_values({"agents": agents}).warnings
    assert str(warning).startswith("config: agents.entries.a.subagents.allowAgents[0]: is not")


# The file of a revision, found by its recorded path.


def write(path: Path, word: str = "s3cret", *, width: int = 3) -> LoadedConfiguration:
    """Write a file with a secret and load it."""
    agents: dict[str, Any] = {
        "defaults": {"subagents": {"maxConcurrent": width}},
        "list": [{"id": "main", "runtime": {**RUNTIME, "env": {"WORD": word}}}],
    }
    path.write_text(json.dumps({"agents": agents}), "utf-8")
    return load(path)


def pinned(revision: int, loaded: LoadedConfiguration) -> PinnedConfiguration:
    return PinnedConfiguration(revision, loaded.configuration, loaded.stored)


@pytest.fixture
def own(tmp_path: Path) -> LoadedConfiguration:
    return write(tmp_path / "own.json5", "own")


@pytest.fixture
def foreign(tmp_path: Path) -> LoadedConfiguration:
    """Return a file with other values."""
    return write(tmp_path / "other.json5", "other", width=4)


def test_unchanged_file_gives_its_present_secrets(own: LoadedConfiguration, tmp_path: Path) -> None:
    write(tmp_path / "own.json5", "another")
    found = load_recorded(1, own.source, own.stored_text)
    assert (found.missing, found.resolve(REFERENCE)) == (None, "another")


@pytest.mark.parametrize(
    ("fate", "why"),
    [
        ("gone", "there is no such file"),
        ("changed", "changed since revision 1 was activated"),
        ("broken", "own.json5:1:"),
        ("pipe", "is not a regular file"),
    ],
)
def test_unusable_file_gives_no_secrets(
    fate: str, why: str, own: LoadedConfiguration, tmp_path: Path
) -> None:
    path = tmp_path / "own.json5"
    path.unlink()
    if fate == "changed":
        write(path, width=4)
    elif fate == "broken":
        path.write_text("{")
    elif fate == "pipe":
        os.mkfifo(path)
    found = load_recorded(1, own.source, own.stored_text)
    assert found.missing is not None
    assert why in found.missing
    assert str(path) in found.missing
    assert (found.configuration, found.folder) == (own.configuration, tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be used") as failure:
        found.resolve(REFERENCE)
    assert str(path) not in str(failure.value)
    assert found.resolve("${NAME}", {"NAME": "of the environment"}) == "of the environment"


def test_recorded_name_without_folder_is_no_path() -> None:
    found = load_recorded(1, "spawnlog.json5", "{}")
    assert found.missing == "spawnlog.json5: its folder is not recorded"


async def test_each_revision_has_secrets_of_its_file(
    own: LoadedConfiguration, foreign: LoadedConfiguration
) -> None:
    files = LoadedFiles()
    files.assign(1, own)
    await files.find(2, foreign.source, foreign.stored_text)
    assert files.file_of(pinned(1, own)).resolve(REFERENCE) == "own"
    assert files.file_of(pinned(2, foreign)).resolve(REFERENCE) == "other"


async def test_files_of_old_revisions_are_forgotten(own: LoadedConfiguration) -> None:
    files = LoadedFiles()
    for revision in range(1, REVISIONS_REMEMBERED_MAX + 6):
        files.note_found(revision, own)
    assert [*files._files] == [*range(6, REVISIONS_REMEMBERED_MAX + 6)]
    assert files.file_of(pinned(1, own)) is own


async def test_lost_file_is_replaced_by_assigned_one(
    own: LoadedConfiguration,
    foreign: LoadedConfiguration,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "other.json5").unlink()
    files = LoadedFiles()
    files.assign(1, own)
    await files.find(2, foreign.source, foreign.stored_text)
    assert files.file_of(pinned(2, foreign)) is own
    (record,) = caplog.records
    same_places = f"its secrets are looked up at the same places in {own.source}"
    assert record.getMessage().endswith(same_places)


async def test_lost_file_is_not_replaced_by_found_one(
    own: LoadedConfiguration, foreign: LoadedConfiguration, tmp_path: Path
) -> None:
    (tmp_path / "other.json5").unlink()
    files = LoadedFiles()
    files.note_found(1, own)
    await files.find(2, foreign.source, foreign.stored_text)
    assert files.file_of(pinned(2, foreign)).missing is not None
    assert files.file_of(pinned(1, own)).resolve(REFERENCE) == "own"


async def test_file_that_is_not_read_in_time_is_missing(
    own: LoadedConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LoadedFiles()
    monkeypatch.setattr("infrastructure.outbound.configuration.files.FIND_SECONDS_MAX", 0)
    await files.find(1, own.source, own.stored_text)
    assert files.file_of(pinned(1, own)).missing == f"{own.source}: it cannot be read in 0 s"
