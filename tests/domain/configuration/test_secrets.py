"""Which values of a configuration are secret, and how they are shown."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from domain.configuration.configuration import Configuration
from domain.configuration.secrets import (
    has_secret_url,
    is_secret_name,
    secret_arguments,
    without_url_secrets,
)


def plain_fields(section: type[BaseModel]) -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield field.alias or name


def test_plain_fields_are_no_secrets() -> None:
    sections: set[type[BaseModel]] = set()

    def collect(annotation: Any) -> None:
        for inner in getattr(annotation, "__args__", ()):
            collect(inner)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if annotation in sections:
                return
            sections.add(annotation)
            for field in annotation.model_fields.values():
                collect(field.annotation)

    collect(Configuration)
    taken = {name for section in sections for name in plain_fields(section) if is_secret_name(name)}
    # The others are numbers, and the list of tokens, which is judged field by field.
    really = {"apiKey", "databaseUrl", "token", "secret", "secrets", "$secret"}
    assert taken == {
        "inputTokens",
        "outputTokens",
        "cacheReadTokens",
        "cacheWriteTokens",
        "tokens",
        *really,
    }


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
def test_secret_argument_is_found(command: list[str], secret: int) -> None:
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
def test_argument_that_resembles_a_secret_stays(command: list[object]) -> None:
    assert secret_arguments(command) == frozenset()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ghp_TOKEN@host/hook", "https://[secret]@host/hook"),
        ("see https://u:pw@host/ for more", "see https://[secret]@host/ for more"),
        ("https://u:${PASSWORD}@host/", "https://[secret]@host/"),
        ("https://x${TOKEN}@host/", "https://[secret]@host/"),
        ("redis://:pw@host", "redis://[secret]@host"),
        ("https://u:p@ss@host/x", "https://[secret]@host/x"),
        ("https://u:p/a@host/x", "https://[secret]@host/x"),
        ("https://u:p#a?b@host/x", "https://[secret]@host/x"),
        ("a=https://h/,b=https://tok@h2/", "a=https://h/,b=https://[secret]@h2/"),
        ("https://h?sig=S", "https://h?sig=[secret]"),
        ("https://h/?a=1&Signature=S&b=2", "https://h/?a=1&Signature=[secret]&b=2"),
        ("https://h/?sig2=S;auth=T#code=U", "https://h/?sig2=[secret];auth=[secret]#code=[secret]"),
        ("https://h/?s%69g=S", "https://h/?s%69g=[secret]"),
        ("https://h/?sig=S${SIG}", "https://h/?sig=[secret]"),
        ("/hook?token=S", "/hook?token=[secret]"),
        ("https://h/?to=https%3A%2F%2Fu%3Ap%40x", "[secret]"),
        ("https://h/?to=https%253A%252F%252Fu%253Ap%2540x", "[secret]"),
    ],
)
def test_secret_of_a_url_is_not_shown(text: str, shown: str) -> None:
    assert has_secret_url(text)
    assert without_url_secrets(text) == shown
    assert without_url_secrets(shown) == shown


CREDENTIALS = (
    "sig signature sig2 key token access_token code auth secret api_key password X-Amz-Signature "
    "X-Amz-Security-Token X-Amz-Credential X-Goog-Signature oauth_signature jwt hmac KEY"
)


@pytest.mark.parametrize("name", CREDENTIALS.split())
def test_parameter_with_the_name_of_a_credential_is_secret(name: str) -> None:
    assert has_secret_url(f"https://host/hook?x=1&{name}=S")
    assert not has_secret_url(f"https://host/hook?x=1&{name}=${{S}}")
    assert not has_secret_url(f"https://host/hook?x=1&{name}=")


@pytest.mark.parametrize(
    "text",
    [
        "https://host:8080/a/@me?b=c&country_code=de&sessionKey=agent:main:main#top",
        "https://${USER}:${PASSWORD}@host/?token=${TOKEN}",
        "https://host:${PORT}/@me",
        "http://[::1]:80/x@y",
        "ssh://git@host/x",
        "postgres://h1:5432,h2:5433/x@y",
        "me@example.com",
        "12:30@home",
        "what?sig=1 is",
        "/plain/path%20x",
    ],
)
def test_url_without_secrets_is_shown_whole(text: str) -> None:
    assert not has_secret_url(text)
    assert without_url_secrets(text) == text


PARTS = ["a://", "a://b:c", "%25", "?sig=", "a://b@", "a:", "&a=", "a", "a.", "-a"]


@pytest.mark.parametrize("beginning", ["", "https://"])
@pytest.mark.parametrize("part", PARTS)
def test_very_long_text_is_looked_through_once(beginning: str, part: str) -> None:
    began = time.process_time()
    has_secret_url(beginning + part * (400_000 // len(part)))
    assert time.process_time() - began < 5


@pytest.mark.parametrize("before", ["", "x=", "1", "+.-1", "é", "1:", "://", "9a9"])
def test_scheme_begins_with_the_first_letter_wherever_that_stands(before: str) -> None:
    assert has_secret_url(f"{before}https://u:pw@host/")
    assert has_secret_url(f"{before}a://u:pw@host/")
