"""Models are called as planned; their messages, usage and failures are recorded."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from application.ports.runtimes import Launch, LaunchError, RuntimeEnd, TranscriptEntry
from domain.delivery.transcript import UsageEntry
from infrastructure.outbound.guarded_http.request import PREFIX_BYTES_MAX
from infrastructure.outbound.runtimes.model import ModelRuntimes
from tests.support.builders.launches import all_of, model_launch, pairs
from tests.support.servers.cut_answers import BODIES, answering
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
Ran = tuple[list[TranscriptEntry], RuntimeEnd]
Client = Callable[[float], AbstractAsyncContextManager[httpx2.AsyncClient]]
RUNTIMES = "infrastructure.outbound.runtimes"
NOBODY = "http://127.0.0.1:9/v1"
HELLO = said(text("hel"), text("lo"), usage(7, 2))
PLANNED: dict[str, Any] = {"model": "p/first", "fallback_models": ("p/second", "p/third")}


async def run_of(launch: Launch) -> Ran:
    async with asyncio.timeout(30):
        session = await ModelRuntimes().open(launch)
        session.go()
        return await all_of(session)


async def ask(endpoint: ModelEndpoint, *answers: Any, **settings: Any) -> Ran:
    """Run model `m`, which gives these answers, with these settings and one attempt."""
    endpoint.answers("m", *answers)
    return await run_of(model_launch(endpoint.url, **{"model": "m", "attemptsMax": 1, **settings}))


async def test_model_is_asked_as_planned_and_counted(endpoint: ModelEndpoint) -> None:
    endpoint.answers("big/one", said(text("hello"), usage(100, 20, cached=60)))
    launch = replace(model_launch(endpoint.url, KEY, apiKey="${KEY}"), model="p/big/one")
    entries, end = await run_of(launch)
    counted = {
        "inputTokens": 40,
        "outputTokens": 20,
        "model": "p/big/one",
        "cacheReadTokens": 60,
        "cacheWriteTokens": 0,
    }
    message = {"role": "assistant", "text": "hello"}
    assert pairs(entries) == [("message", message), ("usage", counted)]
    assert (end.outcome, end.reason, end.result) == ("success", "exit", "hello")
    assert end.usages == (UsageEntry(40, 20, "p/big/one", 60, 0),)
    (request,), (body,) = endpoint.server.asked, endpoint.bodies
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert body["messages"] == [
        {"role": "system", "content": "You are a sub-agent."},
        {"role": "user", "content": "Review it."},
    ]
    assert (body["model"], body["stream"]) == ("big/one", True)


@pytest.mark.parametrize(
    ("level", "effort"),
    [
        *[(level, None) for level in (None, "off", "adaptive")],
        *[(level, level) for level in ("minimal", "low", "medium", "high")],
        *[(level, "high") for level in ("xhigh", "max")],
    ],
)
async def test_thinking_level_sets_reasoning_effort(
    endpoint: ModelEndpoint, level: str | None, effort: str | None
) -> None:
    endpoint.answers("m", HELLO)
    await run_of(replace(model_launch(endpoint.url, model="m"), thinking=level))
    assert endpoint.bodies[0].get("reasoning_effort") == effort


async def test_reasoning_is_progress(endpoint: ModelEndpoint) -> None:
    thought = chunk({"role": "assistant", "reasoning_content": "Let me see."})
    entries, end = await ask(endpoint, said(thought, text("It is 4."), usage(1, 1)))
    assert pairs(entries)[0] == ("progress", {"text": "Let me see."})
    assert end.result == "It is 4."


async def test_nothing_of_server_environment_is_sent(
    endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-the-server")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: of-the-server")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    _, end = await ask(endpoint, HELLO)
    assert end.outcome == "success"
    (request,) = endpoint.server.asked
    assert "authorization" not in request.headers
    assert "of-the-server" not in str(request)
    assert not [name for name in request.headers if name.startswith("x-")]


# Counts of tokens.


@pytest.mark.parametrize(
    ("last", "settings", "reason"),
    [
        (said(text("done")), {}, "exit"),
        (said(call("nothing"), calls=True), {"requestsMax": 2}, "usage_limit"),
    ],
)
async def test_answers_without_count_are_reported(
    endpoint: ModelEndpoint, last: Any, settings: dict[str, Any], reason: str
) -> None:
    counted = said(call("nothing"), usage(5, 5), calls=True)
    entries, end = await ask(endpoint, counted, last, **settings)
    assert (end.reason, end.usages) == (reason, (UsageEntry(5, 5, "m"),))
    assert str(entries[-1].body["text"]).startswith("1 of 2 answers reported no token count")


async def test_single_answer_without_count_leaves_usage_unknown(endpoint: ModelEndpoint) -> None:
    entries, end = await ask(endpoint, said(text("hello")))
    assert (len(entries), end.usages) == (1, ())


async def test_last_count_of_an_answer_is_used(endpoint: ModelEndpoint) -> None:
    pieces = (text("a"), usage(100, 1), text("b"), usage(100, 2), chunk({}, "stop"), usage(100, 3))
    _, end = await ask(endpoint, (*pieces, DONE))
    assert end.usages == (UsageEntry(100, 3, "m"),)
    assert endpoint.bodies[0]["stream_options"] == {"include_usage": True}


# Failures, attempts and fallbacks.


async def test_failing_model_is_retried_then_replaced(endpoint: ModelEndpoint) -> None:
    endpoint.answers("first", error("429 Too Many Requests", "slow down", "Retry-After: 0"))
    endpoint.answers("second", HELLO)
    _, end = await run_of(replace(model_launch(endpoint.url, attemptsMax=2), **PLANNED))
    assert (end.outcome, end.result) == ("success", "hello")
    assert end.usages == (UsageEntry(7, 2, "p/second"),)
    assert [body["model"] for body in endpoint.bodies] == ["first", "first", "second"]


async def test_attempts_end_within_answer_limit(endpoint: ModelEndpoint) -> None:
    endpoint.answers("first", error("503 Busy", "come back", "Retry-After: 30"))
    endpoint.answers("second", HELLO)
    launch = model_launch(endpoint.url, attemptsMax=10, answerWithinSeconds=1)
    async with asyncio.timeout(10):
        _, end = await run_of(replace(launch, **PLANNED))
    assert end.usages == (UsageEntry(7, 2, "p/second"),)


async def test_failure_of_each_model_is_reported(endpoint: ModelEndpoint) -> None:
    endpoint.answers("first", error("500 Broken", "the first is broken"))
    endpoint.answers("second", error("401 Unauthorized", "wrong key"))
    entries, end = await run_of(replace(model_launch(endpoint.url, attemptsMax=1), **PLANNED))
    assert (entries, end.outcome, end.reason) == ([], "error", "exit")
    for why in ("the first is broken", "wrong key"):
        assert why in str(end.error)


async def test_unreachable_endpoint_is_a_failure() -> None:
    _, end = await run_of(model_launch(NOBODY, model="m", attemptsMax=1))
    assert (end.outcome, end.error) == ("error", "the endpoint failed: Connection error.")


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ((CUT,), "exit"),
        ((event("{this is no JSON"), text("tence")), "exit"),
        ((event({"error": {"message": "overloaded"}}),), "exit"),
        ((chunk({}, "content_filter"), DONE), "exit"),
        ((chunk({}, "error"), DONE), "exit"),
        ((chunk({}, "length"),), "output_limit"),
    ],
    ids=["cut", "malformed", "error", "content_filter", "error at its end", "length"],
)
async def test_broken_answer_fails_and_keeps_its_text(
    endpoint: ModelEndpoint, rest: tuple[Any, ...], reason: str
) -> None:
    entries, end = await ask(endpoint, (text("half a sen"), *rest))
    assert pairs(entries) == [("message", {"role": "assistant", "text": "half a sen"})]
    assert (end.outcome, end.reason, end.result) == ("error", reason, "half a sen")
    assert end.error


async def test_silent_endpoint_is_given_up(endpoint: ModelEndpoint) -> None:
    _, end = await ask(endpoint, (text("half"), HANG), timeoutSeconds=1)
    assert (end.outcome, end.result) == ("error", "half")


async def test_redirect_is_not_followed_with_key(endpoint: ModelEndpoint) -> None:
    elsewhere = endpoint.server.at("/elsewhere", b"")
    endpoint.answers("m", redirect(elsewhere, "307 Temporary Redirect"))
    launch = model_launch(endpoint.url, KEY, model="m", apiKey="${KEY}", attemptsMax=1)
    _, end = await run_of(launch)
    assert end.outcome == "error"
    assert {request.target for request in endpoint.server.asked} == {"/v1/chat/completions"}


async def test_key_is_masked_in_entries_and_errors(endpoint: ModelEndpoint) -> None:
    repeated = said(text(f"I was given {KEY}"), call("nothing", key=KEY), calls=True)
    endpoint.answers("m", repeated, error("400 Bad Request", f"{KEY} is wrong"))
    launch = model_launch(endpoint.url, KEY, model="m", apiKey="${KEY}", attemptsMax=1)
    entries, end = await run_of(launch)
    assert (len(entries), end.outcome) == (2, "error")
    assert KEY not in f"{entries}{end}{launch}"


# Limits.


async def test_requests_of_run_are_limited(endpoint: ModelEndpoint) -> None:
    _, end = await ask(endpoint, said(call("nothing"), usage(1, 1), calls=True), requestsMax=2)
    assert (end.outcome, end.reason, len(endpoint.bodies)) == ("error", "usage_limit", 2)
    assert "request_limit" in str(end.error)


async def test_tokens_of_run_are_limited(endpoint: ModelEndpoint) -> None:
    answer = said(text("much"), call("nothing"), usage(900, 101), calls=True)
    _, end = await ask(endpoint, answer, tokensMax=1000)
    assert (end.reason, len(endpoint.bodies)) == ("usage_limit", 1)
    assert "1001 tokens; its limit is 1000 (tokensMax)" in str(end.error)
    assert end.usages == (UsageEntry(900, 101, "m"),)


async def test_message_length_is_limited(endpoint: ModelEndpoint) -> None:
    entries, end = await ask(endpoint, said(*[text("x" * 100_000)] * 11))
    assert (end.outcome, end.reason) == ("error", "output_limit")
    (entry,) = entries
    assert entry.kind == "message"
    assert len(str(entry.body["text"])) > 1_000_000, "what was said until then"


async def test_message_is_kept_whole_or_ends_the_run(endpoint: ModelEndpoint) -> None:
    from infrastructure.outbound.runtimes.model_conversation import MESSAGE_BYTES_MAX

    for words in ("x" * MESSAGE_BYTES_MAX, "語" * (MESSAGE_BYTES_MAX // 3)):
        entries, end = await ask(endpoint, said(text(words)))
        assert (end.outcome, entries[0].body["text"] == words) == ("success", True)
        _, end = await ask(endpoint, said(text(f"{words}語")))
        assert (end.outcome, end.reason) == ("error", "output_limit")


async def test_answer_bytes_are_limited(
    endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{RUNTIMES}.model_endpoint.ANSWER_BYTES_MAX", 300_000)
    _, end = await ask(endpoint, (*[b": " + b"x" * 100_000] * 4, HANG))
    assert (end.outcome, end.reason) == ("error", "output_limit")


async def test_packed_answer_is_not_unpacked(endpoint: ModelEndpoint) -> None:
    _, end = await ask(endpoint, error("200 OK", "small", "Content-Encoding: gzip"))
    assert end.outcome == "error"
    assert endpoint.server.asked[0].headers["accept-encoding"] == "identity"


@pytest.fixture
def bounded_client() -> Client:
    from infrastructure.outbound.runtimes.model_endpoint import bounded_client

    return bounded_client


@pytest.mark.parametrize("name", ["cut", "cut chunk", "broken chunk", "huge"])
async def test_endpoint_error_keeps_status_whatever_its_body(
    bounded_client: Client, name: str
) -> None:
    head = b"Retry-After: 7\r\n" + BODIES[name]
    async with answering("429 Busy", head) as url, bounded_client(5) as client:
        answer = await client.get(url)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert len(answer.content) <= PREFIX_BYTES_MAX


async def test_endpoint_error_with_slow_body_is_not_awaited(bounded_client: Client) -> None:
    slow = b"Content-Length: 100\r\n\r\no"
    async with answering("500 x", slow, stays=True) as url, bounded_client(30) as client:
        async with asyncio.timeout(10):
            answer = await client.get(url)
    assert (answer.status_code, answer.content) == (500, b"o")


# A kill.


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event that is set once a piece of an answer has come."""
    from infrastructure.outbound.runtimes.model_conversation import _Conversation

    piece, hear = asyncio.Event(), _Conversation._hear

    def note(conversation: _Conversation, words: str) -> None:
        hear(conversation, words)
        piece.set()

    monkeypatch.setattr(_Conversation, "_hear", note)
    return piece


async def test_kill_ends_request_and_keeps_text(
    endpoint: ModelEndpoint, heard: asyncio.Event
) -> None:
    endpoint.answers("m", (text("half a sen"), HANG))
    session = await ModelRuntimes().open(model_launch(endpoint.url, model="m"))
    session.go()
    await heard.wait()
    assert endpoint.server.open == 1
    async with asyncio.timeout(1):
        await session.kill()
        while endpoint.server.open:
            await asyncio.sleep(0)
    entries, end = await all_of(session)
    assert pairs(entries) == [("message", {"role": "assistant", "text": "half a sen"})]
    assert (end.outcome, end.reason, end.result) == ("stopped", "stopped", "half a sen")


# Launches that are refused.


async def test_launch_without_model_is_refused() -> None:
    with pytest.raises(LaunchError, match="agent steward has no model"):
        await ModelRuntimes().open(model_launch(NOBODY))


async def test_launch_with_wrong_address_does_not_show_it() -> None:
    launch = model_launch(NOBODY, model="m")
    wrong = replace(launch, environment={"baseUrl": "ftp://somewhere-secret"})
    with pytest.raises(LaunchError, match="baseUrl of the runtime of agent steward must be a URL"):
        await ModelRuntimes().open(wrong)


async def test_launch_without_libraries_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(LaunchError, match=r"pip install \./client '\.\[model\]'"):
        await ModelRuntimes().open(model_launch(NOBODY, model="m"))


# Earlier turns: a child gets as much of its history as fits.


def transcript(path: Path, *entries: Mapping[str, object]) -> str:
    """Write the file of a transcript as a child gets it."""
    lines = [
        json.dumps({"sequence": number, "recordedAt": "2026-01-01T00:00:00Z", **entry})
        for number, entry in enumerate(entries, 1)
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def message(role: str, words: str) -> dict[str, object]:
    return {"kind": "message", "role": role, "text": words}


def tool(name: str, given: str, output: str | None) -> dict[str, object]:
    return {"kind": "tool", "name": name, "input": given, "output": output}


async def history(endpoint: ModelEndpoint, *files: str) -> list[dict[str, Any]]:
    """Return the messages between the system prompt and the message of the run."""
    endpoint.answers("m", said(text("done")))
    launch = replace(model_launch(endpoint.url, model="m"), history_files=files)
    _, end = await run_of(launch)
    assert end.outcome == "success", end.error
    first, *between, last = endpoint.bodies[-1]["messages"]
    assert first["role"] == "system"
    assert last == {"role": "user", "content": "Review it."}
    return list(between)


async def test_history_has_turns_and_tool_calls_in_order(
    endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    first_history = transcript(
        tmp_path / "one.jsonl",
        {"kind": "session", "sessionId": "x"},
        message("user", "Add 2 and 3."),
        {"kind": "progress", "text": "thinking"},
        tool("add", '{"a": 2}', "5"),
        message("assistant", "It is 5."),
        {"kind": "usage", "inputTokens": 1, "outputTokens": 1, "model": "m"},
        {"kind": "result", "text": "It is 5."},
    )
    printed = {"kind": "text", "text": "Yes"}
    second_history = transcript(tmp_path / "other.jsonl", message("user", "Sure?"), printed)
    question, called, output, answer, again, sure = await history(
        endpoint, first_history, second_history
    )
    assert question == {"role": "user", "content": "Add 2 and 3."}
    ((function, call_id),) = [
        (tool_call["function"], tool_call["id"]) for tool_call in called["tool_calls"]
    ]
    assert (function["name"], json.loads(function["arguments"])) == ("add", {"a": 2})
    assert (output["role"], output["content"], output["tool_call_id"]) == ("tool", "5", call_id)
    assert answer == {"role": "assistant", "content": "It is 5."}
    assert (again["content"], sure["content"]) == ("Sure?", "Yes")


async def test_history_has_broken_off_and_unreadable_calls(
    endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    file = transcript(tmp_path / "a.jsonl", message("user", "Look."), tool("look", "up", None))
    _, called, output = await history(endpoint, file)
    assert "up" in str(called)
    assert output["content"] == "(interrupted)"


async def test_history_shortens_texts_and_fits_names(
    endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    long = tool("a tool/ä" * 20, "{}", "x" * 200_000)
    _, called, output = await history(
        endpoint, transcript(tmp_path / "a.jsonl", message("user", "Look."), long)
    )
    (name,) = [tool_call["function"]["name"] for tool_call in called["tool_calls"]]
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", name)
    assert re.search(r"x \[…\d+ characters more\]$", output["content"])
    assert len(output["content"]) < 101_000


async def test_long_history_begins_with_a_later_question(
    endpoint: ModelEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{RUNTIMES}.model_history.HISTORY_CHARACTERS_MAX", 300)
    old = transcript(tmp_path / "old.jsonl", message("user", "old" * 99), message("assistant", "a"))
    new = transcript(tmp_path / "new.jsonl", message("user", "new"), message("assistant", "b"))
    assert [event["content"] for event in await history(endpoint, old, new)] == ["new", "b"]


async def test_only_end_of_large_file_is_read(
    endpoint: ModelEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{RUNTIMES}.model_history._TAIL_BYTES_MAX", 250)
    turns = [message("user", f"question {number}") for number in range(50)]
    result = await history(endpoint, transcript(tmp_path / "a.jsonl", *turns))
    assert [answer["content"] for answer in result] == ["question 48", "question 49"]


async def test_missing_history_is_a_failure(endpoint: ModelEndpoint, tmp_path: Path) -> None:
    gone = (str(tmp_path / "gone.jsonl"),)
    _, end = await run_of(replace(model_launch(endpoint.url, model="m"), history_files=gone))
    assert (end.outcome, endpoint.bodies) == ("error", [])
    assert "the transcript of the session cannot be read" in str(end.error)
    assert str(tmp_path) not in str(end.error)
