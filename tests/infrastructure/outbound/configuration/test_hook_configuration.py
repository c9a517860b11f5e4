"""Hooks in a file: what of them is kept, shown, and warned of."""

from typing import Any

import pytest

from infrastructure.outbound.configuration.load import LoadedConfiguration
from tests.support.builders.configurations import load_values

CANARY = "canary-of-a-hook-0123456789"
AT = "spawnlog.hooks.subagentEnded"


def loaded(**hook: Any) -> LoadedConfiguration:
    values = {
        "agents": {"defaults": {"runtime": {"type": "scripted"}}},
        "spawnlog": {"hooks": {"subagentEnded": hook}},
    }
    return load_values(values)


def doubts(**hook: Any) -> list[str]:
    """What is doubtful about one hook; never a value."""
    told = [str(one) for one in loaded(**hook).warnings]
    assert not [one for one in told if CANARY in one]
    return [one.removeprefix(f"config: {AT}.") for one in told]


def test_headers_and_an_address_with_a_query_are_kept_apart() -> None:
    url, value = f"https://h/x?who={CANARY}", f"Bearer {CANARY}"
    one = loaded(url=url, headers={"X-Who": value, "X-Ref": "${REFERRED}"})
    place = "/spawnlog/hooks/subagentEnded"
    assert CANARY not in one.stored_text
    assert one.stored["spawnlog"]["hooks"]["subagentEnded"] == {
        "url": {"$secret": f"{place}/url"},
        "headers": {"X-Who": {"$secret": f"{place}/headers/X-Who"}, "X-Ref": "${REFERRED}"},
    }
    hook = one.configuration.spawnlog.hooks.subagent_ended
    assert hook is not None
    assert one.resolve(hook.url) == url
    assert one.resolve(hook.headers["X-Who"]) == value
    assert CANARY not in repr(one)


@pytest.mark.parametrize("url", ["https://h/x", "https://h/${PART}", "${URL}"])
def test_an_address_without_a_query_is_kept_as_it_stands(url: str) -> None:
    assert loaded(url=url).stored["spawnlog"]["hooks"]["subagentEnded"]["url"] == url


@pytest.mark.parametrize(
    "url",
    [
        "https://h/",
        "http://localhost/",
        "http://127.0.0.2:1/?a=b",
        "http://[::1]/",
        "http://a.localhost/",
    ],
)
def test_an_address_that_nobody_listens_to_is_not_doubtful(url: str) -> None:
    assert doubts(url=url, headers={"A": "b"}) == []


@pytest.mark.parametrize("url", ["http://example.com/", f"http://10.0.0.1/?k={CANARY}"])
def test_plain_http_to_another_machine_is_doubtful(url: str) -> None:
    (doubt,) = doubts(url=url)
    assert doubt.startswith("url: is plain http to another machine")


def test_what_a_hook_refers_to_is_doubtful_when_it_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HOOK_ABSENT", raising=False)
    url, header = doubts(url="${HOOK_ABSENT}", headers={"X-A": "${HOOK_ABSENT}"})
    why = "cannot be resolved, and this hook fails for it: HOOK_ABSENT: is not set"
    assert url.startswith(f"url: {why}")
    assert header.startswith(f"headers.X-A: {why}")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (f"ftp://{CANARY}/", "must be a URL that begins with http"),
        (f"http://u:{CANARY}@h/", "must not hold a user name"),
        ("http://example.com/", "is plain http to another machine"),
    ],
)
def test_an_address_that_is_referred_to_is_looked_at(
    value: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_ADDRESS", value)
    (doubt,) = doubts(url="${HOOK_ADDRESS}")
    assert doubt.startswith(f"url: {why}")
