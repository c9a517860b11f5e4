"""Commands that derive from rows send their options and print the answer, hostile ones too."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infrastructure.inbound.command_line.client.described import (
    DescribedOperation,
    Parameter,
    described_operations,
)
from infrastructure.inbound.http.openapi import document
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

RUN = "11111111-0000-4000-8000-000000000001"
DERIVED = [
    described_operation
    for described_operation in described_operations().values()
    if described_operation.words and not described_operation.by_hand
]
PAGES = ("nextCursor", "nextAfter", "nextBefore")
SHOWN = [
    described_operation
    for described_operation in described_operations().values()
    if described_operation.words and described_operation.method == "GET"
]
ADDED = {"event find": ("--type", "RunEnded"), "event list": ("--newest",)}
every_command = pytest.mark.parametrize("operation", DERIVED, ids=lambda operation: operation.name)


def example(operation: DescribedOperation) -> dict[str, Any]:
    """Return the answer that the description of the API has as an example, as the last page."""
    described = document()["paths"][operation.path][operation.method.lower()]
    status = min(described["responses"])
    answer: dict[str, Any] = described["responses"][status]["content"]["application/json"][
        "example"
    ]
    return {**answer, **{name: None for name in PAGES if name in answer}}


def value_of(parameter: Parameter) -> tuple[list[str], Any]:
    """Return the typed form of a value, and the value that is sent."""
    if parameter.kind == "flag":
        return [], parameter.sends
    if parameter.choices:
        return [parameter.choices[-1]], parameter.choices[-1]
    if parameter.means == "run":
        return [RUN], RUN
    if parameter.kind == "integer":
        return ["7"], 7
    return ["some text"], ["some text"] if parameter.kind == "texts" else "some text"


def asked_by(operation: DescribedOperation) -> tuple[list[str], str, Mapping[str, Any]]:
    """Return arguments with every option, the path of their request, and its other values."""
    arguments, sent, path = list[str](), dict[str, Any](), operation.path
    for parameter in operation.parameters:
        typed, value = value_of(parameter)
        arguments += typed if parameter.flag is None else [parameter.flag, *typed]
        if parameter.place == "path":
            path = path.replace(f"{{{parameter.name}}}", str(value).replace(" ", "%20"))
        elif value is not None:
            sent[parameter.name] = value
    return arguments, path, sent


def required(operation: DescribedOperation) -> list[str]:
    """Return the arguments without which the command is refused."""
    return [
        typed
        for parameter in operation.parameters
        if parameter.flag is None or parameter.required
        for typed in (*([parameter.flag] if parameter.flag else []), *value_of(parameter)[0])
    ]


@every_command
def test_command_sends_every_option(
    operation: DescribedOperation, api: RecordedApi, spawnlog: Command
) -> None:
    arguments, path, sent = asked_by(operation)
    api.on(operation.method, path, Reply(example(operation)))
    spawnlog(*str(operation.words).split(), *arguments)
    request = api.asked[-1]
    assert (request.method, request.path) == (operation.method, path)
    if operation.method == "GET":
        texts = {
            name: value[0] if isinstance(value, list) else value for name, value in sent.items()
        }
        texts |= (
            {} if "limit" in texts or not operation.paged else {"limit": request.query["limit"]}
        )
        assert request.query == {
            name: "true" if value is True else str(value) for name, value in texts.items()
        }
    else:
        assert request.body == (sent if operation.method != "DELETE" else None)
    assert ("idempotency-key" in request.headers) == operation.takes_key


@pytest.mark.parametrize("words", ["spawn", "run respawn"])
def test_command_sends_every_option_of_spawn(
    words: str, api: RecordedApi, spawnlog: Command, tmp_path: Path
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    special = {
        "files": (str(file), [{"name": "notes.txt", "content": "hello", "encoding": "utf8"}]),
        "objects": ('{"a": 1}', {"a": 1}),
        "duration": ("90", 90),
    }
    is_new = words == "spawn"
    arguments, sent = ["the task"] if is_new else [RUN], dict[str, Any]()
    for parameter in described_operations()["spawn"].parameters:
        outer, _, inner = parameter.name.partition(".")
        if is_new or outer != "requester":
            typed, value = value_of(parameter)
            if parameter.means in special:
                text, value = special[parameter.means]
                typed = [text]
            arguments += [str(parameter.flag), *typed]
            sent[outer] = {**sent.get(outer, {}), inner: value} if inner else value
    path = "/v1/spawns" if is_new else f"/v1/runs/{RUN}/respawn"
    api.on("POST", path, Reply({"runId": RUN}, status=201))
    assert spawnlog(*words.split(), *arguments).exit_code == 0
    body = api.asked[0].body
    if is_new:
        assert (body.pop("task"), body["requester"].pop("sessionKey")) == ("the task", "main")
    assert (body if is_new else body["changes"]) == sent


@every_command
def test_command_prints_answer(
    operation: DescribedOperation, api: RecordedApi, spawnlog: Command
) -> None:
    arguments = required(operation)
    _, path, _ = asked_by(operation)
    answer = example(operation)
    api.on(operation.method, path, Reply(answer))
    words = str(operation.words).split()
    shown = json.loads(spawnlog(*words, *arguments, "-o", "json").stdout)
    assert (shown["items"] if operation.paged else shown) == (
        answer[str(operation.items)] if operation.paged else answer
    )
    lines = spawnlog(*words, *arguments, "-o", "jsonl").stdout.splitlines()
    listed = operation.items is not None
    assert [json.loads(line) for line in lines] == (
        answer[str(operation.items)] if listed else [answer]
    )
    assert spawnlog(*words, *arguments).stdout.strip()


EVIL = "\x1b[2J[red]x[/red]\u202e"


def hostile(value: Any) -> Any:
    """Return the value with every text in it replaced, keys of free objects too."""
    if isinstance(value, dict):
        return {name: hostile(value) for name, value in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return EVIL if isinstance(value, str) else value


@pytest.mark.parametrize("operation", SHOWN, ids=lambda operation: operation.name)
@pytest.mark.parametrize("output", ["table", "json", "jsonl", "yaml"])
def test_hostile_answer_cannot_steer_terminal(
    operation: DescribedOperation, output: str, api: RecordedApi, spawnlog: Command
) -> None:
    _, path, _ = asked_by(operation)
    api.on("GET", f"/v1/runs/{RUN}", Reply({"runId": RUN}))
    api.on("GET", path, Reply(hostile(example(operation))))
    words = str(operation.words)
    arguments = [*required(operation), *ADDED.get(words, ()), "-o", output]
    result = spawnlog(*words.split(), *arguments)
    assert result.exit_code in (0, 1), result.output
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    assert "1b[2J" in result.stdout
