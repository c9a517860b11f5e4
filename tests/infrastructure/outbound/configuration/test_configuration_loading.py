import os
from pathlib import Path

import pytest

from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.configuration.runtimes import CommandRuntime, OpenClawRuntime
from domain.configuration.secrets import SecretReference
from infrastructure.outbound.configuration.load import configuration_from_stored, load
from tests.support.builders.configurations import load_text, load_values
from tests.support.servers.ordinary_user import Becoming

# What a file looks like that was written for OpenClaw.
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


def test_a_file_of_openclaw_works_as_it_is() -> None:
    loaded = load_text(OPENCLAW, "openclaw.json")
    configuration = loaded.configuration

    assert configuration.agent_ids() == ("main", "codex")
    assert configuration.effective_agent("main").subagents.allow_agents == ("*",)
    assert configuration.subagent_defaults.thinking == "low"
    assert configuration.effective_agent("main").model == "anthropic/claude"
    assert configuration.model_aliases() == {"opus": "anthropic/claude"}
    assert configuration.effective_agent("main").sandbox_mode == "non-main"
    assert configuration.tools.subagents.tools.deny == ("gateway", "cron")
    assert configuration.tools.sessions_spawn.attachments.max_files == 10
    assert isinstance(configuration.effective_agent("codex").runtime, OpenClawRuntime)
    cost = configuration.models.cost_of("openai", "gpt")
    assert cost is not None
    assert cost.output == 10
    assert "s3cret" not in loaded.stored_text
    assert configuration.extra["channels"]["telegram"]["allowFrom"] == [123456789012]


def test_a_kept_revision_reads_back_as_the_same_configuration() -> None:
    loaded = load_text(OPENCLAW, "openclaw.json")

    assert configuration_from_stored(loaded.stored) == loaded.configuration
    again = load_values(loaded.stored)
    assert again.stored == loaded.stored
    assert again.secret_pointers == ()


def test_what_only_this_process_needs_is_absent_in_a_kept_revision() -> None:
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
    assert runtime.env["A"] == SecretReference.model_validate(
        {"$secret": "/agents/defaults/runtime/env/A"}
    )


def test_a_revision_that_cannot_be_read_says_why() -> None:
    with pytest.raises(ConfigurationError) as caught:
        configuration_from_stored({"spawnlog": {"invented_later": 1}})

    assert str(caught.value) == "kept revision: spawnlog.invented_later: unknown key"


def test_keys_are_kept_in_the_order_of_the_file() -> None:
    assert load_text("{z: 1, a: {y: 2, b: 'é'}}", "x").stored_text == '{"z":1,"a":{"y":2,"b":"é"}}'


def test_without_a_file_there_is_the_builtin_configuration() -> None:
    loaded = load(None)

    assert loaded.configuration == Configuration.builtin()
    assert configuration_from_stored(loaded.stored) == loaded.configuration
    assert loaded.path is None
    assert loaded.stored_text == (
        '{"agents":{"list":[{"id":"main","runtime":'
        '{"type":"command","command":["cat"],"input":"stdin-text"}}]}}'
    )


def test_an_empty_object_is_a_configuration() -> None:
    assert load_text("{}", "x").configuration == Configuration()


def test_relative_paths_start_from_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "x.json5").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    loaded = load(Path("here/x.json5"))

    assert loaded.folder == tmp_path / "here"
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
        (b"{a: 1, a: 2}", ":1:8: a: this key stands twice"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "x.json5"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:")
    assert problem in str(caught.value)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no such file"):
        load(tmp_path / "none.json5")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_a_path_that_is_none_says_so(path: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(Path(path))


def test_a_folder_or_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    for path in (tmp_path, pipe, Path("/dev/zero")):
        with pytest.raises(ConfigurationError, match="is not a regular file"):
            load(path)


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, becoming_ordinary: Becoming) -> None:
    path = tmp_path / "x.json5"
    path.write_text("{}")
    path.chmod(0)
    denied = pytest.raises(ConfigurationError, match="cannot be read: Permission denied")
    with becoming_ordinary(), denied:
        load(path)
