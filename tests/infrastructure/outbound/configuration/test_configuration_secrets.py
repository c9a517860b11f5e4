"""Secrets of a configuration: kept as references, resolved when used, refused elsewhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.ports.configurations import MissingSecretError, PinnedConfiguration
from application.ports.credentials import Credential
from domain.configuration.problems import ConfigurationError, ConfigurationProblem, parts_of
from domain.configuration.runtimes import CommandRuntime
from domain.configuration.secrets import SecretReference
from domain.configuration.settings import TokenSource
from domain.plan.effective import effective_values
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import (
    LoadedConfiguration,
    configuration_from_stored,
    load,
    load_recorded,
)
from infrastructure.outbound.configuration.secrets import redact
from infrastructure.outbound.credentials.agent_credentials import AgentCredentials
from tests.support.builders.configurations import load_text, load_values

FILE = """{
  spawnlog: {
    databaseUrl: "postgres://u:s3cret@h/d",
    tokens: [{ id: "a", token: { file: "token.txt" }, scopes: ["read"], sessions: ["*"] }],
  },
  agents: { list: [{ id: "a", runtime: { type: "command", command: ["x"],
    env: { LITERAL: "s3cret", REFERENCE: "${MY_KEY}", BOTH: "s3cret ${MY_KEY}" } } }] },
  channels: { botToken: "s3cret" },
}"""
OF_OTHER_PROGRAMS = """{
 agents: {list: [{id: "main", runtime: {type: "command", command: ["curl"], env: {A: "s3cret"}}}]},
 gateway: {auth: {password: 908172, token: "s3cret"}, remote: {url: "https://s3cret@host/x"}},
 channels: {x: {botToken: "s3cret", hook: "https://host/?X-Amz-Signature=s3cret"}},
 mcp: {servers: {y: {command: "y", args: ["--api-key", "s3cret", "--token=s3cret"]}}},
 spawnlog: {databaseUrl: "postgresql://u:s3cret@h/db"},
}"""
SECRET_NAMES = [
    "apiKey", "api_key", "X-Api-Key", "APIKEY", "accessToken", "botToken", "token", "token2",
    "clientSecret", "password", "Passwd", "Authorization", "credential", "credentials", "cookie",
    "Set-Cookie", "databaseUrl", "dsn", "webhookUrl", "apiKeys", "privateKey",
]  # fmt: skip
PLAIN_NAMES = [
    "mainKey", "returnKey", "errorKey", "agentIdOverrideKey", "sessionKey", "keyword", "tokenizer",
    "maxTokensField", "passage", "compass", "secretary", "accessKeyId", "uri", "model",
]  # fmt: skip
PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\nabcdefghijklmnop\n-----END RSA PRIVATE KEY-----"


def kept(values: dict[str, Any]) -> Any:
    return redact(values)[0]


def reference(pointer: str) -> dict[str, str]:
    return {"$secret": pointer}


# Values that are replaced by a reference.


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_text_under_secret_name_is_replaced(name: str) -> None:
    assert kept({"x": {name: "s3cret"}}) == {"x": {name: reference(f"/x/{name}")}}


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_text_under_another_name_stays(name: str) -> None:
    assert kept({"x": {name: "plain"}}) == {"x": {name: "plain"}}


def test_only_texts_below_env_and_headers_are_replaced() -> None:
    values = {"env": {"vars": {"A": "1"}, "list": ["B=2"], "on": True}, "headers": {"X": "y"}}
    assert redact(values) == (
        {
            "env": {
                "vars": {"A": reference("/env/vars/A")},
                "list": [reference("/env/list/0")],
                "on": True,
            },
            "headers": {"X": reference("/headers/X")},
        },
        ("/env/vars/A", "/env/list/0", "/headers/X"),
    )


def test_references_to_secrets_stay() -> None:
    values = {
        "apiKey": "${OPENAI_API_KEY}",
        "token": {"file": "token.txt"},
        "password": {"source": "env", "provider": "default", "id": "PASSWORD"},
        "secret": {"$secret": "/elsewhere"},
        "env": {"A": "${A}", "EMPTY": ""},
    }
    assert redact(values) == (values, ())
    assert kept({"token": "Bearer ${TOKEN}"}) == {"token": reference("/token")}


@pytest.mark.parametrize(
    ("text", "is_secret"),
    [
        ("see https://u:s3cret@host/ for more", True),
        ("-----BEGIN RSA PRIVATE KEY-----\ns3cret", True),
        ("https://${U}:${PASSWORD}@host/?token=${TOKEN}", False),
    ],
)
def test_text_that_looks_secret_is_replaced_anywhere(text: str, is_secret: bool) -> None:
    assert kept({"x": ["y", text]}) == {"x": ["y", reference("/x/1") if is_secret else text]}


def test_number_under_secret_name_is_replaced_unless_it_counts() -> None:
    values = {"x": {"password": 123456, "token": 1.5, "maxTokens": 5, "apiKey": True}}
    replaced = {"password": reference("/x/password"), "token": reference("/x/token")}
    assert redact(values) == ({"x": {**values["x"], **replaced}}, ("/x/password", "/x/token"))


def test_secret_argument_in_list_is_replaced_in_a_copy() -> None:
    values = {"args": ["--fast", "--api-key", "s3cret", "--token=s3cret"]}
    secrets = [reference("/args/2"), reference("/args/3")]
    assert kept(values) == {"args": ["--fast", "--api-key", *secrets]}
    assert values == {"args": ["--fast", "--api-key", "s3cret", "--token=s3cret"]}


def test_names_of_providers_and_arguments_mark_no_secret() -> None:
    values = {
        "models": {"providers": {"my-token": {"models": [{"id": "m", "name": "n"}]}}},
        "agents": {"defaults": {"models": {"p/key": {"alias": "opus"}}}},
        "argMap": {"token": "task", "apiKey": "cfg"},
        "spawnlog": {"tokens": [{"id": "ops", "token": "${OPS}", "scopes": ["read"]}]},
    }
    assert kept(values) == values
    argument = {"argMap": {"token": "s3cret"}}
    assert kept(argument) == {"argMap": {"token": reference("/argMap/token")}}


secret_texts = st.text("abc", min_size=1, max_size=5).map(lambda text: "s3cret-" + text)
plain_texts = st.text("abc", max_size=5)
plain_names = st.sampled_from(["a", "b/c", "d~e", "list", "models", "0"])
secret_names = st.sampled_from(["apiKey", "TOKEN", "x-secret", "env", "headers", "my.password"])


def secret_below(depth: int) -> st.SearchStrategy[Any]:
    """Draw values whose texts are all secret, for a place under a secret name."""
    if depth == 0:
        return secret_texts | st.integers() | st.none()
    inner = secret_below(depth - 1)
    return inner | st.lists(inner, max_size=3) | st.dictionaries(plain_names, inner, max_size=3)


documents = st.recursive(
    plain_texts | st.integers() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(plain_names, inner, max_size=3)
        | st.dictionaries(secret_names, secret_below(2), max_size=3)
    ),
    max_leaves=20,
)


def references_in(values: Any) -> Iterator[str]:
    if isinstance(values, dict):
        if set(values) == {"$secret"}:
            yield values["$secret"]
        values = list(values.values())
    if isinstance(values, list):
        for value in values:
            yield from references_in(value)


def value_at(values: Any, pointer: str) -> Any:
    for part in parts_of(pointer):
        values = values[int(part)] if isinstance(values, list) else values[part]
    return values


@given(documents)
def test_every_secret_is_replaced_and_found_by_its_reference(document: Any) -> None:
    stored, pointers = redact({"x": document})
    assert "s3cret" not in json.dumps(stored)
    assert tuple(references_in(stored)) == pointers
    taken = [value_at({"x": document}, pointer) for pointer in pointers]
    assert all(isinstance(value, int) or value.startswith("s3cret") for value in taken)
    assert redact(stored) == (stored, ())


def test_no_secret_of_another_program_is_kept_or_shown() -> None:
    loaded = load_text(OF_OTHER_PROGRAMS, "x.json5")
    shown = json.dumps(effective_values(configuration_from_stored(loaded.stored), loaded.stored))
    for text in (loaded.stored_text, shown):
        assert "s3cret" not in text
        assert "908172" not in text


# Secrets are resolved when they are used.


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedConfiguration:
    path = tmp_path / "spawnlog.json5"
    path.write_text(FILE)
    return load(path)


def test_loaded_configuration_holds_only_the_database_secret(loaded: LoadedConfiguration) -> None:
    assert loaded.secret_pointers == (
        "/spawnlog/databaseUrl",
        "/agents/list/0/runtime/env/LITERAL",
        "/agents/list/0/runtime/env/BOTH",
        "/channels/botToken",
    )
    assert "s3cret" not in loaded.stored_text
    assert "s3cret" not in repr(loaded)
    assert loaded.configuration.spawnlog.database_url == "postgres://u:s3cret@h/d"
    assert loaded.configuration.model_dump_json().count("s3cret") == 1


def test_runtime_environment_is_resolved_when_used(
    loaded: LoadedConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = loaded.configuration.effective_agent("a").runtime
    assert isinstance(runtime, CommandRuntime)
    variables = {"MY_KEY": "from the environment ${LITERAL}"}
    assert {name: loaded.resolve(value, variables) for name, value in runtime.env.items()} == {
        "LITERAL": "s3cret",
        "REFERENCE": "from the environment ${LITERAL}",
        "BOTH": "s3cret from the environment ${LITERAL}",
    }
    monkeypatch.setenv("MY_KEY", "of the server")
    assert loaded.resolve("${MY_KEY}") == "of the server"


def test_unset_variables_are_named_once(loaded: LoadedConfiguration) -> None:
    with pytest.raises(ConfigurationError) as refused:
        loaded.resolve("${ONE} ${TWO} ${ONE}", {})
    assert [problem.source for problem in refused.value.problems] == ["ONE", "TWO"]


@pytest.mark.parametrize(
    "pointer", ["/nothing", "/agents/list/7", "/agents/list/-1", "/agents", "/spawnlog/tokens/0"]
)
def test_secret_of_another_file_is_refused(loaded: LoadedConfiguration, pointer: str) -> None:
    with pytest.raises(ConfigurationError, match="started with a different file"):
        loaded.resolve(SecretReference.model_validate({"$secret": pointer}))


def test_token_is_read_from_file_beside_configuration(
    loaded: LoadedConfiguration, tmp_path: Path
) -> None:
    source = loaded.configuration.spawnlog.tokens[0].token
    with pytest.raises(ConfigurationError, match="is not a file"):
        loaded.resolve_token(source)
    (tmp_path / "token.txt").write_text("  the-token\n")
    assert loaded.resolve_token(source) == "the-token"


@pytest.mark.parametrize("content", [b"", b" \n", b"one\ntwo", b"\xff", b"x" * 70_000])
def test_token_file_without_one_token_is_refused(
    loaded: LoadedConfiguration, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "token.txt").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"token\.txt: "):
        loaded.resolve_token(loaded.configuration.spawnlog.tokens[0].token)


@pytest.mark.parametrize(
    "source", [TokenSource(file="${NAME}/token.txt"), TokenSource(variable="NAME")]
)
def test_token_source_may_refer_to_variable(
    source: TokenSource, loaded: LoadedConfiguration, tmp_path: Path
) -> None:
    (tmp_path / "the-token").mkdir()
    (tmp_path / "the-token" / "token.txt").write_text("the-token")
    assert loaded.resolve_token(source, {"NAME": "the-token"}) == "the-token"
    with pytest.raises(ConfigurationError, match="NAME: is not set"):
        loaded.resolve_token(source, {})


# Secrets that stand where none can be kept are refused. The domain's tests list the arguments and
# addresses that look secret.


def problem_of(text: str) -> ConfigurationProblem:
    with pytest.raises(ConfigurationError) as refused:
        load_text(text, "x.json5")
    (problem,) = refused.value.problems
    assert "s3cret" not in str(problem)
    return problem


@pytest.mark.parametrize(
    "arguments",
    ["'-H', 'Authorization: Bearer s3cret'", "'--key', 's3cret'", "'x', 'https://u:s3cret@host/'"],
)
def test_secret_in_command_is_refused_with_its_line(arguments: str) -> None:
    runtime = f"{{type: 'command',\n command: ['x',\n  {arguments}]}}"
    problem = problem_of(f"{{agents: {{list: [{{id: 'a', runtime: {runtime}}}]}}}}")
    assert (problem.line, problem.pointer) == (3, "/agents/list/0/runtime/command/2")
    assert 'put it into the env of the runtime as NAME: "${NAME}"' in problem.message


@pytest.mark.parametrize(
    "uri",
    [
        "https://s3cret:${PASSWORD}@host/hook",
        "https://host/hook?token=s3cret${TOKEN}",
    ],
)
def test_secret_in_script_uri_is_refused_with_its_line(uri: str) -> None:
    scripts = f"{{run: [{{id: 'x',\n uri: '{uri}'}}]}}"
    problem = problem_of(f"{{agents: {{defaults: {{subagents: {{contextScripts: {scripts}}}}}}}}}")
    assert problem.line == 2
    assert problem.pointer == "/agents/defaults/subagents/contextScripts/run/0/uri"
    assert "write ${NAME} instead" in problem.message


def test_script_uri_may_hold_references() -> None:
    uri = "https://${USER}:${PASSWORD}@host/hook?sig=${SIG}"
    scripts = {"run": [{"id": "x", "uri": uri}]}
    loaded = load_values({"agents": {"defaults": {"subagents": {"contextScripts": scripts}}}})
    assert loaded.secret_pointers == ()
    assert uri in loaded.stored_text


@pytest.mark.parametrize("section", ["channels", "spawnlog"])
def test_key_that_holds_secret_is_refused_and_not_shown(section: str) -> None:
    problem = problem_of(f"{{{section}: {{\n 'https://s3cret@host/': {{token: 'x'}}}}}}")
    assert problem.pointer == f"/{section}"
    assert "a key below this one holds a secret" in problem.message


# The environment of a child.


def with_environment(environment: dict[str, str]) -> dict[str, Any]:
    runtime = {"type": "command", "command": ["true"], "env": environment}
    return {"agents": {"list": [{"id": "main", "runtime": runtime}]}}


async def test_secret_variables_of_runtime_are_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ITS_API_KEY", "of the server")
    monkeypatch.setenv("ITS_IDENTITY", PRIVATE_KEY)
    monkeypatch.setenv("ITS_PLACE", "Harbour")
    secrets = {
        "API_TOKEN": "named like a secret",
        "BY_REFERENCE": "${ITS_API_KEY}",
        "IDENTITY": PRIVATE_KEY,
        "IDENTITY_OF_SERVER": "${ITS_IDENTITY}",
        "STORE": "postgres://user:canary-password@host/db",
    }
    plain = {"GREETING": "good morning", "PLACE": "${ITS_PLACE}"}
    loaded, files = (
        load_values(with_environment({**secrets, **plain}), folder=tmp_path),
        LoadedFiles(),
    )
    files.assign(1, loaded)
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    made = await AgentCredentials(files, tmp_path / "agents").environment(pinned, "main")
    assert made["STORE"] == secrets["STORE"]
    assert {name for name, value in made.items() if isinstance(value, Credential)} == {*secrets}


@pytest.mark.parametrize("fate", ["gone", "another"])
async def test_error_of_lost_file_hides_its_path(fate: str, tmp_path: Path) -> None:
    path, second_path = tmp_path / "gone.json5", tmp_path / "another.json5"
    path.write_text(json.dumps(with_environment({"API_TOKEN": "literal"})), "utf-8")
    loaded, files = load(path), LoadedFiles()
    if fate == "gone":
        path.unlink()
        files.note_found(1, load_recorded(1, loaded.source, loaded.stored_text))
    else:
        second_path.write_text("{}", "utf-8")
        files.assign(2, load(second_path))
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    credentials = AgentCredentials(files, tmp_path / "agents")
    found = await credentials.found(pinned, pinned.configuration.effective_agent("main"))
    with pytest.raises(
        MissingSecretError, match="the value of API_TOKEN is not available"
    ) as failure:
        await credentials.environment(pinned, "main")
    for text in (found.missing[0].text, str(failure.value)):
        assert fate not in text.replace("another file", "")
        if fate == "gone":
            assert "its configuration file cannot be used; the server's log says why" in text
