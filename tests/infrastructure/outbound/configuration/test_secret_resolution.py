from pathlib import Path

import pytest

from domain.configuration.problems import ConfigurationError
from domain.configuration.runtimes import CommandRuntime
from domain.configuration.secrets import SecretReference
from domain.configuration.settings import TokenSource
from infrastructure.outbound.configuration.load import LoadedConfiguration, load
from tests.support.builders.configurations import load_values


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedConfiguration:
    path = tmp_path / "spawnlog.json5"
    path.write_text(
        """{
          spawnlog: {
            databaseUrl: "postgres://u:s3cret@h/d",
            tokens: [{ id: "a", token: { file: "token.txt" }, scopes: ["read"], sessions: ["*"] }],
          },
          agents: { list: [{ id: "a", runtime: { type: "command", command: ["x"],
            env: { LITERAL: "s3cret", REFERENCE: "${MY_KEY}", BOTH: "s3cret ${MY_KEY}" } } }] },
          channels: { botToken: "s3cret" },
        }"""
    )
    return load(path)


def test_only_the_address_of_the_database_is_in_a_loaded_configuration(
    loaded: LoadedConfiguration,
) -> None:
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


def test_the_environment_of_a_runtime_is_resolved_when_it_is_used(
    loaded: LoadedConfiguration,
) -> None:
    runtime = loaded.configuration.effective_agent("a").runtime
    assert isinstance(runtime, CommandRuntime)
    variables = {"MY_KEY": "from the environment ${LITERAL}"}

    assert {name: loaded.resolve(value, variables) for name, value in runtime.env.items()} == {
        "LITERAL": "s3cret",
        "REFERENCE": "from the environment ${LITERAL}",
        "BOTH": "s3cret from the environment ${LITERAL}",
    }


def test_the_environment_of_the_server_is_used_by_default(
    loaded: LoadedConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "now")
    assert loaded.resolve("${MY_KEY}") == "now"


def test_a_variable_that_is_not_set_is_named(loaded: LoadedConfiguration) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded.resolve("${ONE} ${TWO} ${ONE}", {})

    assert [problem.source for problem in caught.value.problems] == ["ONE", "TWO"]


@pytest.mark.parametrize(
    "pointer", ["/nothing", "/agents/list/7", "/agents/list/-1", "/agents", "/spawnlog/tokens/0"]
)
def test_a_secret_that_another_file_had_is_missed_clearly(
    loaded: LoadedConfiguration, pointer: str
) -> None:
    with pytest.raises(ConfigurationError, match="another file than the one that was activated"):
        loaded.resolve(SecretReference.model_validate({"$secret": pointer}))


def test_a_token_is_read_from_its_file_beside_the_configuration(
    loaded: LoadedConfiguration, tmp_path: Path
) -> None:
    source = loaded.configuration.spawnlog.tokens[0].token
    with pytest.raises(ConfigurationError, match="is not a file"):
        loaded.resolve_token(source)

    (tmp_path / "token.txt").write_text("  the-token\n")
    assert loaded.resolve_token(source) == "the-token"


def test_the_path_of_a_token_may_hold_a_variable(
    loaded: LoadedConfiguration, tmp_path: Path
) -> None:
    source = TokenSource(file="${PLACE}/token.txt")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "token.txt").write_text("the-token")

    assert loaded.resolve_token(source, {"PLACE": "inner"}) == "the-token"
    with pytest.raises(ConfigurationError, match="PLACE: is not set"):
        loaded.resolve_token(source, {})


def test_a_token_is_read_from_its_variable(loaded: LoadedConfiguration) -> None:
    source = TokenSource(variable="MY_KEY")

    assert loaded.resolve_token(source, {"MY_KEY": "t"}) == "t"
    with pytest.raises(ConfigurationError, match="MY_KEY: is not set"):
        loaded.resolve_token(source, {})


@pytest.mark.parametrize("content", [b"", b" \n", b"one\ntwo", b"\xff", b"x" * 70_000])
def test_a_token_file_holds_one_token(
    loaded: LoadedConfiguration, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "token.txt").write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"token\.txt: "):
        loaded.resolve_token(loaded.configuration.spawnlog.tokens[0].token)


def test_a_secret_where_none_can_be_kept_is_refused() -> None:
    runtime = {"type": "command", "command": ["fetch", "https://u:s3cret@host/"]}
    with pytest.raises(ConfigurationError) as caught:
        load_values({"agents": {"defaults": {"runtime": runtime}}})

    (problem,) = caught.value.problems
    assert problem.pointer == "/agents/defaults/runtime/command/1"
    assert "put it into the env of the runtime" in problem.message
    assert "s3cret" not in str(problem)
