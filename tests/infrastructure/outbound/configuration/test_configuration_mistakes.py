# ruff: noqa: E501  (a mistake and its message are read side by side)

import pytest

from domain.configuration.problems import ConfigurationError
from tests.support.builders.configurations import load_text


def problems_of(text: str) -> list[str]:
    """What is wrong with a text, as it is printed."""
    with pytest.raises(ConfigurationError) as caught:
        load_text(text, "spawnlog.json5")
    assert str(caught.value) == "\n".join(str(problem) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def problem_of(text: str) -> str:
    (problem,) = problems_of(text)
    return problem.removeprefix("spawnlog.json5:")


def test_a_misspelt_key_is_named_with_its_line_and_the_nearest_key() -> None:
    text = "{\n  agents: {\n    defaults: {\n      subagents: { maxSpawnDept: 2 },\n    },\n  },\n}"

    assert problems_of(text) == [
        "spawnlog.json5:4:20: agents.defaults.subagents.maxSpawnDept: unknown key; "
        'did you mean "maxSpawnDepth"?'
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        # keys that nobody else has a say in
        ("{spawnlog: {prot: 1}}", '1:13: spawnlog.prot: unknown key; did you mean "port"?'),
        ("{spawnlog: {data_dir: 'x'}}", '1:13: spawnlog.data_dir: unknown key; did you mean "dataDir"?'),
        ("{spawnlog: {zebra: 1}}", "1:13: spawnlog.zebra: unknown key"),
        ("{agents: {lists: []}}", '1:11: agents.lists: unknown key; did you mean "list"?'),
        (
            "{agents: {list: [{id: 'a', subagents: {maxSpawnDepth: 2}}]}}",
            "1:40: agents.list[0].subagents.maxSpawnDepth: holds for all agents; "
            "it belongs into agents.defaults.subagents",
        ),
        (
            "{agents: {defaults: {subagents: {contextScripts: {run: [], ignore: []}}}}}",
            "1:60: agents.defaults.subagents.contextScripts.ignore: unknown key",
        ),
        (
            "{tools: {subagents: {deny: []}}}",
            "1:22: tools.subagents.deny: unknown key",
        ),
        (
            "{models: {providers: {p: {models: [{id: 'a', cost: {cacheread: 1}}]}}}}",
            '1:53: models.providers.p.models[0].cost.cacheread: unknown key; did you mean "cacheRead"?',
        ),
        (
            "{agents: {defaults: {runtime: {type: 'command', command: ['x'], inputs: 'argv'}}}}",
            '1:65: agents.defaults.runtime.inputs: unknown key; did you mean "input"?',
        ),
        (
            "{agents: {defaults: {runtime: {type: 'scripted', provideSandbox: true}}}}",
            '1:50: agents.defaults.runtime.provideSandbox: unknown key; did you mean "providesSandbox"?',
        ),
        (
            "{agents: {defaults: {runtime: {type: 'command', command: ['x'], model: ['m']}}}}",
            '1:65: agents.defaults.runtime.model: unknown key; did you mean "models"?',
        ),
        ("{spawnlog: {workspaceRoot: []}}", '1:13: spawnlog.workspaceRoot: unknown key; did you mean "workspaceRoots"?'),
        ("{agents: {defaults: {sandbox: {providesSandbox: true}}}}", '1:32: agents.defaults.sandbox.providesSandbox: belongs into "runtime"'),
        ("{agents: {list: [{id: 'a', providesSandbox: true}]}}", '1:28: agents.list[0].providesSandbox: belongs into "runtime"'),
        # what looks as if something were put into it
        (
            "{agents: {defaults: {runtime: {type: 'command', command: ['x'], cwd: '${HOME}/x'}}}}",
            "1:70: agents.defaults.runtime.cwd: ${HOME} is not replaced here; leave cwd out and "
            "write it into workspace, where it is",
        ),
        (
            "{agents: {list: [{id: 'a', runtime: {type: 'command', command: ['${BIN}/a b']}}]}}",
            "1:65: agents.list[0].runtime.command[0]: ${BIN} is not replaced in a command; put it "
            "into env, where it is, and read it there",
        ),
        (
            "{agents: {list: [{id: 'a', runtime: {type: 'command', command: ['x', '--key=${KEY}']}}]}}",
            "1:70: agents.list[0].runtime.command[1]: ${KEY} is not replaced in a command; put it "
            "into env, where it is, and read it there",
        ),
        (
            "{spawnlog: {host: '${HOST}'}}",
            "1:19: spawnlog.host: ${HOST} is not replaced here; write the name itself, or give it "
            "by SPAWNLOG_HOST or --host",
        ),
        # misspellings in sections that are shared
        ("{agent: {}}", '1:2: agent: unknown key; did you mean "agents"?'),
        ("{spawnlogs: {}}", '1:2: spawnlogs: unknown key; did you mean "spawnlog"?'),
        ("{agents: {defaults: {subagent: {}}}}", '1:22: agents.defaults.subagent: unknown key; did you mean "subagents"?'),
        ("{agents: {defaults: {contextScripts: {}}}}", '1:22: agents.defaults.contextScripts: belongs into "subagents"'),
        ("{agents: {list: [{id: 'a', maxSpawnDepth: 1}]}}", '1:28: agents.list[0].maxSpawnDepth: holds for all agents; it belongs into agents.defaults.subagents'),
        ("{agents: {list: [{id: 'a', allowAgents: []}]}}", '1:28: agents.list[0].allowAgents: belongs into "subagents"'),
        ("{tools: {subagents: {tools: {allow: ['read', ' ']}}}}", "1:46: tools.subagents.tools.allow[1]: must not be blank; write the name of a tool, group:… or *"),
        ("{tools: {subagents: {tools: {alsoAllow: ['']}}}}", "1:42: tools.subagents.tools.alsoAllow[0]: must not be blank; write the name of a tool, group:… or *"),
        ("{tools: {subagents: {tools: {deny: ['\\t']}}}}", "1:37: tools.subagents.tools.deny[0]: must not be blank; write the name of a tool, group:… or *"),
        ("{tools: {sessionsSpawn: {}}}", '1:10: tools.sessionsSpawn: unknown key; did you mean "sessions_spawn"?'),
        (
            "{session: {mainKey: 'agent:ops:main'}}",
            "1:21: session.mainKey: must be what stands behind agent:<agentId>: in a session's key, and no more",
        ),
        (
            "{session: {mainKey: ' : Agent : ops'}}",
            "1:21: session.mainKey: must be what stands behind agent:<agentId>: in a session's key, and no more",
        ),
        (
            "{session: {mainKey: '\u3164x'}}",
            "1:21: session.mainKey: cannot stand in a session's key: A session key must not contain control characters or invisible formatting characters.",
        ),
        (
            f"{{session: {{mainKey: '{'😀' * 128}'}}}}",
            "1:21: session.mainKey: cannot stand in a session's key: A session key must not be longer than 512 bytes.",
        ),
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
        (
            "{agents: {defaults: {runtime: {type: 'comand'}}}}",
            '1:38: agents.defaults.runtime.type: must be one of "command", "scripted", "external", '
            '"worker", "model", "embedded", "acp"; did you mean "command"?',
        ),
        ("{agents: {defaults: {runtime: {}}}}", '1:31: agents.defaults.runtime: must be an object with a "type"'),
        (
            "{agents: {defaults: {runtime: {type: 'command', command: ['x'], env: {'A/B': 'x'}}}}}",
            '1:78: agents.defaults.runtime.env.A/B: is not the name of an environment variable',
        ),
        (
            "{agents: {defaults: {runtime: {type: 'command', command: ['x'], env: {A: 5}}}}}",
            "1:74: agents.defaults.runtime.env.A: must be a string",
        ),
        (
            "{agents: {defaults: {runtime: {type: 'command', command: ['x'], env: {A: {file: 'x'}}}}}}",
            "1:74: agents.defaults.runtime.env.A: must be a string",
        ),
        (
            "{agents: {defaults: {runtime: {type: 'command', command: ['x', 5]}}}}",
            "1:64: agents.defaults.runtime.command[1]: must be a string",
        ),
        (
            "{agents: {list: [{id: 'a'}, {id: 'A '}]}}",
            '1:34: agents.list[1].id: there is another agent "a"; ids differ in more than case',
        ),
        (
            "{agents: {list: [{id: 'my agent'}]}}",
            "1:23: agents.list[0].id: an agent id is 1 to 64 letters, digits, underscores and "
            "hyphens, the first a letter or digit",
        ),
        (
            "{agents: {defaults: {model: {primery: 'x'}}}}",
            '1:30: agents.defaults.model.primery: unknown key; did you mean "primary"?',
        ),
        # what would silently be missing
        ("{$include: './a.json5'}", "1:2: $include: is not supported; put the content of the other file here"),
        (
            "{models: {providers: {$include: './a.json5'}}}",
            "1:23: models.providers.$include: is not supported; put the content of the other file here",
        ),
        (
            "{channels: {x: {$secret: '/a'}}}",
            "1:17: channels.x.$secret: stands only in revisions that spawnlog keeps; "
            "write the value or ${NAME}",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_said_in_words_of_the_file(text: str, problem: str) -> None:
    assert problem_of(text) == problem
