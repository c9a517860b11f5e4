# ruff: noqa: E501  (a mistake and its message are read side by side)
"""Mistakes in a configuration file: their places and texts."""

import sys
from pathlib import Path
from typing import Any

import pytest

from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from infrastructure.outbound.configuration.load import load
from tests.support.builders.configurations import load_text, load_values

CANARY = "canary-5a1e2b"
HERE = "http://127.0.0.1:1/v1"
MODEL = {"type": "model", "baseUrl": HERE, "model": "m"}


def problems_of(text: str) -> list[str]:
    """Return the problems of a text as they are printed."""
    with pytest.raises(ConfigurationError) as refused:
        load_text(text, "spawnlog.json5")
    assert str(refused.value) == "\n".join(str(problem) for problem in refused.value.problems)
    return [str(problem) for problem in refused.value.problems]


def with_runtime(runtime: dict[str, Any]) -> dict[str, Any]:
    return {"agents": {"defaults": {"runtime": runtime}}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        # keys without another source
        ("{spawnlog: {prot: 1}}", '1:13: spawnlog.prot: unknown key; did you mean "port"?'),
        ("{spawnlog: {data_dir: 'x'}}", '1:13: spawnlog.data_dir: unknown key; did you mean "dataDir"?'),
        ("{spawnlog: {zebra: 1}}", "1:13: spawnlog.zebra: unknown key"),
        ("{agents: {lists: []}}", '1:11: agents.lists: unknown key; did you mean "list"?'),
        ("{agents: {list: [{id: 'a', subagents: {maxSpawnDepth: 2}}]}}", "1:40: agents.list[0].subagents.maxSpawnDepth: applies to all agents; move it to agents.defaults.subagents"),
        ("{agents: {defaults: {subagents: {contextScripts: {run: [], ignore: []}}}}}", "1:60: agents.defaults.subagents.contextScripts.ignore: unknown key"),
        ("{tools: {subagents: {deny: []}}}", "1:22: tools.subagents.deny: unknown key"),
        ("{models: {providers: {p: {models: [{id: 'a', cost: {cacheread: 1}}]}}}}", '1:53: models.providers.p.models[0].cost.cacheread: unknown key; did you mean "cacheRead"?'),
        ("{agents: {defaults: {runtime: {type: 'command', command: ['x'], inputs: 'argv'}}}}", '1:65: agents.defaults.runtime.inputs: unknown key; did you mean "input"?'),
        ("{agents: {defaults: {runtime: {type: 'scripted', provideSandbox: true}}}}", '1:50: agents.defaults.runtime.provideSandbox: unknown key; did you mean "providesSandbox"?'),
        ("{agents: {defaults: {runtime: {type: 'command', command: ['x'], model: ['m']}}}}", '1:65: agents.defaults.runtime.model: unknown key; did you mean "models"?'),
        ("{spawnlog: {workspaceRoot: []}}", '1:13: spawnlog.workspaceRoot: unknown key; did you mean "workspaceRoots"?'),
        ("{agents: {defaults: {sandbox: {providesSandbox: true}}}}", '1:32: agents.defaults.sandbox.providesSandbox: belongs in "runtime"'),
        ("{agents: {list: [{id: 'a', providesSandbox: true}]}}", '1:28: agents.list[0].providesSandbox: belongs in "runtime"'),
        # placeholders where nothing is replaced
        ("{agents: {defaults: {runtime: {type: 'command', command: ['x'], cwd: '${HOME}/x'}}}}", "1:70: agents.defaults.runtime.cwd: ${HOME} is not replaced here; omit cwd and write it into workspace, where it is replaced"),
        ("{agents: {list: [{id: 'a', runtime: {type: 'command', command: ['${BIN}/a b']}}]}}", "1:65: agents.list[0].runtime.command[0]: ${BIN} is not replaced in a command; put it into env, where it is replaced, and read it there"),
        ("{agents: {list: [{id: 'a', runtime: {type: 'command', command: ['x', '--key=${KEY}']}}]}}", "1:70: agents.list[0].runtime.command[1]: ${KEY} is not replaced in a command; put it into env, where it is replaced, and read it there"),
        ("{agents: {list: [{id: 'a', runtime: {type: 'command', command: ['x{prompt}'], input: 'argv'}}]}}", "1:65: agents.list[0].runtime.command[0]: {prompt} is not replaced in the name of the program; put it into a later item"),
        ("{spawnlog: {host: '${HOST}'}}", "1:19: spawnlog.host: ${HOST} is not replaced here; write the name itself, or set it with SPAWNLOG_HOST or --host"),
        # misspellings in sections that are shared
        ("{agent: {}}", '1:2: agent: unknown key; did you mean "agents"?'),
        ("{spawnlogs: {}}", '1:2: spawnlogs: unknown key; did you mean "spawnlog"?'),
        ("{agents: {defaults: {subagent: {}}}}", '1:22: agents.defaults.subagent: unknown key; did you mean "subagents"?'),
        ("{agents: {defaults: {contextScripts: {}}}}", '1:22: agents.defaults.contextScripts: belongs in "subagents"'),
        ("{agents: {list: [{id: 'a', maxSpawnDepth: 1}]}}", '1:28: agents.list[0].maxSpawnDepth: applies to all agents; move it to agents.defaults.subagents'),
        ("{agents: {list: [{id: 'a', allowAgents: []}]}}", '1:28: agents.list[0].allowAgents: belongs in "subagents"'),
        ("{tools: {subagents: {tools: {allow: ['read', ' ']}}}}", "1:46: tools.subagents.tools.allow[1]: must not be blank; write the name of a tool, group:… or *"),
        ("{tools: {subagents: {tools: {alsoAllow: ['']}}}}", "1:42: tools.subagents.tools.alsoAllow[0]: must not be blank; write the name of a tool, group:… or *"),
        ("{tools: {subagents: {tools: {deny: ['\\t']}}}}", "1:37: tools.subagents.tools.deny[0]: must not be blank; write the name of a tool, group:… or *"),
        ("{tools: {sessionsSpawn: {}}}", '1:10: tools.sessionsSpawn: unknown key; did you mean "sessions_spawn"?'),
        ("{session: {mainKey: 'agent:ops:main'}}", "1:21: session.mainKey: must be only the part of a session key after agent:<agentId>:"),
        ("{session: {mainKey: ' : Agent : ops'}}", "1:21: session.mainKey: must be only the part of a session key after agent:<agentId>:"),
        ("{session: {mainKey: '\u3164x'}}", "1:21: session.mainKey: is not valid in a session key: A session key must not contain control characters or invisible formatting characters."),
        (f"{{session: {{mainKey: '{'😀' * 128}'}}}}", "1:21: session.mainKey: is not valid in a session key: A session key must not be longer than 512 bytes."),
        ("{session: {mainkey: 'x'}}", '1:12: session.mainkey: unknown key; did you mean "mainKey"?'),
        # values
        ("[]", "1:1: must be an object: { … }"),
        ("{agents: []}", "1:10: agents: must be an object"),
        ("{agents: {list: {}}}", "1:17: agents.list: must be a list"),
        ("{agents: {list: [{}]}}", "1:18: agents.list[0].id: is required"),
        ("{agents: {list: [{id: 5}]}}", "1:23: agents.list[0].id: must be a string"),
        ("{spawnlog: {noAuth: 'yes'}}", "1:21: spawnlog.noAuth: must be true or false"),
        ("{spawnlog: {port: '8700'}}", "1:19: spawnlog.port: must be a whole number"),
        ("{spawnlog: {port: 8700.5}}", "1:19: spawnlog.port: must be a whole number"),
        ("{spawnlog: {port: 70000}}", "1:19: spawnlog.port: must be at most 65535"),
        ("{spawnlog: {leaseSeconds: 0}}", "1:27: spawnlog.leaseSeconds: must be at least 1"),
        ("{spawnlog: {scriptTimeoutSeconds: 0}}", "1:35: spawnlog.scriptTimeoutSeconds: must be greater than 0"),
        ("{spawnlog: {host: 'h h'}}", "1:19: spawnlog.host: must be a host name or an address, without a scheme or a path"),
        ("{session: {scope: 'globl'}}", '1:19: session.scope: must be one of "per-sender", "global"; did you mean "global"?'),
        ("{agents: {defaults: {runtime: {type: 'comand'}}}}", '1:38: agents.defaults.runtime.type: must be one of "command", "scripted", "external", "worker", "model", "embedded", "acp"; did you mean "command"?'),
        ("{agents: {defaults: {runtime: {}}}}", '1:31: agents.defaults.runtime: must be an object with a "type"'),
        ("{agents: {defaults: {runtime: {type: 'command', command: ['x'], env: {'A/B': 'x'}}}}}", "1:78: agents.defaults.runtime.env.A/B: is not a valid name of an environment variable"),
        ("{agents: {defaults: {runtime: {type: 'command', command: ['x'], env: {A: 5}}}}}", "1:74: agents.defaults.runtime.env.A: must be a string"),
        ("{agents: {defaults: {runtime: {type: 'command', command: ['x'], env: {A: {file: 'x'}}}}}}", "1:74: agents.defaults.runtime.env.A: must be a string"),
        ("{agents: {defaults: {runtime: {type: 'command', command: ['x', 5]}}}}", "1:64: agents.defaults.runtime.command[1]: must be a string"),
        ("{agents: {list: [{id: 'a'}, {id: 'A '}]}}", '1:34: agents.list[1].id: there is another agent "a"; ids must differ in more than case'),
        ("{agents: {list: [{id: 'my agent'}]}}", "1:23: agents.list[0].id: an agent id is 1 to 64 letters, digits, underscores and hyphens, the first a letter or digit"),
        ("{agents: {defaults: {model: {primery: 'x'}}}}", '1:30: agents.defaults.model.primery: unknown key; did you mean "primary"?'),
        # values that would silently be missing
        ("{$include: './a.json5'}", "1:2: $include: is not supported; put the content of the other file here"),
        ("{models: {providers: {$include: './a.json5'}}}", "1:23: models.providers.$include: is not supported; put the content of the other file here"),
        ("{channels: {x: {$secret: '/a'}}}", "1:17: channels.x.$secret: is allowed only in stored revisions; write the value or ${NAME}"),
        # duplicate keys, and lines
        ("{session: {scope: 'global',\n 'scope': 'global'}}", "2:2: session.scope: duplicate key"),
        ("{\n  agents: {\n    defaults: {\n      subagents: { maxSpawnDept: 2 },\n    },\n  },\n}", '4:20: agents.defaults.subagents.maxSpawnDept: unknown key; did you mean "maxSpawnDepth"?'),
        # agents that are keyed by their ids
        ("{agents: {entries: {a: {id: 'a'}}}}", "1:25: agents.entries.a.id: remove it; the key of the entry is the agent's id"),
        ("{agents: {entries: {a: {}}, list: []}}", "1:20: agents.entries: cannot be combined with agents.list; keep one of the two"),
        ("{agents: {entries: {a: {}, A: {}}}}", '1:31: agents.entries.A: there is another agent "a"; ids must differ in more than case'),
        ("{agents: {entries: {'a b': {}}}}", '1:28: agents.entries["a b"]: an agent id is 1 to 64 letters, digits, underscores and hyphens, the first a letter or digit'),
        ("{agents: {entries: {a: {subagents: {maxSpawnDepth: 1}}}}}", "1:37: agents.entries.a.subagents.maxSpawnDepth: applies to all agents; move it to agents.defaults.subagents"),
        ("{agents: {entries: {a: {subagents: {allowAgents: 1}}}}}", "1:50: agents.entries.a.subagents.allowAgents: must be a list"),
        ("{agents: {entries: {a: {runtime: {type: 'command', command: ['${BIN}']}}}}}", "1:62: agents.entries.a.runtime.command[0]: ${BIN} is not replaced in a command; put it into env, where it is replaced, and read it there"),
        ("{agents: {entries: {a: {workspce: '/x'}}}}", '1:25: agents.entries.a.workspce: unknown key; did you mean "workspace"?'),
    ],
)  # fmt: skip
def test_mistake_is_reported_with_place_and_remedy(text: str, problem: str) -> None:
    assert problems_of(text) == [f"spawnlog.json5:{problem}"]


def test_all_mistakes_are_reported_in_reading_order() -> None:
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


@pytest.mark.parametrize(("count", "listed"), [(50, 50), (51, 51), (20_000, 51)])
def test_first_fifty_mistakes_are_listed(count: int, listed: int) -> None:
    keys = "".join(f"key{at}: 1," for at in range(count))
    unknown = problems_of(f"{{spawnlog: {{{keys}}}}}")
    twice = problems_of(f"{{a: 1, {'a: 1,' * count}}}")
    assert (len(unknown), len(twice)) == (listed, listed)
    assert unknown[0].startswith("spawnlog.json5:1:13: spawnlog.key0: ")
    assert twice[0] == "spawnlog.json5:1:8: a: duplicate key"
    for problems in (unknown, twice):
        is_cut = problems[-1] == "spawnlog.json5: there are more problems; fix these first"
        assert is_cut is (listed > 50)


@pytest.mark.parametrize(
    "text",
    [
        "{spawnlog: {tokens: [{id: 'a', token: 's3cret', scopes: ['read'], sessions: ['*']}]}}",
        "{spawnlog: {databaseUrl: ['s3cret']}}",
        "{spawnlog: {host: 's3cret/x'}}",
        "{agents: {defaults: {runtime: {type: 's3cret'}}}}",
        "{agents: {defaults: {runtime: {type: 'command', command: ['x'], env: {A: ['s3cret']}}}}}",
        "{agents: {defaults: {runtime: {type: 'command', command: 's3cret'}}}}",
        "{agents: {list: [{id: 's3cret agent'}]}}",
    ],
)
def test_message_does_not_repeat_possible_secret(text: str) -> None:
    assert "s3cret" not in "\n".join(problems_of(text))


def test_secret_reference_must_be_json_pointer() -> None:
    load_values({"channels": {"token": {"$secret": "/channels/token"}}})
    for value in ("s3cret", 5, None):
        with pytest.raises(ConfigurationError, match="must be a JSON pointer"):
            load_values({"channels": {"token": {"$secret": value}}})


def test_key_is_escaped_and_shortened_when_printed() -> None:
    problems = problems_of("{spawnlog: {'\\x1b[31m': 1, 'a.b': 2, '': 3, %s: 4}}" % ("k" * 999))
    assert [problem.split(": ")[1] for problem in problems] == [
        'spawnlog["\\x1b[31m"]',
        'spawnlog["a.b"]',
        'spawnlog[""]',
        "spawnlog." + "k" * 80 + "…",
    ]


def test_file_name_that_is_no_text_can_be_printed() -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(Path("\udcff-none"))
    assert str(refused.value).encode().startswith(b"\\udcff-none: there is no such file")


def test_problem_of_values_without_text_has_no_line() -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_values({"spawnlog": {"prot": 1}})
    assert refused.value.problems == (
        ConfigurationProblem("unknown key", "config", "/spawnlog/prot", nearest="port"),
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "a\0b", "\ud800", 10**400])
def test_value_that_cannot_be_stored_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_values({"channels": {"x": value}})
    assert refused.value.problems[0].line is None


def test_keys_of_openclaw_are_no_misspellings() -> None:
    def section(keys: str) -> dict[str, Any]:
        return {key: {"any": ["thing"]} for key in keys.split()}

    defaults = section(
        "imageModel pdfModel utilityModel repoRoot skipBootstrap userTimezone contextTokens"
        " cliBackends memorySearch contextPruning compaction embeddedPi verboseDefault"
        " reasoningDefault elevatedDefault blockStreamingDefault humanDelay timeoutSeconds"
        " typingMode heartbeat maxConcurrent agentRuntime params skills"
    )
    agent = section(
        "description models modelPolicy verboseDefault reasoningDefault skills memorySearch"
        " humanDelay heartbeat identity groupChat params agentRuntime tts"
    )
    top = section(
        "meta env wizard diagnostics logging cli update browser ui secrets auth acp nodeHost"
        " bindings broadcast audio media messages commands approvals cron hooks web channels"
        " discovery canvasHost talk gateway memory skills plugins mcp"
    )
    shared = {
        "tools": "profile allow alsoAllow deny byProvider web media links sessions message"
        " agentToAgent elevated exec fs sandbox loopDetection",
        "session": "dmScope identityLinks resetTriggers idleMinutes reset resetByType store"
        " typingMode sendPolicy agentToAgent threadBindings maintenance",
        "models": "mode bedrockDiscovery pricing",
    }
    agents = {"defaults": defaults, "list": [{"id": "a", **agent}]}
    load_values({**top, "agents": agents, **{name: section(shared[name]) for name in shared}})


def test_shell_program_keeps_its_braces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROGRAM", "cat")
    command = ["sh", "-c", 'exec "${PROGRAM}" --fast']
    runtime = {"type": "command", "command": command, "env": {"PROGRAM": "${PROGRAM}"}}
    assert load_values(with_runtime(runtime)).warnings == ()


# Runtimes that call a model.


@pytest.mark.parametrize(
    ("runtime", "why"),
    [
        ({"baseUrl": ""}, "must be a URL with http"),
        ({"baseUrl": f"ftp://{CANARY}"}, "must be a URL with http"),
        ({"baseUrl": f"http://u:{CANARY}@h/v1"}, "must not contain a user name"),
        ({"baseUrl": "http://h/v1?version=1"}, "must not have a query"),
        ({"model": "a model"}, "must be a model name"),
        ({"requestsMax": 0}, "must be at least 1"),
        ({"timeoutSeconds": 3601}, "must be at most 3600"),
        ({"mcpServers": {"a_b": {"url": HERE}}}, "1 to 32 letters, digits and hyphens"),
        ({"mcpServers": {"A": {"url": HERE}, "a": {"url": HERE}}}, "is repeated in another case"),
        ({"mcpServers": {"a": {"command": ["x"]}}}, "unknown key"),
        ({"mcpServers": {"a": {"url": HERE, "type": "sse"}}}, "only streamable HTTP is supported"),
        ({"mcpServers": {"a": {"url": HERE, "transport": "ws"}}}, "must be .*http"),
        ({"mcpServers": {"a": {"url": HERE, "timeout": 60}}}, "for 60 s write 60000"),
        ({"mcpServers": {"a": {"url": HERE, "timeout": 9000, "requestTimeoutMs": 9000}}}, "has the same meaning as timeout"),
        ({"mcpServers": {"a": {"url": HERE, "headers": {"Host": "x"}}}}, "is set by spawnlog"),
        ({"temperature": 1}, "temperature.*unknown key"),
    ],
)  # fmt: skip
def test_model_runtime_that_cannot_be_called_is_refused(runtime: dict[str, Any], why: str) -> None:
    load_values(with_runtime(MODEL))
    with pytest.raises(ConfigurationError, match=why) as refused:
        load_values(with_runtime({**MODEL, **runtime}))
    assert CANARY not in str(refused.value)


def test_model_runtime_needs_base_url() -> None:
    with pytest.raises(ConfigurationError, match="needs a baseUrl"):
        load_values(with_runtime({"type": "model"}))


def test_model_runtime_without_libraries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    load_values(with_runtime({"type": "scripted"}))
    with pytest.raises(ConfigurationError, match=r"pip install \./client '\.\[model\]'"):
        load_values(with_runtime(MODEL))
