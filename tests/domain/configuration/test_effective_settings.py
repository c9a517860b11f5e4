import pytest

from domain.configuration.problems import ConfigurationError
from domain.configuration.settings import Settings, effective_settings

FILE = Settings(host="127.0.0.2", port=1, data_dir="/file", database_url="postgres://file/x")


def test_a_flag_beats_a_variable_and_a_variable_beats_the_file() -> None:
    variables = {"SPAWNLOG_HOST": "127.0.0.3", "SPAWNLOG_PORT": "2"}
    settings = effective_settings(FILE, variables, {"port": 3, "host": None})

    assert (settings.port, settings.host, settings.data_dir) == (3, "127.0.0.3", "/file")
    assert settings.database_url == "postgres://file/x"


def test_an_empty_variable_counts_as_not_set() -> None:
    assert effective_settings(FILE, {"SPAWNLOG_PORT": " "}, {}) == FILE


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


def test_a_variable_can_put_authentication_on_again() -> None:
    open_file = Settings(no_auth=True)
    assert not effective_settings(open_file, {"SPAWNLOG_NO_AUTH": "off"}, {}).no_auth


def test_a_flag_that_was_not_given_puts_nothing_on() -> None:
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
def test_an_error_names_the_variable_or_flag_at_fault(
    variables: dict[str, str], flags: dict[str, object], source: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        effective_settings(Settings(), variables, flags)

    assert [problem.source for problem in caught.value.problems] == [source]
    assert "Input should" not in str(caught.value)


def test_the_address_of_the_database_does_not_enter_an_error() -> None:
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


def test_an_unknown_flag_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="no such setting"):
        effective_settings(Settings(), {}, {"tokens": ()})


def test_where_spans_are_sent_may_be_said_by_a_variable_and_keeps_the_headers_of_the_file() -> None:
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
def test_what_is_no_endpoint_is_an_error_of_its_variable(endpoint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        effective_settings(Settings(), {"SPAWNLOG_OTLP_ENDPOINT": endpoint}, {})
    assert [problem.source for problem in caught.value.problems] == ["SPAWNLOG_OTLP_ENDPOINT"]
    assert "s3c" not in str(caught.value)
