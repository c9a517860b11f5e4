"""A model is told what was said before, as far back as there is room."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infrastructure.outbound.runtimes.model import ModelRuntimes
from tests.support.builders.launches import all_of, model_launch
from tests.support.servers.model_endpoint import ModelEndpoint, said, text

pytestmark = pytest.mark.process

HISTORY = "infrastructure.outbound.runtimes.model_history"


@pytest.fixture
async def endpoint() -> AsyncIterator[ModelEndpoint]:
    async with ModelEndpoint() as endpoint:
        yield endpoint


def transcript(path: Path, *entries: Mapping[str, object]) -> str:
    """The file of a transcript, as it is given to a child."""
    lines = [
        json.dumps({"sequence": number, "recordedAt": "2026-01-01T00:00:00Z", **entry})
        for number, entry in enumerate(entries, 1)
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def message(role: str, words: str) -> dict[str, object]:
    return {"kind": "message", "role": role, "text": words}


async def told(endpoint: ModelEndpoint, *files: str) -> list[dict[str, Any]]:
    """What the endpoint is told between the system prompt and the message."""
    endpoint.answers("m", said(text("done")))
    launch = replace(model_launch(endpoint.url, model="m"), history_files=files)
    session = await ModelRuntimes().open(launch)
    session.go()
    _, end = await all_of(session)
    assert end.outcome == "success", end.error
    first, *between, last = endpoint.bodies[-1]["messages"]
    assert first["role"] == "system"
    assert last == {"role": "user", "content": "Review it."}
    return list(between)


async def test_earlier_turns_are_told_in_their_order_with_the_tools_they_called(
    endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    one = transcript(
        tmp_path / "one.jsonl",
        {"kind": "session", "sessionId": "x"},
        message("user", "Add 2 and 3."),
        {"kind": "progress", "text": "thinking"},
        {"kind": "tool", "name": "add", "input": '{"a": 2}', "output": "5"},
        message("assistant", "It is 5."),
        {"kind": "usage", "inputTokens": 1, "outputTokens": 1, "model": "m"},
        {"kind": "result", "text": "It is 5."},
    )
    other = transcript(
        tmp_path / "other.jsonl", message("user", "Sure?"), message("assistant", "Yes")
    )
    asked, called, answered, said_, again, sure = await told(endpoint, one, other)
    assert asked == {"role": "user", "content": "Add 2 and 3."}
    (call,) = called["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "add",
        {"a": 2},
    )
    assert (answered["role"], answered["content"]) == ("tool", "5")
    assert answered["tool_call_id"] == call["id"]
    assert said_ == {"role": "assistant", "content": "It is 5."}
    assert (again["content"], sure["content"]) == ("Sure?", "Yes")


async def test_what_a_program_printed_before_is_what_it_said(
    endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    file = transcript(
        tmp_path / "a.jsonl", message("user", "Go."), {"kind": "text", "text": "Gone."}
    )
    assert [one["content"] for one in await told(endpoint, file)] == ["Go.", "Gone."]


async def test_a_call_that_was_broken_off_or_had_no_object_is_told_all_the_same(
    endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    call = {"kind": "tool", "name": "look", "input": "up", "output": None}
    file = transcript(tmp_path / "a.jsonl", message("user", "Look."), call)
    _, called, answered = await told(endpoint, file)
    assert "up" in str(called)
    assert answered["content"] == "(it was broken off)"


async def test_of_a_long_conversation_the_newest_is_told_from_a_question_on(
    endpoint: ModelEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{HISTORY}.HISTORY_CHARACTERS_MAX", 300)
    old = transcript(tmp_path / "old.jsonl", message("user", "old" * 99), message("assistant", "a"))
    new = transcript(tmp_path / "new.jsonl", message("user", "new"), message("assistant", "b"))
    assert [one["content"] for one in await told(endpoint, old, new)] == ["new", "b"]


async def test_of_a_very_large_file_only_the_end_is_read(
    endpoint: ModelEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{HISTORY}._TAIL_BYTES_MAX", 250)
    turns = [message("user", f"question {number}") for number in range(50)]
    file = transcript(tmp_path / "a.jsonl", *turns)
    assert [one["content"] for one in await told(endpoint, file)] == ["question 48", "question 49"]


async def test_a_history_that_is_gone_is_a_failure_and_no_conversation_without_it(
    endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    launch = replace(
        model_launch(endpoint.url, model="m"), history_files=(str(tmp_path / "gone.jsonl"),)
    )
    session = await ModelRuntimes().open(launch)
    session.go()
    _, end = await all_of(session)
    assert (end.outcome, endpoint.bodies) == ("error", [])
    assert "what was said before cannot be read" in str(end.error)
    assert str(tmp_path) not in str(end.error)


async def test_a_text_that_is_too_long_says_how_much_is_left_out_and_a_name_is_one_for_any_endpoint(
    endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    call = {"kind": "tool", "name": "a tool/ä" * 20, "input": "{}", "output": "x" * 200_000}
    file = transcript(tmp_path / "a.jsonl", message("user", "Look."), call)
    _, called, answered = await told(endpoint, file)
    (name,) = [one["function"]["name"] for one in called["tool_calls"]]
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", name)
    assert re.search(r"x \[…\d+ characters more\]$", answered["content"])
    assert len(answered["content"]) < 101_000
