# ruff: noqa: E501  (a mistake and its message are read side by side)
import sys
from pathlib import Path

import pytest

from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from infrastructure.outbound.configuration.load import load
from tests.support.builders.configurations import load_text, load_values


def problems_of(text: str) -> list[str]:
    """What is wrong with a text, as it is printed."""
    with pytest.raises(ConfigurationError) as caught:
        load_text(text, "spawnlog.json5")
    assert str(caught.value) == "\n".join(str(problem) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def problem_of(text: str) -> str:
    (problem,) = problems_of(text)
    return problem.removeprefix("spawnlog.json5:")


def test_everything_that_is_wrong_is_said_at_once_and_in_reading_order() -> None:
    text = """{
      spawnlog: { port: "x", tokens: [{ id: "a", token: "lit", scopes: ["reed"], sessions: ["*"] }] },
      agents: { defaults: { subagents: { maxSpawnDepth: 9 } }, list: [{ id: "a" }, { id: "A" }] },
      session: { scop: "global" },
    }"""

    assert [problem.split(": ")[1] for problem in problems_of(text)] == [
        "spawnlog.port",
        "spawnlog.tokens[0].token",
        "spawnlog.tokens[0].scopes[0]",
        "agents.defaults.subagents.maxSpawnDepth",
        "agents.list[1].id",
        "session.scop",
    ]


def test_of_very_many_mistakes_fifty_are_listed() -> None:
    keys = ",".join(f"key{number}: 1" for number in range(20_000))
    problems = problems_of(f"{{spawnlog: {{{keys}}}}}")

    assert len(problems) == 51
    assert problems[0].startswith("spawnlog.json5:1:13: spawnlog.key0: ")
    assert problems[-1] == "spawnlog.json5: there are more problems than are listed here"


def test_of_fifty_mistakes_all_are_listed() -> None:
    keys = ",".join(f"key{number}: 1" for number in range(50))
    assert len(problems_of(f"{{spawnlog: {{{keys}}}}}")) == 50


def test_of_keys_that_stand_twice_fifty_are_listed_too() -> None:
    for count, listed in ((51, 50), (20_000, 51)):
        problems = problems_of(f"{{{'a: 1,' * count}}}")
        assert len(problems) == listed
        assert problems[0] == "spawnlog.json5:1:7: a: this key stands twice"


def test_no_message_repeats_a_value_that_may_be_secret() -> None:
    texts = [
        "{spawnlog: {tokens: [{id: 'a', token: 's3cret', scopes: ['read'], sessions: ['*']}]}}",
        "{spawnlog: {databaseUrl: ['s3cret']}}",
        "{spawnlog: {host: 's3cret/x'}}",
        "{agents: {defaults: {runtime: {type: 's3cret'}}}}",
        "{agents: {defaults: {runtime: {type: 'command', command: ['x'], env: {A: ['s3cret']}}}}}",
        "{agents: {defaults: {runtime: {type: 'command', command: 's3cret'}}}}",
        "{agents: {list: [{id: 's3cret agent'}]}}",
    ]

    for text in texts:
        assert "s3cret" not in "\n".join(problems_of(text))


def test_a_key_that_stands_twice_is_a_mistake() -> None:
    assert problem_of("{session: {scope: 'global',\n 'scope': 'global'}}") == (
        "2:2: session.scope: this key stands twice"
    )


def test_a_reference_of_a_kept_revision_is_a_pointer() -> None:
    load_values({"channels": {"token": {"$secret": "/channels/token"}}})
    for value in ("s3cret", 5, None):
        with pytest.raises(ConfigurationError, match="must be a JSON pointer"):
            load_values({"channels": {"token": {"$secret": value}}})


def test_what_a_key_holds_does_not_reach_the_terminal_unexamined() -> None:
    problems = problems_of("{spawnlog: {'\\x1b[31m': 1, 'a.b': 2, '': 3, %s: 4}}" % ("k" * 999))

    assert [problem.split(": ")[1] for problem in problems] == [
        'spawnlog["\\x1b[31m"]',
        'spawnlog["a.b"]',
        'spawnlog[""]',
        "spawnlog." + "k" * 80 + "…",
    ]


def test_a_file_name_that_is_no_text_can_be_printed() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(Path("\udcff-none"))

    assert str(caught.value).encode().startswith(b"\\udcff-none: there is no such file")


def test_values_without_a_text_have_problems_without_lines() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_values({"spawnlog": {"prot": 1}})

    assert caught.value.problems == (
        ConfigurationProblem("unknown key", "config", "/spawnlog/prot", nearest="port"),
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "a\0b", "\ud800", 10**400])
def test_values_that_cannot_be_kept_are_refused(value: object) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_values({"channels": {"x": value}})

    assert caught.value.problems[0].line is None


def test_keys_of_openclaw_are_not_taken_for_misspellings() -> None:
    theirs = {
        "agents": {
            "defaults": "imageModel pdfModel utilityModel repoRoot skipBootstrap userTimezone "
            "contextTokens cliBackends memorySearch contextPruning compaction embeddedPi "
            "verboseDefault reasoningDefault elevatedDefault blockStreamingDefault humanDelay "
            "timeoutSeconds typingMode heartbeat maxConcurrent agentRuntime params skills",
            "list": "description models modelPolicy verboseDefault reasoningDefault skills "
            "memorySearch humanDelay heartbeat identity groupChat params agentRuntime tts",
        },
        "tools": "profile allow alsoAllow deny byProvider web media links sessions message "
        "agentToAgent elevated exec fs sandbox loopDetection",
        "session": "dmScope identityLinks resetTriggers idleMinutes reset resetByType store "
        "typingMode sendPolicy agentToAgent threadBindings maintenance",
        "models": "mode bedrockDiscovery pricing",
    }

    def section(keys: str) -> dict[str, object]:
        return {key: {"any": ["thing"]} for key in keys.split()}

    agents = theirs["agents"]
    assert isinstance(agents, dict)
    top = (
        "meta env wizard diagnostics logging cli update browser ui secrets auth acp nodeHost "
        "bindings broadcast audio media messages commands approvals cron hooks web channels "
        "discovery canvasHost talk gateway memory skills plugins mcp"
    )
    load_values(
        {
            **section(top),
            "agents": {
                "defaults": section(agents["defaults"]),
                "list": [{"id": "a", **section(agents["list"])}],
            },
            **{name: section(str(theirs[name])) for name in ("tools", "session", "models")},
        }
    )


def test_a_program_for_a_shell_keeps_the_braces_it_has() -> None:
    command = ["sh", "-c", 'exec "${PROGRAM}" --fast']
    runtime = {"type": "command", "command": command, "env": {"PROGRAM": "${PROGRAM}"}}
    loaded = load_values({"agents": {"defaults": {"runtime": runtime}}})
    assert loaded.warnings == ()


def test_a_model_needs_an_endpoint_and_has_the_keys_that_are_told_and_no_other() -> None:
    runtime = {"type": "model", "baseUrl": "http://127.0.0.1:1/v1", "model": "m"}
    load_values({"agents": {"defaults": {"runtime": runtime}}})
    with pytest.raises(ConfigurationError, match="needs a baseUrl"):
        load_values({"agents": {"defaults": {"runtime": {"type": "model"}}}})
    with pytest.raises(ConfigurationError, match=r"temperature.*unknown key"):
        load_values({"agents": {"defaults": {"runtime": {**runtime, "temperature": 1}}}})


def test_a_model_is_refused_where_what_calls_models_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    runtime = {"type": "model", "baseUrl": "http://127.0.0.1:1/v1", "model": "m"}
    load_values({"agents": {"defaults": {"runtime": {"type": "scripted"}}}})
    with pytest.raises(ConfigurationError, match=r'pip install "spawnlog\[model\]"'):
        load_values({"agents": {"defaults": {"runtime": runtime}}})


def test_of_very_many_doubts_fifty_are_told() -> None:
    names = [f"agent-{number}" for number in range(2_000)]
    loaded = load_values({"agents": {"defaults": {"subagents": {"allowAgents": names}}}})
    assert len(loaded.warnings) == 50
    assert loaded.warnings[0].pointer == "/agents/defaults/subagents/allowAgents/0"
