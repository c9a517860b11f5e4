"""Outputs of coding agents, read by the presets of `examples/coding-agents`.

`recorded/shapes/` has one file for each shape, `<agent>-<shape>.jsonl`. They are made by hand after
the published types and sources of the agents (Claude Agent SDK 0.3.332, Codex SDK 0.163.0, Gemini
CLI 0.61.0, opencode 1.18.33). The agents here are shell scripts that print them.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from domain.delivery.transcript import RuntimeReading, read_line
from tests.support.servers.recorded_agents import RECORDED, start_preset

SHAPES = RECORDED / "shapes"


@dataclass
class Played:
    """What a preset printed for an output, and how it ended."""

    code: int
    stderr: str
    entries: list[dict[str, Any]]
    reading: RuntimeReading

    def texts(self, kind: str) -> list[str]:
        return [one["text"] for one in self.entries if one["type"] == kind]

    def tokens(self) -> tuple[int, int, int, int]:
        usages = self.reading.usages
        return (
            sum(one.input_tokens for one in usages),
            sum(one.output_tokens for one in usages),
            sum(one.cache_read_tokens for one in usages),
            sum(one.cache_write_tokens for one in usages),
        )


def play(folder: Path, shape: str, exit_code: int = 0) -> Played:
    """Have the preset read the output of this shape; its agent ends with `exit_code`."""
    agent_id, _, _ = shape.partition("-")
    lines = f'cat "{SHAPES / shape}.jsonl"; exit {exit_code}'
    with start_preset(folder, lines, agent_id) as process:
        stdout, stderr = process.communicate(timeout=60)
    reading = RuntimeReading()
    for line in stdout.splitlines():
        entry = read_line(line)
        assert entry is not None
        reading = reading.after(entry)
    entries = [json.loads(line) for line in stdout.splitlines()]
    return Played(process.returncode, stderr, entries, reading)


@pytest.mark.parametrize(
    ("shape", "tokens"),
    [
        ("claude-two-results", (2800, 200, 90, 5)),
        ("claude-recovered", (20, 2, 0, 0)),
        ("claude-zeroed-end", (20, 2, 0, 0)),
        ("codex-two-turns", (1900, 90, 600, 0)),
        ("codex-cache-write", (500, 50, 200, 300)),
        ("gemini-two-results", (243, 90, 60, 0)),
        ("gemini-thoughts", (243, 90, 60, 0)),
        ("opencode-two-steps", (30, 13, 2, 4)),
    ],
)
def test_totals_of_agent_are_counted_once(
    tmp_path: Path, shape: str, tokens: tuple[int, int, int, int]
) -> None:
    assert play(tmp_path, shape).tokens() == tokens


@pytest.mark.parametrize(
    ("shape", "result"),
    [
        ("claude-two-results", "The background agent found 42."),
        ("claude-blank-result", "The answer is 42."),
        ("claude-blank-second-result", "The answer is 42."),
        ("claude-sub-agent", "There is one boat."),
        ("codex-two-turns", "Second: 42."),
        ("codex-blank-message", None),
        ("codex-sub-agent", "There is one boat."),
        ("gemini-blank-message", None),
        ("gemini-thoughts", "Done: 42."),
        ("opencode-two-steps", "Done: 42."),
        ("opencode-blank-text", "Done: 42."),
    ],
)
def test_result_is_last_answer_with_words(tmp_path: Path, shape: str, result: str | None) -> None:
    played = play(tmp_path, shape)
    assert (played.code, played.stderr) == (0, "")
    assert played.reading.result == result


@pytest.mark.parametrize(
    "shape",
    [
        "claude-broken-off",
        "claude-broken-off-second-turn",
        "codex-broken-off",
        "gemini-broken-off",
        "opencode-broken-off",
        "opencode-broken-off-in-step",
    ],
)
def test_output_without_last_event_fails(tmp_path: Path, shape: str) -> None:
    played = play(tmp_path, shape)
    assert played.code == 1
    assert "it broke off: its output ended without its " in played.stderr


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ("claude-cut-off", "max_tokens"),
        ("codex-cut-off", "max_output_tokens"),
        ("gemini-cut-off", "the limit of output tokens was reached"),
        ("gemini-turns-used-up", "Maximum session turns exceeded"),
        ("opencode-cut-off", "(length)"),
    ],
)
def test_answer_cut_off_fails(tmp_path: Path, shape: str, reason: str) -> None:
    played = play(tmp_path, shape)
    assert played.code == 1
    assert reason in played.stderr
    assert not played.texts("result")


@pytest.mark.parametrize(
    ("shape", "code", "error"),
    [
        ("claude-recovered", 0, "overloaded"),
        ("codex-recovered", 0, "stream error"),
        ("gemini-recovered", 0, "quota for this minute"),
        ("gemini-warned", 0, "the harbour is crowded"),
        ("opencode-recovered", 0, "ECONNRESET"),
        # opencode exits with 1 for each error, recovered or not.
        ("opencode-recovered", 1, "ECONNRESET"),
    ],
)
def test_recovered_error_is_progress(tmp_path: Path, shape: str, code: int, error: str) -> None:
    played = play(tmp_path, shape, code)
    assert (played.code, played.stderr) == (0, "")
    assert played.reading.result == "Done: 42."
    assert error in "\n".join(played.texts("progress"))


@pytest.mark.parametrize(
    ("shape", "code", "error"),
    [
        ("opencode-failed-later", 0, "ECONNRESET"),
        ("opencode-failed-later", 1, "ECONNRESET"),
        ("claude-zeroed-end", 0, "the worker crashed"),
    ],
)
def test_unrecovered_error_fails(tmp_path: Path, shape: str, code: int, error: str) -> None:
    played = play(tmp_path, shape, code)
    assert played.code == 1
    assert error in played.stderr


def test_exit_code_without_error_event_fails(tmp_path: Path) -> None:
    assert play(tmp_path, "opencode-two-steps", 1).code == 1


@pytest.mark.parametrize("agent_id", ["claude", "codex", "gemini", "opencode"])
def test_unknown_events_are_counted(tmp_path: Path, agent_id: str) -> None:
    played = play(tmp_path, f"{agent_id}-unknown-events")
    assert (played.code, played.reading.result) == (0, "Done: 42.")
    (told,) = [text for text in played.texts("progress") if "does not know" in text]
    assert f"tide_table ({2 if agent_id == 'claude' else 1})" in told


def test_words_of_sub_agent_are_no_message(tmp_path: Path) -> None:
    played = play(tmp_path, "claude-sub-agent")
    assert played.texts("message") == ["There is one boat."]
    assert "counter: Inner words: 1." in played.texts("progress")
    tools = [(one["name"], one["output"]) for one in played.entries if one["type"] == "tool"]
    assert tools == [("counter: Bash", "boat"), ("Task", "1")]


def test_sub_agent_of_codex_is_tool(tmp_path: Path) -> None:
    (told,) = [one for one in play(tmp_path, "codex-sub-agent").entries if one["type"] == "tool"]
    assert (told["name"], told["input"]) == ("agents.spawn_agent", "Count.")
    assert told["output"] == {"u": {"status": "completed", "message": "1"}}


def test_plan_of_codex_is_progress(tmp_path: Path) -> None:
    assert "[x] Count.\n[ ] Tell." in play(tmp_path, "codex-unknown-events").texts("progress")


def test_rejected_permission_is_progress(tmp_path: Path) -> None:
    played = play(tmp_path, "opencode-rejected")
    assert played.code == 0
    assert "it asked for permissions that nobody gave: bash" in played.texts("progress")
