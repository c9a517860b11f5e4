import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.configuration.problems import parts_of
from infrastructure.outbound.configuration.secrets import redact


def kept(values: dict[str, Any]) -> Any:
    return redact(values)[0]


def reference(pointer: str) -> dict[str, str]:
    return {"$secret": pointer}


@pytest.mark.parametrize(
    "name",
    [
        "apiKey",
        "api_key",
        "X-Api-Key",
        "APIKEY",
        "accessToken",
        "botToken",
        "token",
        "token2",
        "clientSecret",
        "password",
        "Passwd",
        "Authorization",
        "credential",
        "credentials",
        "cookie",
        "Set-Cookie",
        "databaseUrl",
        "dsn",
        "webhookUrl",
        "apiKeys",
        "privateKey",
    ],
)
def test_a_text_under_a_secret_name_is_taken_out(name: str) -> None:
    assert kept({"x": {name: "s3cret"}}) == {"x": {name: reference(f"/x/{name}")}}


@pytest.mark.parametrize(
    "name",
    [
        "mainKey",
        "returnKey",
        "errorKey",
        "agentIdOverrideKey",
        "sessionKey",
        "keyword",
        "tokenizer",
        "maxTokensField",
        "passage",
        "compass",
        "secretary",
        "accessKeyId",
        "uri",
        "model",
    ],
)
def test_a_text_under_another_name_stays(name: str) -> None:
    assert kept({"x": {name: "plain"}}) == {"x": {name: "plain"}}


def test_everything_below_env_and_headers_is_taken_out_and_other_types_stay() -> None:
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


def test_references_stay_because_they_are_no_secrets() -> None:
    values = {
        "apiKey": "${OPENAI_API_KEY}",
        "token": {"file": "token.txt"},
        "password": {"source": "env", "provider": "default", "id": "PASSWORD"},
        "secret": {"$secret": "/elsewhere"},
        "env": {"A": "${A}", "EMPTY": ""},
    }

    assert redact(values) == (values, ())


def test_a_text_that_holds_more_than_a_reference_is_taken_out() -> None:
    assert kept({"token": "Bearer ${TOKEN}"}) == {"token": reference("/token")}


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:s3cret@host/db",
        "see https://u:s3cret@host/ for more",
        "https://host/hook?x=1&access_token=s3cret",
        "https://s3cret@host/hook",
        "https://host/hook?SIG=s3cret",
        "x=redis://:s3cret@host",
        "-----BEGIN RSA PRIVATE KEY-----\ns3cret",
    ],
)
def test_a_text_that_shows_itself_as_a_secret_is_taken_out_anywhere(text: str) -> None:
    assert kept({"x": ["y", text]}) == {"x": ["y", reference("/x/1")]}


@pytest.mark.parametrize(
    "text",
    [
        "https://host/a?b=c",
        "https://${U}:${PASSWORD}@host/?token=${TOKEN}",
        "me@example.com",
        "12:30@home",
    ],
)
def test_an_address_without_a_secret_stays(text: str) -> None:
    assert kept({"x": text}) == {"x": text}


def test_a_number_under_a_secret_name_is_taken_out_and_one_that_counts_stays() -> None:
    values = {"x": {"password": 123456, "token": 1.5, "maxTokens": 5, "apiKey": True}}

    assert redact(values) == (
        {
            "x": {
                "password": reference("/x/password"),
                "token": reference("/x/token"),
                "maxTokens": 5,
                "apiKey": True,
            }
        },
        ("/x/password", "/x/token"),
    )


def test_an_argument_in_a_list_is_taken_out() -> None:
    values = {"args": ["--fast", "--api-key", "s3cret", "--token=s3cret"]}
    assert kept(values) == {
        "args": ["--fast", "--api-key", reference("/args/2"), reference("/args/3")]
    }


def test_names_of_providers_and_of_arguments_announce_nothing() -> None:
    values = {
        "models": {"providers": {"my-token": {"models": [{"id": "m", "name": "n"}]}}},
        "agents": {"defaults": {"models": {"p/key": {"alias": "opus"}}}},
        "argMap": {"token": "task", "apiKey": "cfg"},
        "spawnlog": {"tokens": [{"id": "ops", "token": "${OPS}", "scopes": ["read"]}]},
    }

    assert kept(values) == values
    assert kept({"argMap": {"token": "s3cret"}}) == {
        "argMap": {"token": reference("/argMap/token")}
    }


def test_the_values_themselves_are_left_alone() -> None:
    values = {"a": {"token": "s3cret"}}
    redact(values)

    assert values == {"a": {"token": "s3cret"}}


secret_texts = st.text("abc", min_size=1, max_size=5).map(lambda text: "s3cret-" + text)
plain_texts = st.text("abc", max_size=5)
plain_names = st.sampled_from(["a", "b/c", "d~e", "list", "models", "0"])
secret_names = st.sampled_from(["apiKey", "TOKEN", "x-secret", "env", "headers", "my.password"])


def secret_below(depth: int) -> st.SearchStrategy[Any]:
    """Anything whose texts are all secret, for the place under a secret name."""
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
        for value in values.values():
            yield from references_in(value)
    elif isinstance(values, list):
        for value in values:
            yield from references_in(value)


def at(values: Any, pointer: str) -> Any:
    for part in parts_of(pointer):
        values = values[int(part)] if isinstance(values, list) else values[part]
    return values


@given(documents)
def test_no_secret_is_left_and_each_is_found_again_by_its_reference(document: Any) -> None:
    stored, pointers = redact({"x": document})

    assert "s3cret" not in json.dumps(stored)
    assert tuple(references_in(stored)) == pointers
    taken = [at({"x": document}, pointer) for pointer in pointers]
    assert all(isinstance(one, int) or one.startswith("s3cret") for one in taken)
    assert redact(stored) == (stored, ())
