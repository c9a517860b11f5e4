"""Exit status and text for each answer of the server."""

from typing import Any

import pytest

from infrastructure.inbound.command_line.display.failures import failure_from_problem

CAP = "sessions_spawn has reached max active children for this session (5/5)"


@pytest.mark.parametrize(
    ("status", "problem", "exit_code"),
    [
        (403, {"code": "spawn_forbidden"}, 3),
        (422, {"code": "spawn_error"}, 3),
        (403, {"code": "not_permitted"}, 3),
        (404, {"code": "not_found"}, 4),
        (422, {"code": "invalid_request"}, 2),
        (401, {"code": "unauthenticated"}, 2),
        (409, {"code": "queue_full"}, 3),
        (409, {"code": "of_a_later_version"}, 3),
        (410, {"code": "cursor_gone"}, 2),
        (500, {}, 2),
        (503, {"code": "not_ready"}, 5),
        (502, {}, 5),
    ],
)
def test_answer_has_its_exit_status(status: int, problem: dict[str, Any], exit_code: int) -> None:
    assert failure_from_problem(status, problem).exit_code == exit_code


@pytest.mark.parametrize(
    ("status", "problem", "shown"),
    [
        (
            403,
            {"code": "spawn_forbidden", "detail": CAP, "rule": "active_children", "runId": "r-1"},
            [CAP, "rule: active_children", "recorded as run r-1"],
        ),
        (
            422,
            {"detail": "bad", "errors": [{"pointer": "/task", "detail": "must not be empty"}]},
            ["/task: must not be empty"],
        ),
        (401, {"title": "Unauthorized"}, ["SPAWNLOG_TOKEN"]),
        (500, {}, ["the server answered 500"]),
        (422, {"detail": "\x1b]0;x\x07", "rule": "\x9b"}, ["\\x1b]0;x\\x07", "\\x9b"]),
    ],
)
def test_failure_shows(status: int, problem: dict[str, Any], shown: list[str]) -> None:
    message = failure_from_problem(status, problem).message
    assert all(part in message for part in shown), message
    assert not {"\x1b", "\x9b"} & set(message)


def test_fault_in_the_text_is_shown_once() -> None:
    errors = [
        {"pointer": "/task", "detail": "is required"},
        {"pointer": "/label", "detail": "is too long"},
    ]
    failure = failure_from_problem(422, {"detail": "/task: is required", "errors": errors})
    assert failure.message == "/task: is required\n  /label: is too long"
