import pytest

from domain.configuration.secrets import secret_arguments


@pytest.mark.parametrize(
    ("command", "secret"),
    [
        (["curl", "-H", "Authorization: Bearer abcdef"], 2),
        (["curl", "-Hauthorization: abcdef"], 1),
        (["curl", "--header=X-Api-Key: abcdef"], 1),
        (["curl", "-H", "token: abcdef"], 2),
        (["tool", "--token=abcdef"], 1),
        (["tool", "-token=abcdef"], 1),
        (["tool", "--api-key", "abcdef", "more"], 2),
        (["tool", "--API_KEY", "${A}b"], 2),
        (["tool", "--key=abcdef"], 1),
        (["tool", "--password", "123456"], 2),
        (["env", "API_KEY=abcdef", "tool"], 1),
        (["docker", "run", "--env=MY_TOKEN=abcdef"], 2),
        (["java", "-Ddb.password=abcdef"], 1),
        (["sh", "-c", "exec tool --token abcdef"], 2),
        (["sh", "-c", "curl -H 'Authorization: Bearer abcdef' x"], 2),
        (["sh", "-c", "GITHUB_TOKEN='abcdef' exec gh"], 2),
    ],
)
def test_an_argument_that_shows_itself_as_a_secret_is_found(
    command: list[str], secret: int
) -> None:
    assert secret_arguments(command) == {secret}


@pytest.mark.parametrize(
    "command",
    [
        ["llm", "--max-tokens", "500", "--max-output-tokens=4096"],
        ["sort", "--key=2,3", "--key", "1"],
        ["table", "--sort-key=name", "--primary-key", "id"],
        ["tls", "--private-key", "/etc/key.pem", "--cookie=./jar", "--ssh-key", "~/.ssh/id"],
        ["tool", "--token-file", "token.txt", "--api-key-env=NAME"],
        ["tool", "--token=${TOKEN}", "--api-key", "${KEY}", "--secret", "--fast"],
        ["tool", "--no-cookie", "x", "--require-token=true", "--password=none"],
        ["tool", "--key", "{prompt}", "--token"],
        ["sh", "-c", 'exec tool --token "$TOKEN" --api-key=$(cat key) --secret `cat s`'],
        ["sh", "-c", "curl -H \"Authorization: Bearer $TOKEN\" -H 'X-Api-Key: ${KEY}' x"],
        ["python", "-c", "print(sorted(x, key=len), {'key': 1}, lambda key: key)"],
        ["grep", "password: ", "Content-Type: text/plain"],
        [5, None, "plain", ["--token", "x"]],
    ],
)
def test_an_argument_that_only_resembles_one_stays(command: list[object]) -> None:
    assert secret_arguments(command) == frozenset()
