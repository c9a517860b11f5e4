import re

import pytest
from pydantic import ValidationError

from domain.configuration.agents import SubagentDefaults
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.configuration.models import ModelChoice
from domain.configuration.settings import Settings, Token
from domain.configuration.tools import Tools

SCRIPT = {"id": "a", "uri": "~/a.sh"}
TOKEN = {"id": "ops", "token": "${OPS}", "scopes": ["read"], "sessions": ["*"]}


def test_the_defaults_of_subagents_are_those_of_the_specification() -> None:
    defaults = SubagentDefaults()

    assert defaults.allow_agents is None
    assert defaults.require_agent_id is False
    assert defaults.max_concurrent == 8
    assert defaults.max_spawn_depth == 1
    assert defaults.max_children_per_agent == 5
    assert defaults.archive_after_minutes == 60
    assert defaults.run_timeout_seconds == 0
    assert defaults.announce_timeout_ms == 120_000
    assert defaults.context_preamble_max_chars == 4000


@pytest.mark.parametrize(
    "values",
    [
        {"maxSpawnDepth": 0},
        {"maxSpawnDepth": 6},
        {"maxChildrenPerAgent": 0},
        {"maxChildrenPerAgent": 21},
        {"maxConcurrent": 0},
        {"archiveAfterMinutes": -1},
        {"runTimeoutSeconds": -1},
        {"announceTimeoutMs": 0},
        {"maxConcurrent": True},
        {"maxConcurrent": "8"},
        {"maxConcurrent": None},
        {"requireAgentId": 1},
        {"allowAgents": "*"},
        {"allowAgents": [1]},
        {"contextPreambleMaxChars": -1},
    ],
)
def test_what_is_out_of_range_or_of_another_type_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SubagentDefaults.model_validate(values)


def test_the_defaults_of_a_script_are_those_of_the_specification() -> None:
    script = ContextScript.model_validate(SCRIPT)

    assert (script.format, script.method, script.priority) == ("arguments", "GET", 0)
    assert (script.position, script.log, script.error_handling) == ("append", False, "continue")
    assert (script.return_key, script.error_key, script.agent_id_override_key) == (None,) * 3
    assert (script.arg_map, script.timeout_seconds) == ({}, 10)


def test_a_priority_stays_the_number_that_was_written() -> None:
    assert repr(ContextScript.model_validate({**SCRIPT, "priority": 100}).priority) == "100"
    assert repr(ContextScript.model_validate({**SCRIPT, "priority": -0.5}).priority) == "-0.5"


def test_a_method_is_read_in_upper_case() -> None:
    assert ContextScript.model_validate({**SCRIPT, "method": "post"}).method == "POST"


@pytest.mark.parametrize(
    "values",
    [
        {"id": ""},
        {"id": " "},
        {"id": "a\nb"},
        {"uri": ""},
        {"uri": "file:///etc/passwd"},
        {"uri": "https://"},
        {"uri": "http://[::1"},
        {"uri": "http://h:99999/"},
        {"method": "GE T"},
        {"log": 1},
        {"log": "true"},
        {"priority": True},
        {"priority": "1"},
        {"position": "before"},
        {"argMap": {"a": "targetAgent"}},
        {"argMap": {"": "task"}},
        {"timeoutSeconds": 0},
        {"timeoutSeconds": 601},
        {"returnKey": ""},
        {"unknown": 1},
    ],
)
def test_a_script_that_cannot_work_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ContextScript.model_validate({**SCRIPT, **values})


def test_a_url_refers_to_its_secrets_and_does_not_hold_them() -> None:
    for kept in ("https://u:${PASSWORD}@h/x", "https://h/x?token=${TOKEN}", "HTTP://h/?q=1"):
        assert ContextScript.model_validate({**SCRIPT, "uri": kept}).is_remote

    for refused in ("https://u:secret@h/x", "https://h/x?q=1&api_key=secret"):
        with pytest.raises(ValidationError, match=r"\$\{NAME\}|NAME"):
            ContextScript.model_validate({**SCRIPT, "uri": refused})


def test_a_model_has_a_bounded_number_of_fallbacks() -> None:
    fallbacks = [f"p/{number}" for number in range(20)]
    assert len(ModelChoice.model_validate({"fallbacks": fallbacks}).fallbacks) == 20
    with pytest.raises(ValidationError, match="at most 20"):
        ModelChoice.model_validate({"fallbacks": [*fallbacks, "p/20"]})


def test_the_roots_of_workspaces_are_paths() -> None:
    assert Settings().workspace_roots == ()
    roots = Settings.model_validate({"workspaceRoots": ["~/work", "${SHARED}"]}).workspace_roots
    assert roots == ("~/work", "${SHARED}")
    for wrong in ([""], ["a\nb"], "~/work", [1]):
        with pytest.raises(ValidationError):
            Settings.model_validate({"workspaceRoots": wrong})


def test_limits_of_attachments_are_rounded_down() -> None:
    tools = Tools.model_validate({"sessions_spawn": {"attachments": {"maxFiles": 2.7}}})

    attachments = tools.sessions_spawn.attachments
    assert (attachments.enabled, attachments.max_files) == (False, 2)
    assert (attachments.max_total_bytes, attachments.max_file_bytes) == (5_242_880, 1_048_576)


def test_allow_and_also_allow_exclude_each_other() -> None:
    together = re.escape(
        "tools policy cannot set both allow and alsoAllow in the same scope (merge alsoAllow into "
        "allow, or remove allow and use profile + alsoAllow)"
    )
    with pytest.raises(ValidationError, match=together):
        Tools.model_validate({"subagents": {"tools": {"allow": ["a"], "alsoAllow": ["b"]}}})
    Tools.model_validate({"subagents": {"tools": {"allow": [], "alsoAllow": ["b"]}}})


def test_a_token_is_a_reference_to_a_variable_a_file_or_a_kept_revision() -> None:
    assert Token.model_validate(TOKEN).token.variable == "OPS"
    assert Token.model_validate({**TOKEN, "token": {"file": "ops"}}).token.file == "ops"
    kept = Token.model_validate({**TOKEN, "token": {"$secret": "/spawnlog/tokens/0/token"}})
    assert kept.token.secret is not None
    assert kept.token.secret.pointer == "/spawnlog/tokens/0/token"


@pytest.mark.parametrize(
    "token",
    ["s3cret-value", "${OPS} s3cret-value", "", {"variable": "OPS"}, {"file": ""}, 5, None, {}],
)
def test_a_token_that_stands_in_the_file_is_refused_and_not_repeated(token: object) -> None:
    with pytest.raises(ValidationError) as caught:
        Token.model_validate({**TOKEN, "token": token})

    assert "s3cret-value" not in str(caught.value)


@pytest.mark.parametrize(
    "values", [{"scopes": []}, {"scopes": ["root"]}, {"sessions": []}, {"id": ""}]
)
def test_a_token_says_what_it_may_do_and_for_which_sessions(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Token.model_validate({**TOKEN, **values})


def test_a_revision_kept_with_a_nameless_tool_is_still_read() -> None:
    tools = {"subagents": {"tools": {"allow": [" "]}}}
    assert Configuration.model_validate({"tools": tools}).tools.subagents.tools.allow == (" ",)
