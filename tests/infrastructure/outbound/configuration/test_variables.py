"""`${NAME}` in the texts of a configuration file."""

from typing import Any

import pytest

from domain.plan.effective import effective_agent_values
from infrastructure.outbound.configuration.load import LoadedConfiguration
from tests.support.builders.configurations import load_values

COMMAND: dict[str, Any] = {"type": "command", "command": ["true"]}
CANARY = "canary-7d1f"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAD_MODEL", "acme/big")
    monkeypatch.setenv("API_KEY", CANARY)
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)


def loaded_with(defaults: dict[str, Any], **sections: Any) -> LoadedConfiguration:
    loaded = load_values({"agents": {"defaults": {"runtime": COMMAND, **defaults}}, **sections})
    assert CANARY not in f"{loaded.stored_text}{loaded.warnings}"
    return loaded


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
def test_variable_is_replaced_in_any_text(written: str, read: str) -> None:
    agent = {"id": "main", "name": written, "runtime": COMMAND}
    model = {"primary": written, "fallbacks": [written]}
    loaded = load_values({"agents": {"defaults": {"model": model}, "list": [agent]}})
    agents = loaded.stored["agents"]
    assert agents["defaults"]["model"] == {"primary": read, "fallbacks": [read]}
    assert agents["list"][0]["name"] == read
    assert loaded.warnings == ()
    if read.startswith("acme"):
        assert model_of(loaded) == read


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("${UNSET}", "${UNSET} is not set or empty, so it is not replaced"),
        ("${EMPTY}/x", "${EMPTY} is not set or empty, so it is not replaced"),
        ("${lead}", "the name of a variable has only capitals"),
        ("${API_KEY}", "${API_KEY} is not replaced: it is named like a secret or an address"),
    ],
)
def test_reference_that_stays_is_warned_of_and_no_model(text: str, warning: str) -> None:
    loaded = loaded_with({"model": text})
    (item,) = map(str, loaded.warnings)
    assert item.startswith("config: agents.defaults.model: ")
    assert warning in item
    assert loaded.stored["agents"]["defaults"]["model"] == text
    assert model_of(loaded) == "the runtime's own choice"


def test_variables_of_file_replace_unset_ones() -> None:
    variables = {"LEAD_MODEL": "file/model", "TEAM_DIR": "/srv/team"}
    loaded = loaded_with(
        {"model": "${LEAD_MODEL}", "workspace": "${TEAM_DIR}/${OTHER}"},
        env={"OTHER": "lead", "vars": variables},
    )
    assert model_of(loaded) == "acme/big"
    assert str(loaded.place("${TEAM_DIR}/${OTHER}")) == "/srv/team/lead"
    assert loaded.warnings == ()
    assert "/srv/team" not in loaded.stored_text


@pytest.mark.parametrize(
    "name", ["SMTP_PASS", "GITHUB_PAT", "MYSQL_PWD", "JWT", "AUTH", "SLACK_WEBHOOK", "HOOK_URL"]
)
def test_possible_secret_in_variable_is_not_stored(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, CANARY)
    loaded = loaded_with({}, tools={"x": [f"{name}=${{{name}}}"], "y": f"${{{name}}}"})
    assert len(loaded.warnings) == 2


def test_variables_of_file_may_refer_to_others() -> None:
    variables = {"A": "${LEAD_MODEL}-fast", "B": "${UNSET}/x"}
    loaded = loaded_with({"model": "${A}", "thinkingDefault": "${B}"}, env={"vars": variables})
    assert model_of(loaded) == "acme/big-fast"
    (warning,) = loaded.warnings
    assert "thinkingDefault: ${B} holds ${UNSET}, which is not set" in str(warning)
    assert loaded.stored["agents"]["defaults"]["thinkingDefault"] == "${B}"


def test_references_stay_beside_secrets_and_in_other_sections() -> None:
    runtime = {**COMMAND, "env": {"MODE": "${LEAD_MODEL}"}}
    sections: dict[str, Any] = {
        "models": {
            "providers": {"acme": {"apiKey": "${API_KEY}", "headers": {"X": "${LEAD_MODEL}"}}}
        },
        "channels": {"telegram": {"name": "${LEAD_MODEL}"}},
    }
    loaded = loaded_with({"runtime": runtime}, **sections)
    assert loaded.stored["agents"]["defaults"]["runtime"] == runtime
    assert {name: loaded.stored[name] for name in sections} == sections
    assert loaded.warnings == ()


def test_address_in_variable_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY", f"https://user:{CANARY}@proxy.example/v1")
    monkeypatch.setenv("PROXY_URL", f"https://proxy.example/{CANARY}")
    providers = {"a": {"baseUrl": "${PROXY}"}, "b": {"baseUrl": "${PROXY_URL}"}}
    loaded = loaded_with({}, models={"providers": providers})
    assert loaded.secret_pointers == ("/models/providers/a/baseUrl",)
