from typing import Any

import pytest

from domain.configuration.configuration import Configuration
from domain.configuration.doubts import Doubt, doubts, main_session_of

COMMAND = {"type": "command", "command": ["true"]}


def doubts_of(**sections: object) -> list[Doubt]:
    return list(doubts(Configuration.model_validate(sections)))


def token(*sessions: str) -> dict[str, Any]:
    return {"id": "t", "token": "${T}", "scopes": ["read"], "sessions": list(sessions)}


def test_the_built_in_configuration_is_beyond_doubt() -> None:
    assert list(doubts(Configuration.builtin())) == []


def test_an_agent_that_may_be_named_and_is_not_there_is_told_with_the_nearest() -> None:
    found = doubts_of(
        agents={
            "defaults": {"subagents": {"allowAgents": ["*", "plannr"]}},
            "list": [{"id": "planner", "subagents": {"allowAgents": ["no id!", " PLANNER "]}}],
        }
    )

    assert found == [
        Doubt(
            "/agents/defaults/subagents/allowAgents/1",
            "is not configured: a spawn that names it is refused",
            "planner",
        ),
        Doubt(
            "/agents/list/0/subagents/allowAgents/0", "is no agent id: no spawn can name it", None
        ),
    ]


def test_a_name_that_a_script_may_replace_is_beyond_doubt() -> None:
    script = {"id": "who", "uri": "who.sh", "agentIdOverrideKey": "agent"}
    subagents = {"allowAgents": ["steward"], "contextScripts": {"run": [script]}}
    assert doubts_of(agents={"defaults": {"subagents": subagents}}) == []
    del script["agentIdOverrideKey"]
    assert len(doubts_of(agents={"defaults": {"subagents": subagents}})) == 1


def test_a_thinking_level_that_is_none_is_told() -> None:
    found = doubts_of(
        agents={
            "defaults": {"subagents": {"thinking": "ultra"}},
            "list": [{"id": "a", "subagents": {"thinking": "hig"}}],
        }
    )

    (doubt,) = found
    assert doubt.pointer == "/agents/list/0/subagents/thinking"
    assert doubt.message.startswith("is no level (off, minimal, low, medium, high)")
    assert doubt.nearest == "high"


def test_a_sandbox_that_no_runtime_provides_is_told() -> None:
    provided = {**COMMAND, "providesSandbox": True}
    found = doubts_of(
        agents={
            "defaults": {"sandbox": {"mode": "non-main"}, "runtime": COMMAND},
            "list": [
                {"id": "a"},
                {"id": "b", "sandbox": {"mode": "off"}},
                {"id": "c", "runtime": provided},
            ],
        }
    )

    (doubt,) = found
    assert doubt.pointer == "/agents/list/0"
    assert 'sandbox.mode "non-main"' in doubt.message


@pytest.mark.parametrize("runtime", [COMMAND, None, {"type": "worker", "queue": "q"}])
def test_a_sandbox_of_the_defaults_is_told_where_no_agent_is_listed(runtime: object) -> None:
    (doubt,) = doubts_of(agents={"defaults": {"sandbox": {"mode": "all"}, "runtime": runtime}})

    assert doubt.pointer == "/agents/defaults/sandbox/mode"
    assert 'sandbox.mode "all"' in doubt.message
    provided = {**COMMAND, "providesSandbox": True}
    defaults = {"sandbox": {"mode": "all"}, "runtime": provided}
    assert doubts_of(agents={"defaults": defaults}) == []


@pytest.mark.parametrize(
    "pattern", ["agent::main", "agent:main", "agent:b d:x", ":", "cron:*", ":*"]
)
def test_a_pattern_of_a_token_that_fits_no_session_is_told(pattern: str) -> None:
    (doubt,) = doubts_of(spawnlog={"tokens": [token("*", pattern)]})
    assert doubt.pointer == "/spawnlog/tokens/0/sessions/1"
    assert doubt.message.startswith("fits no session: ")


@pytest.mark.parametrize(
    "pattern",
    ["*", "main", "agent:*", "Agent : main : *", "a*", "agent:main:main", "hook:1", "*:*"],
)
def test_a_pattern_that_may_fit_a_session_is_beyond_doubt(pattern: str) -> None:
    assert doubts_of(spawnlog={"tokens": [token(pattern)]}) == []


def test_global_is_a_key_only_where_all_senders_share_one_session() -> None:
    tokens = [token("glob*")]
    assert doubts_of(spawnlog={"tokens": tokens}, session={"scope": "global"}) == []
    assert len(doubts_of(spawnlog={"tokens": tokens})) == 1


def test_what_main_stands_for_depends_on_key_scope_and_default_agent() -> None:
    def main(**sections: object) -> str:
        return main_session_of(Configuration.model_validate(sections))

    assert main() == "agent:main:main"
    assert main(session={"mainKey": "Desk"}) == "agent:main:desk"
    assert main(agents={"list": [{"id": "helper"}]}) == "agent:helper:main"
    assert main(session={"scope": "global"}) == "global"
