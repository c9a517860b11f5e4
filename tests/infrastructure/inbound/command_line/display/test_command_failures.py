"""Which exit status an answer of the server leads to, and what is said."""

from typing import Any

import pytest

from infrastructure.inbound.command_line.display.failures import failure_from_problem


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
def test_each_answer_has_its_exit_status(
    status: int, problem: dict[str, Any], exit_code: int
) -> None:
    assert failure_from_problem(status, problem).exit_code == exit_code


def test_a_refusal_tells_text_rule_and_record() -> None:
    failure = failure_from_problem(
        403,
        {
            "code": "spawn_forbidden",
            "detail": "sessions_spawn has reached max active children for this session (5/5)",
            "rule": "active_children",
            "runId": "r-1",
        },
    )
    assert "(5/5)" in failure.message
    assert "rule: active_children" in failure.message
    assert "recorded as run r-1" in failure.message


def test_each_invalid_member_is_pointed_at() -> None:
    failure = failure_from_problem(
        422, {"detail": "invalid", "errors": [{"pointer": "/task", "detail": "must not be empty"}]}
    )
    assert "/task: must not be empty" in failure.message


def test_what_the_text_says_is_not_said_twice() -> None:
    failure = failure_from_problem(
        422,
        {
            "detail": "/task: is required",
            "errors": [
                {"pointer": "/task", "detail": "is required"},
                {"pointer": "/label", "detail": "is too long"},
            ],
        },
    )
    assert failure.message == "/task: is required\n  /label: is too long"


def test_a_missing_token_comes_with_advice() -> None:
    assert "SPAWNLOG_TOKEN" in failure_from_problem(401, {"title": "Unauthorized"}).message


def test_an_answer_without_words_is_told_by_its_status() -> None:
    assert failure_from_problem(500, {}).message == "the server answered 500"


def test_the_words_of_a_server_cannot_steer_the_terminal() -> None:
    assert (
        "\x1b" not in failure_from_problem(422, {"detail": "\x1b]0;x\x07", "rule": "\x9b"}).message
    )
