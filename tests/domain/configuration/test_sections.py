"""The sections of a configuration."""

import base64
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from domain.configuration.agents import Agent, AgentDefaults, SubagentDefaults
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.configuration.hooks import HEADER_VALUE_CHARACTERS_MAX, HOOKS, Hook, HooksSection
from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.models import ModelChoice
from domain.configuration.runtimes import (
    CommandRuntime,
    OpenClawRuntime,
    Runtime,
    ScriptedRuntime,
    WorkerRuntime,
)
from domain.configuration.session import ThreadBindings, ThreadPolicy
from domain.configuration.settings import Token
from domain.configuration.tools import Tools
from domain.configuration.webhooks import AnnounceSection
from domain.delivery.webhook import receivers

URL = "https://hooks.example/there"
SCRIPT = {"id": "a", "uri": "~/a.sh"}
TOKEN = {"id": "ops", "token": "${OPS}", "scopes": ["read"], "sessions": ["*"]}


def test_defaults_of_subagents_are_those_of_the_specification() -> None:
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


LIMIT_OF_FILES = [0, -1, 1.0, 1.5, "1", True, 10_000_001]
OUT_OF_RANGE: dict[type[BaseModel], dict[str, list[Any]]] = {
    SubagentDefaults: {
        "maxSpawnDepth": [0, 6],
        "maxChildrenPerAgent": [0, 21],
        "maxConcurrent": [0, True, "8", None],
        "archiveAfterMinutes": [-1],
        "runTimeoutSeconds": [-1],
        "announceTimeoutMs": [0],
        "contextPreambleMaxChars": [-1],
        "requireAgentId": [1],
        "allowAgents": ["*", [1]],
    },
    ContextScript: {
        "id": ["", " ", "a\nb"],
        "uri": ["", "file:///etc/passwd", "https://", "http://[::1", "http://h:99999/"],
        "method": ["GE T", "TRACE"],
        "log": [1, "true"],
        "priority": [True, "1"],
        "position": ["before"],
        "argMap": [{"a": "targetAgent"}, {"": "task"}],
        "timeoutSeconds": [0, 601],
        "returnKey": [""],
        "unknown": [1],
    },
    Token: {"id": [""], "scopes": [[], ["root"]], "sessions": [[]]},
    AgentDefaults: {"bootstrapMaxChars": LIMIT_OF_FILES, "bootstrapTotalMaxChars": [None, 0]},
    Agent: {"bootstrapMaxChars": LIMIT_OF_FILES, "bootstrapTotalMaxChars": [0]},
    HooksSection: {
        "attemptsMax": [0, 21],
        "retrySecondsMax": [0, 3601],
        "subagentStarted": [{"url": URL}],
    },
    Hook: {"timeoutSeconds": [0, 60.1], "method": ["GET"]},
    ThreadBindings: {
        "enabled": [1],
        "defaultSpawnContext": ["both"],
        "idleHours": [-1, 876_001],
        "maxAgeHours": ["1", 1e300],
    },
}
PLAIN: dict[type[BaseModel], dict[str, Any]] = {
    ContextScript: SCRIPT,
    Token: TOKEN,
    Agent: {"id": "a"},
    Hook: {"url": URL},
}


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        (section, key, value)
        for section, keys in OUT_OF_RANGE.items()
        for key, values in keys.items()
        for value in values
    ],
)
def test_value_out_of_range_or_of_another_type_is_refused(
    section: type[BaseModel], key: str, value: object
) -> None:
    plain = PLAIN.get(section, {})
    section.model_validate(plain)
    with pytest.raises(ValidationError):
        section.model_validate({**plain, key: value})


def test_defaults_of_a_script_are_those_of_the_specification() -> None:
    script = ContextScript.model_validate(SCRIPT)

    assert (script.format, script.method, script.priority) == ("arguments", "GET", 0)
    assert (script.position, script.log, script.error_handling) == ("append", False, "continue")
    assert (script.return_key, script.error_key, script.agent_id_override_key) == (None,) * 3
    assert (script.arg_map, script.timeout_seconds) == ({}, 10)
    for log in (False, True, "verbose"):
        assert ContextScript.model_validate({**SCRIPT, "log": log}).log == log


def test_script_url_holds_no_secrets() -> None:
    for kept in ("https://u:${PASSWORD}@h/x", "https://h/x?token=${TOKEN}", "HTTP://h/?q=1"):
        assert ContextScript.model_validate({**SCRIPT, "uri": kept}).is_remote

    for refused in ("https://u:secret@h/x", "https://h/x?q=1&api_key=secret"):
        with pytest.raises(ValidationError, match=r"\$\{NAME\}|NAME"):
            ContextScript.model_validate({**SCRIPT, "uri": refused})


def test_model_has_a_bounded_number_of_fallbacks() -> None:
    fallbacks = [f"p/{number}" for number in range(20)]
    assert len(ModelChoice.model_validate({"fallbacks": fallbacks}).fallbacks) == 20
    with pytest.raises(ValidationError, match="at most 20"):
        ModelChoice.model_validate({"fallbacks": [*fallbacks, "p/20"]})


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


@pytest.mark.parametrize(
    "token",
    ["s3cret-value", "${OPS} s3cret-value", "", {"variable": "OPS"}, {"file": ""}, 5, None, {}],
)
def test_literal_token_is_refused_and_not_shown(token: object) -> None:
    with pytest.raises(ValidationError) as caught:
        Token.model_validate({**TOKEN, "token": token})

    assert "s3cret-value" not in str(caught.value)


def test_revision_kept_with_a_nameless_tool_is_still_read() -> None:
    tools = {"subagents": {"tools": {"allow": [" "]}}}
    assert Configuration.model_validate({"tools": tools}).tools.subagents.tools.allow == (" ",)


# Runtimes: keys of each type, and declared properties.

RUNTIME: TypeAdapter[Any] = TypeAdapter(Runtime)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ({"type": "command", "command": ["x"]}, CommandRuntime),
        ({"type": "scripted"}, ScriptedRuntime),
        ({"type": "worker", "queue": "q"}, WorkerRuntime),
        ({"type": "model", "baseUrl": "http://x", "anything": [1]}, ModelRuntime),
        ({"type": "embedded"}, OpenClawRuntime),
        ({"type": "acp", "acp": {"agent": "codex"}}, OpenClawRuntime),
    ],
)
def test_runtime_is_read_by_its_type(values: dict[str, object], type_: type) -> None:
    assert isinstance(RUNTIME.validate_python(values), type_)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"command": []}, "at least 1"),
        ({"command": [" "]}, "must name a program"),
        ({"command": ["x", "a\0b"]}, "NUL"),
        ({"command": "x"}, "tuple"),
        ({"command": ["x"], "input": "argv"}, r"must contain \{prompt\}"),
        ({"command": ["x"], "input": "stdin"}, "stdin-json"),
        ({"command": ["x"], "env": {"A-B": "1"}}, "name of an environment variable"),
        ({"command": ["x"], "env": {"SPAWNLOG_TOKEN": "1"}}, "is set by spawnlog"),
        ({"command": ["x"], "env": {"A": "a\0b"}}, "NUL"),
        ({"command": ["x"], "env": {"A": 1}}, "string"),
        ({"command": ["x"], "cwd": ""}, "blank"),
        ({"command": ["x"], "shell": True}, "not permitted"),
    ],
)
def test_command_that_cannot_be_started_is_refused(
    values: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        RUNTIME.validate_python({"type": "command", **values})


@pytest.mark.parametrize(
    "values",
    [
        {"type": "command", "command": ["x"]},
        {"type": "scripted"},
        {"type": "worker", "queue": "q"},
        {"type": "model"},
    ],
)
def test_runtime_may_declare_the_models_it_serves(values: dict[str, object]) -> None:
    assert RUNTIME.validate_python(values).models is None
    declared = ["*", "p/*", "claude", "p/m"]
    assert RUNTIME.validate_python({**values, "models": declared}).models == tuple(declared)
    for wrong in (["a b"], ["*/m"], [""], ["x"] * 201, "p/m", [1]):
        with pytest.raises(ValidationError):
            RUNTIME.validate_python({**values, "models": wrong})


def test_script_step_does_one_thing_or_waits() -> None:
    played = RUNTIME.validate_python(
        {
            "type": "scripted",
            "steps": [
                {"afterMs": 5},
                {"message": "hello"},
                {"tool": {"name": "read", "input": {"path": "x"}, "output": "y"}},
                {"usage": {"inputTokens": 1, "outputTokens": 2, "model": "p/m"}},
            ],
            "outcome": "error",
            "error": "it broke",
        }
    )

    assert played.steps[0].after_ms == 5
    assert played.steps[2].tool.input == {"path": "x"}
    with pytest.raises(ValidationError, match="only one of"):
        RUNTIME.validate_python({"type": "scripted", "steps": [{"message": "a", "usage": {}}]})
    with pytest.raises(ValidationError, match="needs outcome"):
        RUNTIME.validate_python({"type": "scripted", "error": "it broke"})


# The `spawnlog.announce` section.

CANARY = b"hush, a canary of 24 bytes"
SECRET = f"whsec_{base64.b64encode(CANARY).decode()}"


def announce(*webhooks: dict[str, Any]) -> AnnounceSection:
    plain = {"id": "chat", "url": "https://gateway.example/", "secrets": [SECRET]}
    return AnnounceSection.model_validate(
        {"webhooks": [{**plain, **webhook} for webhook in webhooks]}
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"secrets": []}, "at least 1 item"),
        ({"secrets": [SECRET] * 3}, "at most 2 items"),
        ({"secrets": [SECRET.removeprefix("whsec_")]}, "must be whsec_ and the base64"),
        ({"secrets": ["whsec_" + base64.b64encode(CANARY[:23]).decode()]}, "24 to 64 random bytes"),
        ({"secrets": [f"{SECRET}*"]}, "must be whsec_ and the base64"),
        ({"headers": {"Webhook-Signature": "v1,x"}}, "is set by spawnlog for each request"),
        ({"agents": []}, "at least 1 item"),
        ({"agents": ["no id!"]}, "an agent id is 1 to 64 letters"),
        ({"origin": {"thread": "7"}}, "Extra inputs are not permitted"),
        ({"url": "ftp://gateway.example/"}, "must be a URL with http"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match="webhooks") as caught:
        announce(change)
    assert why in str(caught.value)
    assert SECRET.removeprefix("whsec_") not in str(caught.value)


def test_id_stands_for_one_webhook() -> None:
    with pytest.raises(ValidationError, match='there is another webhook "chat"'):
        announce({}, {})


@pytest.mark.parametrize(
    ("webhook", "agent_id", "origin", "fits"),
    [
        ({}, "main", {}, True),
        ({"agents": ["Ops"]}, "ops", {}, True),
        ({"agents": ["ops"]}, "main", {}, False),
        ({"origin": {}}, "main", {}, True),
        ({"origin": {"channel": "discord"}}, "main", {"channel": "discord"}, True),
        ({"origin": {"channel": "discord"}}, "main", {"channel": "slack"}, False),
        ({"origin": {"channel": "discord"}}, "main", {}, False),
        ({"origin": {"to": "channel:*"}}, "main", {"to": "channel:7"}, True),
        ({"origin": {"to": "channel:?"}}, "main", {"to": "channel:7"}, False),
        ({"origin": {"to": "[ab]"}}, "main", {"to": "a"}, False),
        (
            {"origin": {"channel": "d", "accountId": "b"}},
            "main",
            {"channel": "d", "accountId": "a"},
            False,
        ),
    ],
)
def test_webhook_is_chosen_by_agent_and_origin(
    webhook: dict[str, Any], agent_id: str, origin: dict[str, str | int], fits: bool
) -> None:
    assert receivers(announce(webhook), agent_id, origin) == (("chat",) if fits else ())


# The `spawnlog.hooks` section.

HOOK_SECRET = "hush-canary"


def hooks(**ended: Any) -> HooksSection:
    return HooksSection.model_validate({"subagentEnded": {"url": URL, **ended}})


def test_hooks_are_those_configured() -> None:
    assert HooksSection.model_validate({name: {"url": URL} for name in HOOKS}).configured == HOOKS
    assert HooksSection().configured == ()
    assert (HooksSection().attempts_max, HooksSection().retry_seconds_max) == (8, 300)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1/",
        "http://[::1]:8000/x?y=z",
        "https://h",
        "${HOOK_URL}",
        "https://h/${SECRET_PART}?k=${KEY}",
    ],
)
def test_address_is_http(url: str) -> None:
    ended = hooks(url=url).subagent_ended
    assert ended is not None
    assert ended.url == url


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "must be a URL with http"),
        ("ftp://h/", "must be a URL with http"),
        ("http://", "must be a URL with http"),
        ("http:///x", "must be a URL with http"),
        ("//h/x", "must be a URL with http"),
        (f"http://u:{HOOK_SECRET}@h/", "user name or a password"),
        ("http://@h/", "user name or a password"),
        ("http://h/#", "fragment"),
        ("http://h/ x", "blanks"),
        ("http://h/\n", "blanks"),
        ("http://ü/", "ASCII"),
        ("http://h:99999/", "must be a URL"),
        ("http://h:0/", "must be a URL with http"),
        ("http://[::1/", "must be a URL"),
        ("https://h/" + "x" * 4096, "at most 4096"),
        (7, "must be a string"),
        (None, "must be a string"),
    ],
)
def test_another_address_is_refused_and_not_shown(url: object, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        hooks(url=url)
    assert why in str(caught.value)
    assert HOOK_SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"A b": "x"}, "is not a valid header name"),
        ({"": "x"}, "is not a valid header name"),
        ({"Idempotency-Key": "x"}, "is set by spawnlog"),
        ({"HOST": "x"}, "is set by spawnlog"),
        ({"content-type": "x"}, "is set by spawnlog"),
        ({"CONTENT-LENGTH": "1"}, "is set by spawnlog"),
        ({"user-agent": "x"}, "is set by spawnlog"),
        ({"A": "x", "a": "y"}, "repeated in another case"),
        ({"A": f"{HOOK_SECRET}\r\nB: c"}, "control characters"),
        ({"A": f" {HOOK_SECRET}"}, "surrounding blanks"),
        ({"A": "ü"}, "ASCII"),
        ({"A": "x" * (HEADER_VALUE_CHARACTERS_MAX + 1)}, "at most 8192"),
        ({"A": 7}, "must be a string"),
        ({f"A{number}": "x" for number in range(51)}, "50"),
    ],
)
def test_invalid_header_is_refused_and_not_shown(headers: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        hooks(headers=headers)
    assert why in str(caught.value)
    assert HOOK_SECRET not in str(caught.value)


def test_limits_hold_at_their_ends() -> None:
    ends = {"attemptsMax": 20, "retrySecondsMax": 3600}
    read = HooksSection.model_validate(
        {**ends, "subagentEnded": {"url": URL, "timeoutSeconds": 60}}
    )
    assert (read.attempts_max, read.retry_seconds_max) == (20, 3600)
    assert read.subagent_ended is not None
    assert read.subagent_ended.timeout_seconds == 60


def test_address_and_headers_are_in_no_representation() -> None:
    read = hooks(url=f"https://h/?k={HOOK_SECRET}", headers={"A": HOOK_SECRET})
    assert HOOK_SECRET not in repr(read)
    assert HOOK_SECRET not in str(read)


# Which channels and accounts bind sub-agents to threads.

NOT = {"spawnSessions": False}


def policy(
    session: dict[str, Any] | None = None,
    channels: Any = None,
    *,
    channel: str | None = "discord",
    account: str | None = "acct",
) -> ThreadPolicy:
    """Return the thread policy of a channel's account."""
    values: dict[str, Any] = {"session": {"threadBindings": session or {}}, "channels": channels}
    return Configuration.model_validate(values).threads_of(channel, account)


def below(channel: dict[str, Any], **accounts: Any) -> dict[str, Any]:
    return {
        "discord": {
            "threadBindings": channel,
            "accounts": {name: {"threadBindings": account} for name, account in accounts.items()},
        }
    }


@pytest.mark.parametrize(
    ("session", "channels", "binds"),
    [
        ({"enabled": False}, None, False),
        (NOT, None, False),
        (NOT, below({"spawnSessions": True}), True),
        ({}, below(NOT), False),
        ({}, below(NOT, acct={"spawnSessions": True}), True),
        ({}, below({}, acct=NOT), False),
        ({}, below({}, other=NOT), True),
        ({}, {"slack": {"threadBindings": NOT}}, True),
        ({"enabled": False}, below({"spawnSessions": True}), False),
        ({"enabled": False}, below({}, acct={"enabled": True}), True),
    ],
)
def test_account_overrides_channel_and_session(
    session: dict[str, Any], channels: Any, binds: bool
) -> None:
    assert policy(session, channels).binds is binds


def test_each_value_is_looked_for_by_itself() -> None:
    channels = below({"defaultSpawnContext": "isolated"}, acct={"spawnSessions": False})
    found = policy({"enabled": False}, channels)
    assert found == ThreadPolicy(
        enabled=False, spawn_sessions=False, default_spawn_context="isolated"
    )
    fork = below({"defaultSpawnContext": "isolated"}, acct={"defaultSpawnContext": "fork"})
    assert policy({}, fork).default_spawn_context == "fork"


def test_channel_is_found_in_any_case_with_a_default_account() -> None:
    channels = below({}, default=NOT)
    assert not policy({}, channels, channel=" DISCORD ", account=None).binds
    assert policy({}, channels, channel=None, account=None).binds


Entry = dict[str, Any]

ids = st.sampled_from(["a", "b", "c", "d", "e"])
entries = st.lists(
    st.fixed_dictionaries({"id": ids, "priority": st.sampled_from([-1, 0, 0.5, 1, 100])}),
    max_size=6,
)


def order(defaults: list[Entry], own: list[Entry], ignore: list[str]) -> list[tuple[str, str]]:
    """Return the scripts for agent `x` as id and URI; the URI tells the source of an entry."""
    configuration = Configuration.model_validate(
        {
            "agents": {
                "defaults": {"subagents": {"contextScripts": {"run": marked(defaults, "default")}}},
                "list": [
                    {
                        "id": "x",
                        "subagents": {
                            "contextScripts": {"run": marked(own, "own"), "ignore": ignore}
                        },
                    }
                ],
            }
        }
    )
    return [
        (script.id, script.uri) for script in configuration.effective_agent("x").context_scripts
    ]


def marked(scripts: list[Entry], source: str) -> list[Entry]:
    return [{**script, "uri": f"{source}{at}"} for at, script in enumerate(scripts)]


@given(entries, entries, st.lists(ids, max_size=3))
def test_order_is_that_of_the_five_steps(
    defaults: list[Entry], own: list[Entry], ignore: list[str]
) -> None:
    """Applies the steps one after another, with lists, unlike the code."""
    steps = [script for script in marked(defaults, "default") if script["id"] not in ignore]
    steps += marked(own, "own")
    places = list(dict.fromkeys(script["id"] for script in steps))
    chosen = [[script for script in steps if script["id"] == id][-1] for id in places]
    expected = []
    for priority in sorted({script["priority"] for script in chosen}, reverse=True):
        expected += [script for script in chosen if script["priority"] == priority]

    assert order(defaults, own, ignore) == [(script["id"], script["uri"]) for script in expected]
