"""What the explanation of a spawn looks like, for the description of the API: every rule with every
member that it compares, which a test holds against what is told of real events."""

from typing import Any

from domain.run.facts import AdmissionFacts
from domain.spawn.admission import ADMISSION
from infrastructure.inbound.http.examples.spawns_and_runs import RUN_ID

_REVISION = 3
_REQUESTED, _RESOLVED, _WRITTEN, _CREATED = 1204, 1206, 1209, 1210


def _passed_rule(
    step: str, rule: str, position: int, text: str, compared: dict[str, Any]
) -> dict[str, Any]:
    return {
        "step": step,
        "rule": rule,
        "result": "passed",
        "compared": compared,
        "text": text,
        "position": position,
        "configRevision": _REVISION,
    }


def _preparation(rule: str, text: str, **compared: Any) -> dict[str, Any]:
    return _passed_rule("preparation", rule, _CREATED, text, compared)


_FACTS = AdmissionFacts(
    requester_agent_id="main",
    agent_id_argument_given=True,
    target_agent_id="counter",
    mode="run",
    thread=False,
    caller_depth=0,
    depth_from="record",
    max_spawn_depth=1,
    active_children=2,
    max_children=5,
    require_agent_id=False,
    require_agent_id_from="defaults",
    allow_agents=("main", "counter"),
    allow_agents_from="agent",
)
_ADMISSION = [
    _passed_rule("admission", one.rule.name, _REQUESTED, finding.text, finding.compared)
    for one in ADMISSION
    for finding in [one.compared(_FACTS, False)]
]
_SCRIPTS = [
    _passed_rule(
        "scripts",
        "context_scripts",
        _RESOLVED,
        'script "who" gave a text for the prompt, and proposed "counter"',
        {
            "id": "who",
            "outcome": "injected",
            "durationMs": 31,
            "exitCode": 0,
            "statusCode": None,
            "outputBytes": 812,
            "candidate": "counter",
        },
    ),
    _passed_rule(
        "override",
        "override",
        _RESOLVED,
        'script "who" confirmed "counter"',
        {
            "from": "counter",
            "to": "counter",
            "candidates": [
                {
                    "scriptId": "who",
                    "priority": 10.0,
                    "agentId": "counter",
                    "verdict": "winner",
                }
            ],
        },
    ),
]
_PREPARATION = [
    _preparation(
        "agent_unknown",
        'agent "counter" is configured',
        agentId="counter",
        requestedAgentId="counter",
        configured=True,
    ),
    _preparation(
        "sandbox",
        'sandbox.mode "off" puts the child into no sandbox, and none is asked for',
        mode="off",
        childSandboxed=False,
        runtimeProvides=False,
        requesterSandboxed=False,
        required=False,
    ),
    _preparation(
        "model",
        '"example/words", named by agents.defaults, is taken; 1 skipped',
        candidates=[
            {"source": "argument", "reference": "other/large", "verdict": "not_served"},
            {"source": "defaults", "reference": "example/words", "verdict": "taken"},
        ],
        servedModels=["example/*"],
        chosen="example/words",
        applied=False,
    ),
    _preparation(
        "thinking",
        'level "low" of agents.defaults.subagents is taken',
        argument=None,
        agentSubagents=None,
        defaultsSubagents="low",
        caller=None,
        takenFrom="defaults_subagents",
        level="low",
    ),
    _preparation(
        "run_timeout",
        "300 s: the request asks for none, and 300 s is configured",
        argument=None,
        configured=300,
        seconds=300,
        source="defaults",
    ),
    _preparation("runtime", 'the agent\'s runtime is "command"', type="command"),
    _preparation(
        "credentials",
        'the child is given "openai:default"',
        profileIds=["anthropic:default", "openai:default"],
        given=["openai:default"],
        missing=[],
    ),
    _preparation(
        "workspace",
        "the folder of the agent is used",
        source="agent",
        recorded=None,
        chosen="/srv/agents/counter",
        given=False,
        workspaceRoots=["/srv/harbour"],
        made=False,
    ),
    _passed_rule(
        "thread_binding",
        "thread_binding",
        _CREATED,
        "no thread is asked for",
        {"thread": False, "asked": False, "bound": False},
    ),
    _passed_rule(
        "context_fork",
        "context_fork",
        _CREATED,
        "the child begins without the conversation of its requester",
        {
            "asked": None,
            "thread": False,
            "sameAgent": False,
            "entries": None,
            "tokens": None,
            "tokensMax": 100000,
            "mode": "isolated",
        },
    ),
    _passed_rule(
        "preparation",
        "attachments",
        _WRITTEN,
        "1 file(s) with 17 bytes in all are attached",
        {
            "count": 1,
            "totalBytes": 17,
            "maxFiles": 50,
            "maxFileBytes": 1048576,
            "maxTotalBytes": 5242880,
            "written": True,
        },
    ),
    _passed_rule(
        "context_engine",
        "context_engine",
        _CREATED,
        "no context engine is configured",
        {"configured": False, "prepared": False, "canUndo": None},
    ),
    _preparation(
        "tools",
        'tools of role "leaf", by tools.subagents.tools: every tool, 5 denied',
        role="leaf",
        allow=None,
        deny=["sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "exec"],
        configured={
            "allow": None,
            "alsoAllow": None,
            "deny": ["exec"],
            "at": "tools.subagents.tools",
        },
    ),
    _preparation(
        "capabilities",
        'depth 1 of at most 1 has role "leaf" and control scope "none"',
        depth=1,
        maxDepth=1,
        role="leaf",
        controlScope="none",
    ),
    _preparation("preamble", "no context was handed over"),
]
EXPLANATION: dict[str, Any] = {
    "runId": RUN_ID,
    "stage": "announced",
    "configRevision": _REVISION,
    "given": {
        "agentId": None,
        "model": None,
        "thinking": None,
        "workspaceDir": "/srv/harbour/tides",
    },
    "decisions": [*_ADMISSION, *_SCRIPTS, *_PREPARATION],
    "refused": None,
}
