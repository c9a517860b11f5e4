"""`${NAME}` in the texts of a configuration file."""

from typing import Any

import pytest

from domain.plan.effective import effective_agent_values
from infrastructure.outbound.configuration.load import LoadedConfiguration
from tests.support.builders.configurations import load_values

COMMAND: dict[str, Any] = {"type": "command", "command": ["true"]}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAD_MODEL", "acme/big")
    monkeypatch.setenv("API_KEY", "canary-7d1f")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)


def loaded_with(defaults: dict[str, Any], **sections: Any) -> LoadedConfiguration:
    return load_values({"agents": {"defaults": {"runtime": COMMAND, **defaults}}, **sections})


def told_about(loaded: LoadedConfiguration) -> list[str]:
    return [str(one).removeprefix("config: ") for one in loaded.warnings]


def model_of(loaded: LoadedConfiguration) -> object:
    rows = effective_agent_values(loaded.configuration, "main") or ()
    return next(row.value for row in rows if row.key == "model")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("${LEAD_MODEL}", "acme/big"),
        ("${LEAD_MODEL}-fast", "acme/big-fast"),
        ("$${LEAD_MODEL}", "${LEAD_MODEL}"),
        ("$LEAD_MODEL", "$LEAD_MODEL"),
    ],
)
def test_variables_are_replaced_in_any_text(written: str, read: str) -> None:
    loaded = load_values(
        {
            "agents": {
                "defaults": {"model": {"primary": written, "fallbacks": [written]}},
                "list": [{"id": "main", "name": written, "runtime": COMMAND}],
            }
        }
    )
    agents = loaded.stored["agents"]
    assert agents["defaults"]["model"] == {"primary": read, "fallbacks": [read]}
    assert agents["list"][0]["name"] == read
    assert told_about(loaded) == []


def test_resolved_model_is_the_one_a_child_gets() -> None:
    assert model_of(loaded_with({"model": "${LEAD_MODEL}"})) == "acme/big"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("${UNSET}", "${UNSET} is not set or empty, and stays as it is"),
        ("${EMPTY}/x", "${EMPTY} is not set or empty, and stays as it is"),
        ("${lead}", "the name of a variable has capitals"),
        ("${API_KEY}", "${API_KEY} is named like a secret or an address"),
    ],
)
def test_reference_that_stays_is_a_warning_and_no_model(text: str, warning: str) -> None:
    loaded = loaded_with({"model": text})
    (told,) = told_about(loaded)
    assert told.startswith("agents.defaults.model: ")
    assert warning in told
    assert loaded.stored["agents"]["defaults"]["model"] == text
    assert "canary-7d1f" not in loaded.stored_text + told
    assert model_of(loaded) == "the runtime's own choice"


def test_variables_of_the_file_fill_those_that_are_unset() -> None:
    variables = {"LEAD_MODEL": "file/model", "TEAM_DIR": "/srv/team"}
    loaded = loaded_with(
        {"model": "${LEAD_MODEL}", "workspace": "${TEAM_DIR}/${OTHER}"},
        env={"OTHER": "lead", "vars": variables},
    )
    assert model_of(loaded) == "acme/big"
    assert str(loaded.place("${TEAM_DIR}/${OTHER}")) == "/srv/team/lead"
    assert told_about(loaded) == []
    assert "/srv/team" not in loaded.stored_text


@pytest.mark.parametrize(
    "name", ["SMTP_PASS", "GITHUB_PAT", "MYSQL_PWD", "JWT", "AUTH", "SLACK_WEBHOOK", "HOOK_URL"]
)
def test_variable_that_may_hold_a_secret_is_not_recorded(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "canary-7d1f")
    argument = f"{name}=${{{name}}}"
    loaded = loaded_with({}, tools={"x": [argument], "y": f"${{{name}}}"})
    assert "canary-7d1f" not in loaded.stored_text
    assert len(told_about(loaded)) == 2


def test_variables_of_the_file_may_refer_to_others() -> None:
    variables = {"A": "${LEAD_MODEL}-fast", "B": "${UNSET}/x"}
    loaded = loaded_with({"model": "${A}", "thinkingDefault": "${B}"}, env={"vars": variables})
    assert model_of(loaded) == "acme/big-fast"
    (told,) = told_about(loaded)
    assert "thinkingDefault: ${B} holds ${UNSET}, which is not set" in told
    assert loaded.stored["agents"]["defaults"]["thinkingDefault"] == "${B}"


def test_texts_that_may_hold_secrets_keep_their_references() -> None:
    runtime = {**COMMAND, "env": {"MODE": "${LEAD_MODEL}"}}
    provider = {"apiKey": "${API_KEY}", "headers": {"X-Team": "${LEAD_MODEL}"}}
    loaded = loaded_with({"runtime": runtime}, models={"providers": {"acme": provider}})
    assert loaded.stored["agents"]["defaults"]["runtime"]["env"] == {"MODE": "${LEAD_MODEL}"}
    assert loaded.stored["models"]["providers"]["acme"] == provider
    assert told_about(loaded) == []


def test_sections_of_other_programs_keep_their_references() -> None:
    channels = {"telegram": {"name": "${LEAD_MODEL}"}}
    loaded = loaded_with({}, channels=channels)
    assert loaded.stored["channels"] == channels
    assert told_about(loaded) == []


def test_address_in_a_variable_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY", "https://user:canary-7d1f@proxy.example/v1")
    monkeypatch.setenv("PROXY_URL", "https://proxy.example/canary-7d1f")
    providers = {"a": {"baseUrl": "${PROXY}"}, "b": {"baseUrl": "${PROXY_URL}"}}
    loaded = loaded_with({}, models={"providers": providers})
    assert "canary-7d1f" not in loaded.stored_text
    assert loaded.secret_pointers == ("/models/providers/a/baseUrl",)
