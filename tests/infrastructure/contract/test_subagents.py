"""Sub-agents as `/subagents` lists, numbers, names and shows them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from infrastructure.contract.subagents import (
    Subagent,
    Subagents,
    TargetError,
    find_subagent,
    info_text,
    list_text,
    log_text,
    runtime_text,
    subagents_of,
    tokens_text,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def run(number: int, minutes_ago: int, stage: str = "started", **more: Any) -> dict[str, Any]:
    began = NOW - timedelta(minutes=minutes_ago)
    is_over = stage in ("ended", "announced", "archived")
    return {
        "runId": f"{number}{number}abcdef-0000-4000-8000-000000000000",
        "childSessionKey": f"agent:main:subagent:{number}",
        "stage": stage,
        "startedAt": began.isoformat(),
        "endedAt": (began + timedelta(minutes=1)).isoformat() if is_over else None,
        "outcome": "success" if is_over else None,
        "label": f"job {number}",
        "taskPreview": f"do job {number}",
        "model": "small",
        "runtimeMs": 42_000,
        **more,
    }


KNOWN = subagents_of(
    [
        run(1, 20, "announced"),
        run(2, 10),
        run(3, 5, usage={"inputTokens": 12, "outputTokens": 1000, "cacheReadTokens": 197_000}),
        run(4, 90, "announced"),
        run(5, 2, childSessionKey=None),
        run(8, 1, "refused", childSessionKey="agent:main:subagent:2"),
        run(6, 15, "announced", outcome="error", label="Ship it", taskPreview="Ship it"),
    ],
    NOW,
)


def test_list_is_numbered_newest_first() -> None:
    assert list_text(KNOWN) == (
        "active subagents:\n-----\n"
        "1. job 3 (small, 42s, tokens 1k (in 12 / out 1k), prompt/cache 197k) running - do job 3\n"
        "2. job 2 (small, 42s) running - do job 2\n"
        "\nrecent subagents (last 30m):\n-----\n"
        "3. Ship it (small, 42s) failed\n"
        "4. job 1 (small, 42s) done - do job 1"
    )


def test_empty_list_says_none() -> None:
    nobody = list_text(Subagents((), ()))
    assert nobody == (
        "active subagents:\n-----\n(none)\n\nrecent subagents (last 30m):\n-----\n(none)"
    )


def test_session_has_one_line_by_its_newest_run() -> None:
    both = [run(1, 20, "announced"), run(7, 1, childSessionKey="agent:main:subagent:1")]
    (only,) = subagents_of(both, NOW).numbered
    assert only.run_id.startswith("77")


@pytest.mark.parametrize(
    ("pending", "status"),
    [(1, "active (waiting on 1 child)"), (2, "active (waiting on 2 children)"), (0, "running")],
)
def test_ended_run_waits_for_its_children(pending: int, status: str) -> None:
    assert Subagent(run(1, 5, "ended"), NOW, pending).status == status


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("1", "33"),
        ("#3", "66"),
        ("last", "33"),
        ("agent:main:subagent:2", "22"),
        ("JOB 2", "22"),
        ("ship", "66"),
        ("22ab", "22"),
    ],
)
def test_subagent_is_found_by_number_key_label_or_id(target: str, found: str) -> None:
    assert find_subagent(KNOWN, target).run_id[:2] == found


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (" ", "Missing subagent id."),
        ("9", "Invalid subagent index: 9"),
        ("0", "Invalid subagent index: 0"),
        ("agent:main:subagent:9", "Unknown subagent session: agent:main:subagent:9"),
        ("job", "Ambiguous subagent label prefix: job"),
        ("nobody", "Unknown subagent id: nobody"),
    ],
)
def test_target_of_none_or_several_is_refused(target: str, why: str) -> None:
    with pytest.raises(TargetError) as caught:
        find_subagent(KNOWN, target)
    assert caught.value.message == why


def test_runtime_of_running_one_is_so_far() -> None:
    at_work = Subagent(run(1, 5, runtimeMs=None), NOW)
    assert runtime_text(at_work.runtime_ms) == "5m"
    assert Subagent(run(1, 5, runtimeMs=None, startedAt=None), NOW).runtime_ms is None


def test_info_shows_everything() -> None:
    over = run(1, 20, "announced", error="it broke", outcome="error", cleanup="keep")
    subagent = Subagent(over, NOW)
    shown = info_text(subagent).splitlines()
    assert shown[:3] == ["ℹ️ Subagent info", "Status: failed", "Label: job 1"]
    assert "Outcome: error (it broke)" in shown
    assert f"Started: {subagent.run['startedAt']} (20m ago)" in shown
    assert "Created: n/a" in shown
    assert not [line for line in shown if line.startswith("Stop")]


def test_info_names_stopper_and_reason() -> None:
    stopped = run(1, 20, "announced", stopRequestedBy="admin", stopReason="enough")
    shown = info_text(Subagent(stopped, NOW)).splitlines()
    assert "Stopped by: admin" in shown
    assert "Stop reason: enough" in shown


def test_log_has_both_sides_and_tools() -> None:
    entries: list[dict[str, Any]] = [
        {"kind": "message", "body": {"role": "user", "text": "do it"}},
        {"kind": "tool", "body": {"name": "exec"}},
        {"kind": "tool", "body": {"name": "read", "durationMs": 42_000}},
        {"kind": "result", "body": {"text": "done"}},
        {"kind": "message", "body": {"role": "assistant", "text": " "}},
    ]
    subagent = KNOWN.numbered[0]
    entries.insert(1, {"kind": "progress", "body": {"text": "half of it"}})
    assert log_text(subagent, entries, 20) == (
        "📜 Subagent log: job 3\nUser: do it\nTool: exec\nTool: read (42s)\nAssistant: done"
    )
    assert log_text(subagent, entries, 1) == "📜 Subagent log: job 3\nAssistant: done"
    assert log_text(subagent, [], 20) == "📜 Subagent log: job 3\n(no messages)"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (340, "340ms"),
        (42_000, "42s"),
        (312_000, "5m12s"),
        (3_900_000, "1h5m"),
        (93_600_000, "1d2h"),
        (3_600_000, "1h"),
        (None, "n/a"),
    ],
)
def test_runtime_has_its_two_largest_parts(milliseconds: int | None, text: str) -> None:
    assert runtime_text(milliseconds) == text


@pytest.mark.parametrize(
    ("taken", "text"),
    [(999, "999"), (1000, "1k"), (1540, "1.5k"), (9940, "9.9k"), (197_400, "197k")],
)
def test_tokens_are_rounded(taken: int, text: str) -> None:
    assert tokens_text({"inputTokens": taken}) == f"tokens {text} (in {text} / out 0)"
