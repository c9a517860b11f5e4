"""A model is asked as it is planned, and what it says, uses and fails at is told as it is."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from application.ports.runtimes import CannotLaunch, Launch, RuntimeEnd, TranscriptEntry
from domain.delivery.transcript import UsageEntry
from infrastructure.outbound.runtimes.model import ModelRuntimes, ModelSession
from tests.support.builders.launches import all_of, model_launch, pairs
from tests.support.servers.model_endpoint import (
    CUT,
    DONE,
    HANG,
    KEY,
    ModelEndpoint,
    call,
    chunk,
    error,
    event,
    said,
    text,
    usage,
)
from tests.support.servers.script_server import redirect

pytestmark = pytest.mark.process

ENDPOINT = "infrastructure.outbound.runtimes.model_endpoint"
HELLO = said(text("hel"), text("lo"), usage(7, 2))


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelEndpoint]:
    async with ModelEndpoint() as endpoint:
        yield endpoint


async def begun(launch: Launch) -> ModelSession:
    session = await ModelRuntimes().open(launch)
    session.go()
    return session


async def run_of(launch: Launch) -> tuple[list[TranscriptEntry], RuntimeEnd]:
    async with asyncio.timeout(30):
        return await all_of(await begun(launch))


async def test_a_model_is_asked_as_it_is_planned_and_its_tokens_are_counted(
    endpoint: ModelEndpoint,
) -> None:
    endpoint.answers("big/one", said(text("hello"), usage(100, 20, cached=60)))
    launch = replace(model_launch(endpoint.url, KEY, apiKey="${KEY}"), model="p/big/one")
    entries, end = await run_of(launch)
    assert pairs(entries) == [
        ("message", {"role": "assistant", "text": "hello"}),
        (
            "usage",
            {
                "inputTokens": 40,
                "outputTokens": 20,
                "model": "p/big/one",
                "cacheReadTokens": 60,
                "cacheWriteTokens": 0,
            },
        ),
    ]
    assert (end.outcome, end.reason, end.result) == ("success", "exit", "hello")
    assert end.usages == (UsageEntry(40, 20, "p/big/one", 60, 0),)
    (asked,), (body,) = endpoint.server.asked, endpoint.bodies
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert body["messages"] == [
        {"role": "system", "content": "You are a sub-agent."},
        {"role": "user", "content": "Review it."},
    ]
    assert (body["model"], body["stream"]) == ("big/one", True)


@pytest.mark.parametrize(
    ("level", "effort"),
    [
        (None, None),
        ("off", None),
        ("adaptive", None),
        ("minimal", "minimal"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "high"),
        ("max", "high"),
    ],
)
async def test_a_level_of_thinking_is_the_effort_that_is_asked_for(
    endpoint: ModelEndpoint, level: str | None, effort: str | None
) -> None:
    endpoint.answers("m", HELLO)
    await run_of(replace(model_launch(endpoint.url, model="m"), thinking=level))
    assert endpoint.bodies[0].get("reasoning_effort") == effort


async def test_what_a_model_thinks_is_progress(endpoint: ModelEndpoint) -> None:
    thought = chunk({"role": "assistant", "reasoning_content": "Let me see."})
    endpoint.answers("m", said(thought, text("It is 4."), usage(1, 1)))
    entries, end = await run_of(model_launch(endpoint.url, model="m"))
    assert pairs(entries)[0] == ("progress", {"text": "Let me see."})
    assert end.result == "It is 4."


async def test_without_a_key_none_is_sent_nor_what_the_environment_of_the_server_names(
    endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-the-server")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: of-the-server")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    endpoint.answers("m", HELLO)
    _, end = await run_of(model_launch(endpoint.url, model="m"))
    assert end.outcome == "success"
    (asked,) = endpoint.server.asked
    assert "authorization" not in asked.headers
    assert "of-the-server" not in str(asked)
    assert not [name for name in asked.headers if name.startswith("x-")]


async def test_answers_that_were_not_counted_are_told_beside_those_that_were(
    endpoint: ModelEndpoint,
) -> None:
    endpoint.answers("m", said(call("nothing"), usage(5, 5), calls=True), said(text("done")))
    entries, end = await run_of(model_launch(endpoint.url, model="m"))
    assert end.usages == (UsageEntry(5, 5, "m"),)
    assert str(entries[-1].body["text"]).startswith("1 of 2 answers came without a count")


async def test_of_a_run_that_fails_too_it_is_told_how_many_answers_were_not_counted(
    endpoint: ModelEndpoint,
) -> None:
    counted = said(call("nothing"), usage(5, 5), calls=True)
    endpoint.answers("m", counted, said(call("nothing"), calls=True))
    entries, end = await run_of(model_launch(endpoint.url, model="m", requestsMax=2))
    assert (end.outcome, end.reason) == ("error", "usage_limit")
    assert str(entries[-1].body["text"]).startswith("1 of 2 answers came without a count")


async def test_an_answer_without_a_count_leaves_the_usage_unknown(endpoint: ModelEndpoint) -> None:
    endpoint.answers("m", said(text("hello")))
    entries, end = await run_of(model_launch(endpoint.url, model="m"))
    assert (len(entries), end.usages) == (1, ())


# Failures, attempts and fallbacks.


async def test_a_model_that_fails_is_asked_so_often_and_then_the_next_one_answers(
    endpoint: ModelEndpoint,
) -> None:
    endpoint.answers("first", error("429 Too Many Requests", "slow down", "Retry-After: 0"))
    endpoint.answers("second", HELLO)
    launch = model_launch(endpoint.url, model="m", attemptsMax=2)
    launch = replace(launch, model="p/first", fallback_models=("p/second", "p/third"))
    _, end = await run_of(launch)
    assert (end.outcome, end.result) == ("success", "hello")
    assert end.usages == (UsageEntry(7, 2, "p/second"),)
    assert [body["model"] for body in endpoint.bodies] == ["first", "first", "second"]


async def test_attempts_end_with_their_seconds_however_long_is_to_be_waited(
    endpoint: ModelEndpoint,
) -> None:
    endpoint.answers("first", error("503 Busy", "come back", "Retry-After: 30"))
    endpoint.answers("second", HELLO)
    launch = model_launch(endpoint.url, attemptsMax=10, answerWithinSeconds=1)
    async with asyncio.timeout(10):
        _, end = await run_of(replace(launch, model="first", fallback_models=("second",)))
    assert end.usages == (UsageEntry(7, 2, "second"),)


async def test_when_every_model_fails_each_failure_is_told(endpoint: ModelEndpoint) -> None:
    endpoint.answers("first", error("500 Broken", "the first is broken"))
    endpoint.answers("second", error("401 Unauthorized", "wrong key"))
    launch = model_launch(endpoint.url, attemptsMax=1)
    entries, end = await run_of(replace(launch, model="first", fallback_models=("second",)))
    assert (entries, end.outcome, end.reason) == ([], "error", "exit")
    assert end.error is not None
    assert "the first is broken" in end.error
    assert "wrong key" in end.error


async def test_nobody_there_is_a_failure_that_says_so() -> None:
    _, end = await run_of(model_launch("http://127.0.0.1:9/v1", model="m", attemptsMax=1))
    assert (end.outcome, end.error) == ("error", "the endpoint failed: Connection error.")


@pytest.mark.parametrize(
    "broken",
    [
        (text("half a sen"), CUT),
        (text("half a sen"), event("{this is no JSON"), text("tence")),
        (text("half a sen"), event({"error": {"message": "overloaded"}})),
    ],
    ids=["cut", "malformed", "error"],
)
async def test_of_an_answer_that_is_broken_off_what_was_said_is_kept(
    endpoint: ModelEndpoint, broken: tuple[Any, ...]
) -> None:
    endpoint.answers("m", broken)
    entries, end = await run_of(model_launch(endpoint.url, model="m", attemptsMax=1))
    assert pairs(entries) == [("message", {"role": "assistant", "text": "half a sen"})]
    assert (end.outcome, end.result) == ("error", "half a sen")
    assert end.error


async def test_an_endpoint_that_falls_silent_is_given_up(endpoint: ModelEndpoint) -> None:
    endpoint.answers("m", (text("half"), HANG))
    _, end = await run_of(model_launch(endpoint.url, model="m", timeoutSeconds=1, attemptsMax=1))
    assert (end.outcome, end.result) == ("error", "half")


async def test_no_redirect_is_followed_with_the_key(endpoint: ModelEndpoint) -> None:
    elsewhere = endpoint.server.at("/elsewhere", b"")
    endpoint.answers("m", redirect(elsewhere, "307 Temporary Redirect"))
    launch = model_launch(endpoint.url, KEY, model="m", apiKey="${KEY}", attemptsMax=1)
    _, end = await run_of(launch)
    assert end.outcome == "error"
    assert {one.target for one in endpoint.server.asked} == {"/v1/chat/completions"}


async def test_the_key_is_in_nothing_that_is_said_not_even_in_an_error(
    endpoint: ModelEndpoint,
) -> None:
    told = said(text(f"I was given {KEY}"), call("nothing", key=KEY), calls=True)
    endpoint.answers("m", told, error("400 Bad Request", f"{KEY} is wrong"))
    launch = model_launch(endpoint.url, KEY, model="m", apiKey="${KEY}", attemptsMax=1)
    entries, end = await run_of(launch)
    assert (len(entries), end.outcome) == (2, "error")
    assert KEY not in f"{entries}{end}{launch}"


# Limits.


async def test_a_run_asks_no_more_often_than_it_may(endpoint: ModelEndpoint) -> None:
    endpoint.answers("m", said(call("nothing"), usage(1, 1), calls=True))
    _, end = await run_of(model_launch(endpoint.url, model="m", requestsMax=2))
    assert (end.outcome, end.reason, len(endpoint.bodies)) == ("error", "usage_limit", 2)
    assert end.error is not None
    assert "request_limit" in end.error


async def test_a_run_uses_no_more_tokens_than_it_may(endpoint: ModelEndpoint) -> None:
    endpoint.answers("m", said(text("much"), call("nothing"), usage(900, 101), calls=True))
    _, end = await run_of(model_launch(endpoint.url, model="m", tokensMax=1000))
    assert (end.reason, len(endpoint.bodies)) == ("usage_limit", 1)
    assert end.error is not None
    assert "1001 tokens and may use 1000 (tokensMax)" in end.error
    assert end.usages == (UsageEntry(900, 101, "m"),)


async def test_a_message_is_no_longer_than_an_entry_may_be(endpoint: ModelEndpoint) -> None:
    endpoint.answers("m", said(*[text("x" * 100_000)] * 11))
    entries, end = await run_of(model_launch(endpoint.url, model="m"))
    assert (end.outcome, end.reason) == ("error", "output_limit")
    (entry,) = entries
    assert entry.kind == "message"
    assert len(str(entry.body["text"])) > 1_000_000, "what was said until then"


@pytest.mark.parametrize("reason", ["content_filter", "error"])
async def test_an_answer_that_did_not_end_by_itself_is_no_success(
    endpoint: ModelEndpoint, reason: str
) -> None:
    endpoint.answers("m", (text("the whole trut"), chunk({}, reason), DONE))
    _, end = await run_of(model_launch(endpoint.url, model="m"))
    assert (end.outcome, end.result) == ("error", "the whole trut")


async def test_of_counts_in_each_piece_the_last_one_counts(endpoint: ModelEndpoint) -> None:
    pieces = (text("a"), usage(100, 1), text("b"), usage(100, 2), chunk({}, "stop"), usage(100, 3))
    endpoint.answers("m", (*pieces, DONE))
    _, end = await run_of(model_launch(endpoint.url, model="m"))
    assert end.usages == (UsageEntry(100, 3, "m"),)
    assert endpoint.bodies[0]["stream_options"] == {"include_usage": True}


async def test_an_answer_that_the_endpoint_cut_off_is_no_success(endpoint: ModelEndpoint) -> None:
    endpoint.answers("m", (text("the whole trut"), chunk({}, "length")))
    _, end = await run_of(model_launch(endpoint.url, model="m"))
    assert (end.outcome, end.reason, end.result) == ("error", "output_limit", "the whole trut")


async def test_an_answer_without_an_end_is_not_kept_in_memory(
    endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{ENDPOINT}.ANSWER_BYTES_MAX", 300_000)
    endpoint.answers("m", (*[b": " + b"x" * 100_000] * 4, HANG))
    _, end = await run_of(model_launch(endpoint.url, model="m", attemptsMax=1))
    assert (end.outcome, end.reason) == ("error", "output_limit")


async def test_an_answer_that_is_packed_is_not_unpacked(endpoint: ModelEndpoint) -> None:
    packed = error("200 OK", "small", "Content-Encoding: gzip")
    endpoint.answers("m", packed)
    _, end = await run_of(model_launch(endpoint.url, model="m", attemptsMax=1))
    assert end.outcome == "error"
    assert endpoint.server.asked[0].headers["accept-encoding"] == "identity"


# Being ended.


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """When a piece of an answer has come."""
    from infrastructure.outbound.runtimes.model_conversation import _Conversation

    piece, hear = asyncio.Event(), _Conversation._hear

    def note(conversation: _Conversation, words: str) -> None:
        hear(conversation, words)
        piece.set()

    monkeypatch.setattr(_Conversation, "_hear", note)
    return piece


async def test_a_kill_ends_the_request_at_once_and_keeps_what_was_said(
    endpoint: ModelEndpoint, heard: asyncio.Event
) -> None:
    endpoint.answers("m", (text("half a sen"), HANG))
    session = await begun(model_launch(endpoint.url, model="m"))
    await heard.wait()
    assert endpoint.server.open == 1
    async with asyncio.timeout(1):
        await session.kill()
        while endpoint.server.open:
            await asyncio.sleep(0)
    entries, end = await all_of(session)
    assert pairs(entries) == [("message", {"role": "assistant", "text": "half a sen"})]
    assert (end.outcome, end.reason, end.result) == ("stopped", "stopped", "half a sen")


# What has to be there.


async def test_an_agent_for_which_no_model_is_named_is_not_started() -> None:
    with pytest.raises(CannotLaunch, match="no model is named for agent steward"):
        await ModelRuntimes().open(model_launch("http://127.0.0.1:9/v1"))


async def test_a_reference_that_gives_no_address_is_told_without_it() -> None:
    launch = model_launch("http://127.0.0.1:9/v1", model="m")
    wrong = replace(launch, environment={"baseUrl": "ftp://somewhere-secret"})
    with pytest.raises(CannotLaunch, match="baseUrl of the runtime of agent steward must be a URL"):
        await ModelRuntimes().open(wrong)


async def test_where_what_calls_models_is_not_installed_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(CannotLaunch, match=r'pip install "spawnlog\[model\]"'):
        await ModelRuntimes().open(model_launch("http://127.0.0.1:9/v1", model="m"))


def test_a_server_is_made_without_what_calls_models() -> None:
    text = (
        "import sys, infrastructure.server.compose\n"
        "print([name for name in ('openai', 'pydantic_ai', 'fastmcp') if name in sys.modules])"
    )
    made = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert made.stdout == "[]\n"
