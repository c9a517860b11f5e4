"""What a file says of a runtime of type `model`, and which mistakes are found before any run."""

from typing import Any

import pytest

from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.problems import ConfigurationError
from tests.support.builders.configurations import load_values

CANARY = "canary-5a1e2b"
HERE = "http://127.0.0.1:1/v1"


def values(**runtime: Any) -> dict[str, Any]:
    whole = {"type": "model", "baseUrl": HERE, **runtime}
    return {"agents": {"list": [{"id": "main", "runtime": whole}]}}


def doubts(**runtime: Any) -> list[str]:
    told = [str(one) for one in load_values(values(**runtime)).warnings]
    return [one.partition("runtime.")[2] for one in told if "runtime" in one]


@pytest.mark.parametrize(
    ("runtime", "why"),
    [
        ({"baseUrl": f"ftp://{CANARY}"}, "must be a URL that begins with http"),
        ({"baseUrl": f"http://u:{CANARY}@h/v1"}, "must not hold a user name"),
        ({"baseUrl": "http://h/v1?version=1"}, "must not have a query"),
        ({"model": "a model"}, "must be a model's name"),
        ({"requestsMax": 0}, "must be at least 1"),
        ({"timeoutSeconds": 3601}, "must be at most 3600"),
        ({"mcpServers": {"a_b": {"url": HERE}}}, "1 to 32 letters, digits and hyphens"),
        ({"mcpServers": {"A": {"url": HERE}, "a": {"url": HERE}}}, "stands here twice"),
        ({"mcpServers": {"a": {"command": ["x"]}}}, "unknown key"),
        ({"mcpServers": {"a": {"url": HERE, "type": "sse"}}}, "only streamable HTTP is served"),
        ({"mcpServers": {"a": {"url": HERE, "transport": "ws"}}}, "must be .*http"),
        ({"mcpServers": {"a": {"url": HERE, "timeout": 60}}}, "for 60 s write 60000"),
        (
            {"mcpServers": {"a": {"url": HERE, "timeout": 9000, "requestTimeoutMs": 9000}}},
            "says the same as timeout",
        ),
        ({"mcpServers": {"a": {"url": HERE, "headers": {"Host": "x"}}}}, "is set by spawnlog"),
        ({"temperature": 1}, "unknown key"),
    ],
)
def test_what_can_be_called_by_nobody_is_an_error_of_the_file(
    runtime: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why) as refused:
        load_values(values(**runtime))
    assert CANARY not in str(refused.value)


def test_mcp_server_is_read_as_clients_write_it() -> None:
    servers = {
        "desk": {"type": "http", "url": HERE, "timeout": 1500, "env": {"TOKEN": CANARY}},
        "wiki": {"transport": "streamable-http", "url": HERE, "requestTimeoutMs": 2000},
        "off": {"url": "${NOWHERE_SET}", "disabled": True},
        "out": {"url": "${NOWHERE_SET}", "enabled": False},
    }
    loaded = load_values(values(mcpServers=servers))
    runtime = loaded.configuration.effective_agent("main").runtime
    assert isinstance(runtime, ModelRuntime)
    used = {
        name: one.call_timeout_seconds for name, one in runtime.mcp_servers.items() if one.is_used
    }
    assert used == {"desk": 1.5, "wiki": 2.0}
    assert "mcpServers.off.url" not in runtime.values()
    assert doubts(mcpServers=servers) == [
        "mcpServers.desk.env: has no effect: spawnlog does not start a server that has a url"
    ]
    assert CANARY not in f"{loaded.stored_text}{loaded.configuration}"


def test_what_opens_an_endpoint_is_kept_by_reference_alone() -> None:
    servers = {"desk": {"url": HERE, "headers": {"X-Pass": CANARY}}}
    loaded = load_values(values(apiKey=CANARY, mcpServers=servers))
    assert CANARY not in f"{loaded.stored_text}{loaded.configuration}"
    runtime = loaded.configuration.effective_agent("main").runtime
    assert isinstance(runtime, ModelRuntime)
    resolved = {name: loaded.resolve(value) for name, value in runtime.values().items()}
    assert resolved == {
        "baseUrl": HERE,
        "apiKey": CANARY,
        "mcpServers.desk.url": HERE,
        "mcpServers.desk.headers.X-Pass": CANARY,
    }


def test_a_key_that_is_not_set_and_plain_http_to_another_machine_are_doubtful(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MODEL_KEY_ABSENT", raising=False)
    url, key = doubts(baseUrl="http://models.example/v1", apiKey="${MODEL_KEY_ABSENT}")
    assert url.startswith("baseUrl: is plain http to another machine")
    assert key.startswith("apiKey: cannot be resolved, and this runtime fails for it")
    assert doubts() == []


def test_a_revision_from_before_there_was_such_a_runtime_can_be_read() -> None:
    kept = ModelRuntime.model_validate({"type": "model", "anything": [1]})
    assert kept.values() == {}
