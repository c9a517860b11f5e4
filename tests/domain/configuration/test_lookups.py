"""Values looked up in a configuration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.configuration.configuration import Configuration
from domain.configuration.models import is_model_name, is_model_pattern
from domain.configuration.problems import ConfigurationError
from domain.configuration.runtimes import CommandRuntime, provides_sandbox, served_models_of
from domain.configuration.settings import Settings, effective_settings
from domain.plan.model import storable_model_name


def configuration(**sections: object) -> Configuration:
    return Configuration.model_validate(sections)


COMMAND = {"type": "command", "command": ["true"]}


def test_without_a_file_the_agent_main_answers_with_its_prompt() -> None:
    builtin = Configuration.builtin()

    assert builtin.agent_ids() == ("main",)
    runtime = builtin.effective_agent("main").runtime
    assert isinstance(runtime, CommandRuntime)
    assert (runtime.command, runtime.input, runtime.output) == (("cat",), "stdin-text", "text")


def test_agent_is_found_in_any_case() -> None:
    listed = configuration(agents={"list": [{"id": "Kate"}]})

    found = listed.agent(" KATE ")
    assert found is not None
    assert found.id == "kate"
    assert listed.agent("\u212aate") is None  # the Kelvin sign, whose lower case is k


def test_runtime_declares_models_and_sandbox() -> None:
    declared = {**COMMAND, "models": ["p/*"], "providesSandbox": True}
    mixed = configuration(
        agents={
            "defaults": {"runtime": {"type": "embedded", "models": ["x"], "providesSandbox": True}},
            "list": [
                {"id": "a"},
                {"id": "b", "runtime": declared},
                {"id": "c", "runtime": COMMAND},
            ],
        }
    )

    runtimes = [mixed.effective_agent(agent_id).runtime for agent_id in "abc"]
    assert [served_models_of(runtime) for runtime in runtimes] == [None, ("p/*",), None]
    assert [provides_sandbox(runtime) for runtime in runtimes] == [False, True, False]
    assert served_models_of(None) is None
    assert provides_sandbox(None) is False


@pytest.mark.parametrize(
    ("session", "key"),
    [
        ({}, "agent:ops:main"),
        ({"mainKey": " Work "}, "agent:ops:work"),
        ({"mainKey": " "}, "agent:ops:main"),
        ({"mainKey": " : "}, "agent:ops:main"),
        ({"mainKey": "Desk : :Left"}, "agent:ops:desk:left"),
        ({"mainKey": "agent"}, "agent:ops:agent"),
    ],
)
def test_main_is_the_session_of_the_main_key(session: dict[str, str], key: str) -> None:
    configured = configuration(session=session, agents={"list": [{"id": "ops"}]})
    assert configured.canonical_key("main") == key
    assert configured.canonical_key(configured.session.main_key) == key
    assert configured.canonical_key("main", "Other") == key.replace("ops", "other")


def test_main_depends_on_key_scope_and_default_agent() -> None:
    def main(**sections: object) -> str:
        return configuration(**sections).canonical_key("main")

    assert main() == "agent:main:main"
    assert main(session={"mainKey": "Desk"}) == "agent:main:desk"
    assert main(agents={"list": [{"id": "helper"}]}) == "agent:helper:main"
    assert main(session={"scope": "global", "mainKey": "work"}) == "global"


@pytest.mark.parametrize("text", ["agent:ops:main", "Agent : x", "agent:", "\u3164", "😀" * 128])
def test_main_key_that_begins_a_key_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        configuration(session={"mainKey": text})


@given(st.text(max_size=128))
def test_accepted_main_key_makes_keys_for_every_agent(text: str) -> None:
    try:
        configured = configuration(session={"mainKey": text})
    except ValidationError:
        return
    for agent_id in ("a", "a" * 64):
        key = configured.canonical_key("main", agent_id)
        assert configured.canonical_key(key) == key
        assert key == f"agent:{agent_id}:{configured.session.main_key}"
        assert configured.is_sandboxed(agent_id, key) is False


def test_representation_shows_no_secrets() -> None:
    shown = repr(
        configuration(
            channels={"token": "s3cret"},
            spawnlog={"databaseUrl": "postgres://u:s3cret@h/d"},
            agents={
                "list": [
                    {
                        "id": "a",
                        "tools": {"x": "s3cret"},
                        "runtime": {**COMMAND, "env": {"X": "s3cret"}},
                    }
                ]
            },
        )
    )

    assert "s3cret" not in shown
    assert "'a'" in shown


FILE = Settings(host="127.0.0.2", port=1, data_dir="/file", database_url="postgres://file/x")


def test_flag_beats_variable_beats_file() -> None:
    variables = {"SPAWNLOG_HOST": "127.0.0.3", "SPAWNLOG_PORT": "2"}
    settings = effective_settings(FILE, variables, {"port": 3, "host": None})

    assert (settings.port, settings.host, settings.data_dir) == (3, "127.0.0.3", "/file")
    assert settings.database_url == "postgres://file/x"


def test_every_setting_has_its_variable() -> None:
    variables = {
        "SPAWNLOG_HOST": "::1",
        "SPAWNLOG_PORT": "0",
        "SPAWNLOG_DATABASE_URL": "postgres://variable/x",
        "SPAWNLOG_DATA_DIR": "/variable",
        "SPAWNLOG_NO_AUTH": "Yes",
        "SPAWNLOG_LEASE_SECONDS": "2.5",
        "SPAWNLOG_DRAIN_SECONDS": "0",
        "SPAWNLOG_URL": "is another program's",
    }

    assert effective_settings(FILE, variables, {}) == Settings(
        host="::1",
        port=0,
        database_url="postgres://variable/x",
        data_dir="/variable",
        no_auth=True,
        lease_seconds=2.5,
        drain_seconds=0,
    )


def test_variable_can_put_authentication_on_again() -> None:
    open_file = Settings(no_auth=True)
    assert not effective_settings(open_file, {"SPAWNLOG_NO_AUTH": "off"}, {}).no_auth


def test_absent_flag_changes_nothing() -> None:
    assert effective_settings(Settings(no_auth=True), {}, {"no_auth": False}).no_auth


@pytest.mark.parametrize(
    ("variables", "flags", "source"),
    [
        ({"SPAWNLOG_PORT": "eighty"}, {}, "SPAWNLOG_PORT"),
        ({"SPAWNLOG_PORT": "70000"}, {}, "SPAWNLOG_PORT"),
        ({"SPAWNLOG_NO_AUTH": "perhaps"}, {}, "SPAWNLOG_NO_AUTH"),
        ({"SPAWNLOG_LEASE_SECONDS": "0.5"}, {}, "SPAWNLOG_LEASE_SECONDS"),
        ({"SPAWNLOG_LEASE_SECONDS": "nan"}, {}, "SPAWNLOG_LEASE_SECONDS"),
        ({"SPAWNLOG_HOST": "http://x"}, {}, "SPAWNLOG_HOST"),
        ({"SPAWNLOG_PORT": "80"}, {"port": -1}, "--port"),
        ({}, {"data_dir": "a\0b"}, "--data-dir"),
    ],
)
def test_error_names_the_variable_or_flag_at_fault(
    variables: dict[str, str], flags: dict[str, object], source: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        effective_settings(Settings(), variables, flags)

    assert [problem.source for problem in caught.value.problems] == [source]
    assert "Input should" not in str(caught.value)


def test_address_of_the_database_does_not_enter_an_error() -> None:
    with pytest.raises(ConfigurationError) as caught:
        effective_settings(Settings(), {"SPAWNLOG_DATABASE_URL": "postgres://u:s3c\0ret@h"}, {})

    assert "s3c" not in str(caught.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "example.com", "::", "127.example.com"])
def test_without_authentication_only_this_machine_is_served(host: str) -> None:
    with pytest.raises(ConfigurationError, match="needs a loopback host"):
        effective_settings(Settings(host=host), {}, {"no_auth": True})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "::1", "127.1.2.3"])
def test_loopback_hosts_may_be_served_without_authentication(host: str) -> None:
    assert effective_settings(Settings(host=host), {}, {"no_auth": True}).no_auth


def test_unknown_flag_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="no such setting"):
        effective_settings(Settings(), {}, {"tokens": ()})


def test_otlp_variable_replaces_endpoint_and_keeps_headers() -> None:
    headers = {"x-key": "${KEY}"}
    file = Settings.model_validate(
        {"telemetry": {"otlpEndpoint": "http://file:4318", "headers": headers}}
    )
    variables = {"SPAWNLOG_OTLP_ENDPOINT": "http://variable:4318/"}
    assert effective_settings(file, {}, {}).telemetry.otlp_endpoint == "http://file:4318"
    telemetry = effective_settings(file, variables, {}).telemetry
    assert telemetry.otlp_endpoint == "http://variable:4318"
    assert telemetry.headers == headers
    foreign = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://foreign:4318"}
    assert effective_settings(Settings(), foreign, {}).telemetry.otlp_endpoint is None


@pytest.mark.parametrize("endpoint", ["4318", "http://u:s3c@h", "http://h/?key=s3c", "ftp://h"])
def test_invalid_endpoint_is_an_error_of_its_variable(endpoint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        effective_settings(Settings(), {"SPAWNLOG_OTLP_ENDPOINT": endpoint}, {})
    assert [problem.source for problem in caught.value.problems] == ["SPAWNLOG_OTLP_ENDPOINT"]
    assert "s3c" not in str(caught.value)


# Model names, and storage of requested texts that are not model names.


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("anthropic/claude-3.5:beta+x@1", True),
        ("/x", True),
        ("@cf/meta/llama", True),
        ("_own", True),
        ("x/", True),
        ("a" * 256, True),
        ("@" + "a" * 256, False),
        ("/", False),
        ("@/_", False),
        ("-x", False),
        (".x", False),
        ("a b", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_some_texts_are_names_of_models(text: str, fits: bool) -> None:
    assert is_model_name(text) is fits


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (" MY claude ", "anthropic/claude"),
        (" opus ", "opus"),
        ("@cf/meta/llama", "@cf/meta/llama"),
        ("my claude, please", None),
        ("my/claude opus", None),
        ("My Own", "My Own"),
        ("broken one", None),
        (" ", None),
    ],
)
def test_requested_model_is_stored_by_name_or_alias(text: str, named: str | None) -> None:
    aliases = {
        "my claude": "anthropic/claude",
        "opus": "anthropic/opus",
        "my/claude opus": "p/m",
        "my own": "My Own",
        "broken one": "p/\x1b[31m",
    }
    assert storable_model_name(text, aliases) == named


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("*", True),
        ("anthropic/*", True),
        ("openrouter/anthropic/*", True),
        ("claude", True),
        ("anthropic/claude", True),
        ("@cf/*", True),
        ("/*", False),
        ("//*", False),
        ("*/claude", False),
        ("claude*", False),
        ("", False),
        ("a b", False),
    ],
)
def test_runtime_declares_names_or_all_of_a_provider(text: str, fits: bool) -> None:
    assert is_model_pattern(text) is fits
