"""Warnings about configurations, and texts of errors."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from domain.configuration.configuration import Configuration
from domain.configuration.problems import render_error
from domain.configuration.warnings import (
    ConfigurationWarning,
    configuration_warnings,
    script_warnings,
)
from tests.support.builders.configurations import load_values

COMMAND = {"type": "command", "command": ["true"]}
ALL = "/agents/defaults/subagents/allowAgents"


def doubts_of(**sections: Any) -> list[ConfigurationWarning]:
    """Return the warnings for sections in which every agent has a runtime by default."""
    agents: dict[str, Any] = sections.get("agents", {})
    agents = {**agents, "defaults": {"runtime": COMMAND, **agents.get("defaults", {})}}
    return list(
        configuration_warnings(Configuration.model_validate({**sections, "agents": agents}))
    )


def token(*sessions: str) -> dict[str, Any]:
    return {"id": "t", "token": "${T}", "scopes": ["read"], "sessions": list(sessions)}


def test_built_in_configuration_is_beyond_doubt() -> None:
    assert list(configuration_warnings(Configuration.builtin())) == []


def test_missing_allowed_agent_is_warned_with_the_nearest() -> None:
    found = doubts_of(
        agents={
            "defaults": {"subagents": {"allowAgents": ["*", "plannr"]}},
            "list": [{"id": "planner", "subagents": {"allowAgents": ["_no id!", " PLANNER "]}}],
        }
    )

    assert found == [
        ConfigurationWarning(
            f"{ALL}/1", "is not configured, so a spawn that names it is refused", "planner"
        ),
        ConfigurationWarning(
            "/agents/list/0/subagents/allowAgents/0",
            "is not a valid agent id, so no spawn can name it",
            None,
        ),
    ]


def test_allowed_name_is_judged_as_agent_id() -> None:
    listed = {"list": [{"id": "my-agent"}]}
    subagents = {"allowAgents": ["My Agent", "My  Other", " ", ""]}

    assert doubts_of(agents={"defaults": {"subagents": subagents}, **listed}) == [
        ConfigurationWarning(
            f"{ALL}/1",
            'means "my-other", which is not configured, so a spawn that names it is refused',
            None,
        ),
        ConfigurationWarning(f"{ALL}/2", "is blank and ignored", None),
        ConfigurationWarning(f"{ALL}/3", "is blank and ignored", None),
    ]


NO_RUNTIME = (
    "has no runtime, so every spawn of this agent is refused; give it a runtime of type command or"
)
UNSERVED = (
    'has a runtime of type "worker", which is not supported, so every spawn of this agent is'
    " refused"
)


def test_unserved_runtime_is_warned() -> None:
    worker = {"type": "worker", "queue": "q"}
    listed = [{"id": "a"}, {"id": "b", "runtime": worker}, {"id": "c", "runtime": COMMAND}]
    found = doubts_of(agents={"defaults": {"runtime": None}, "list": listed})
    assert [item.pointer for item in found] == ["/agents/list/0", "/agents/list/1"]
    assert found[0].message.startswith(NO_RUNTIME)
    assert found[1].message.startswith(UNSERVED)
    inherited = doubts_of(agents={"defaults": {"runtime": worker}, "list": listed})
    assert [item.message.startswith(UNSERVED) for item in inherited] == [True, True]


def test_default_runtime_that_is_missing_is_warned() -> None:
    (doubt,) = doubts_of(agents={"defaults": {"runtime": None}})
    assert doubt.pointer == "/agents/defaults/runtime"
    assert doubt.message.startswith(NO_RUNTIME)


def test_repeated_alias_is_warned() -> None:
    models = {"p/one": {"alias": "Opus"}, "p/two": {"alias": " opus "}, "q/3": {"alias": " "}}
    (doubt,) = doubts_of(agents={"defaults": {"models": models}})
    assert doubt.pointer == "/agents/defaults/models/p~1two/alias"
    assert doubt.message == 'is already the alias of "p/one" and keeps that meaning'


def test_fallbacks_without_primary_are_warned() -> None:
    alone = {"primary": " ", "fallbacks": ["p/one"]}
    found = doubts_of(
        agents={
            "defaults": {"model": {"fallbacks": ["p/one"]}, "subagents": {"model": alone}},
            "list": [
                {"id": "a", "model": alone, "subagents": {"model": alone}},
                {"id": "b", "model": {"primary": "p/one", "fallbacks": ["p/two"]}},
                {"id": "c", "model": {"primary": " "}},
            ],
        }
    )
    assert [item.pointer for item in found] == [
        "/agents/defaults/model/fallbacks",
        "/agents/defaults/subagents/model/fallbacks",
        "/agents/list/0/model/fallbacks",
        "/agents/list/0/subagents/model/fallbacks",
    ]
    assert {item.message for item in found} == {"are ignored because no primary model is set"}


def test_replaceable_allowed_name_is_not_warned() -> None:
    script = {"id": "who", "uri": "who.sh", "agentIdOverrideKey": "agent"}
    subagents = {"allowAgents": ["steward"], "contextScripts": {"run": [script]}}
    assert doubts_of(agents={"defaults": {"subagents": subagents}}) == []
    del script["agentIdOverrideKey"]
    assert len(doubts_of(agents={"defaults": {"subagents": subagents}})) == 1


def test_thinking_level_that_is_none_is_told() -> None:
    found = doubts_of(
        agents={
            "defaults": {"subagents": {"thinking": "ultra"}},
            "list": [{"id": "a", "subagents": {"thinking": "hig"}}],
        }
    )

    (doubt,) = found
    assert doubt.pointer == "/agents/list/0/subagents/thinking"
    assert doubt.message.startswith(
        "is not a thinking level (off, minimal, low, medium, high, xhigh, max, adaptive)"
    )
    assert doubt.nearest == "high"


@pytest.mark.parametrize("runtime", [COMMAND, None, {"type": "worker", "queue": "q"}])
def test_default_sandbox_without_provider_is_warned(runtime: object) -> None:
    result = doubts_of(agents={"defaults": {"sandbox": {"mode": "all"}, "runtime": runtime}})
    (doubt,) = [answer for answer in result if "sandbox" in answer.pointer]

    assert doubt.pointer == "/agents/defaults/sandbox/mode"
    assert 'sandbox.mode "all"' in doubt.message
    provided = {**COMMAND, "providesSandbox": True}
    defaults = {"sandbox": {"mode": "all"}, "runtime": provided}
    assert doubts_of(agents={"defaults": defaults}) == []


@pytest.mark.parametrize(
    "pattern", ["agent::main", "agent:main", "agent:b d:x", ":", "cron:*", ":*"]
)
def test_token_pattern_without_sessions_is_warned(pattern: str) -> None:
    (doubt,) = doubts_of(spawnlog={"tokens": [token("*", pattern)]})
    assert doubt.pointer == "/spawnlog/tokens/0/sessions/1"
    assert doubt.message.startswith("matches no session: ")


@pytest.mark.parametrize(
    "pattern",
    ["*", "main", "agent:*", "Agent : main : *", "a*", "agent:main:main", "hook:1", "*:*"],
)
def test_token_pattern_of_sessions_is_not_warned(pattern: str) -> None:
    assert doubts_of(spawnlog={"tokens": [token(pattern)]}) == []


def test_global_is_a_key_only_in_global_scope() -> None:
    tokens = [token("glob*")]
    assert doubts_of(spawnlog={"tokens": tokens}, session={"scope": "global"}) == []
    assert len(doubts_of(spawnlog={"tokens": tokens})) == 1


@pytest.mark.parametrize(("seconds", "is_cut"), [(0, False), (2_147_000, False), (2_147_001, True)])
def test_time_limit_beyond_the_longest_is_told(seconds: int, is_cut: bool) -> None:
    defaults = {"subagents": {"runTimeoutSeconds": seconds}}
    found = doubts_of(agents={"defaults": defaults})
    place = "/agents/defaults/subagents/runTimeoutSeconds"
    assert [item.pointer for item in found] == ([place] if is_cut else [])


# Warnings about context scripts, and their maximum number.


def agents(default: list[dict[str, Any]], **own: Any) -> dict[str, Any]:
    scripts = {"defaults": {"subagents": {"contextScripts": {"run": default}}}}
    return {"agents": {**scripts, "list": [{"id": "a", "subagents": {"contextScripts": own}}]}}


def doubtful(**script: Any) -> list[str]:
    values = agents([{"id": "s", "uri": "/x", **script}])
    found = list(script_warnings(Configuration.model_validate(values)))
    assert all(
        item.pointer.startswith("/agents/defaults/subagents/contextScripts/run/0/")
        for item in found
    )
    return [f"{item.pointer.rpartition('/')[2]} {item.message}" for item in found]


def test_usual_scripts_are_not_warned() -> None:
    for script in (
        {},
        {"format": "arguments", "argMap": {"a": "task"}},
        {"format": "json", "argMap": {"a": "cfg"}},
        {"uri": "https://example.com/", "method": "POST", "argMap": {"a": "cfg"}},
        {"uri": "http://localhost:1/", "format": "arguments"},
        {"uri": "http://127.0.0.1/"},
        {"uri": "http://${HOST}/"},
    ):
        assert doubtful(**script) == []


def test_script_setting_without_effect_is_warned() -> None:
    url = "https://example.com/"
    (text,) = doubtful(uri=url, method="put", format="arguments")
    assert text.startswith("format has no effect for a URL with PUT")
    (text,) = doubtful(argMap={"a": "cfg"})
    assert text.endswith('use format "json"')
    (text,) = doubtful(uri=url, argMap={"a": "cfg"})
    assert text.endswith("use method POST")


def test_plain_http_of_agents_script_is_warned() -> None:
    assert doubtful(uri="HTTP://example.com/")[0].startswith("uri is plain http to another")
    values = agents([], run=[{"id": "s", "uri": "http://10.0.0.1/"}])
    (found,) = script_warnings(Configuration.model_validate(values))
    assert found.pointer == "/agents/list/0/subagents/contextScripts/run/0/uri"
    assert [
        str(warning) for warning in load_values(values).warnings if "plain http" in str(warning)
    ]


def several(count: int, begin: str = "s") -> list[dict[str, Any]]:
    return [{"id": f"{begin}{number}", "uri": "/x"} for number in range(count)]


def test_fifty_one_scripts_of_an_agent_are_refused() -> None:
    values = agents(several(30), run=several(27, "own"))
    with pytest.raises(Exception, match="has 57 scripts") as caught:
        load_values(values)
    assert str(caught.value) == (
        'config: agents.list[0].subagents.contextScripts: agent "a" has 57 scripts, but at most'
        " 50 are allowed; list some of the defaults in `ignore`"
    )


def test_fifty_scripts_may_run_without_ignored_ones() -> None:
    values = agents(several(50), run=several(5, "own"), ignore=[f"s{n}" for n in range(5)])
    configuration = Configuration.model_validate(values)
    assert len(configuration.effective_agent("a").context_scripts) == 50
    replaced = Configuration.model_validate(agents(several(50), run=several(50)))
    assert len(replaced.effective_agent("a").context_scripts) == 50


def test_list_of_more_than_fifty_is_a_mistake() -> None:
    with pytest.raises(ValidationError):
        Configuration.model_validate(agents(several(51)))


# Faults of values are in plain words, not in those of the library.


def refuse(_: object) -> None:
    raise ValueError("is not this")


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Annotated[str, Field(min_length=1)], "", "must not be empty"),
        (Annotated[str, Field(min_length=3)], "a", "must be at least 3 characters long"),
        (Annotated[str, Field(pattern="^a+$")], "b", "must match ^a+$"),
        (Annotated[float, Field(allow_inf_nan=False)], float("inf"), "must be a finite number"),
        (Annotated[int, AfterValidator(refuse)], 1, "is not this"),
        (Literal["a", "b"], "c", 'must be one of "a", "b"'),
        (int, "x", "must be a whole number"),
    ],
)
def test_fault_is_told_in_plain_words(kind: Any, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    assert render_error(caught.value.errors()[0])[0] == words
