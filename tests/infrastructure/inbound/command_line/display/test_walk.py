"""Walk through the states of a run: the target and output of each command."""

from typing import Any

import pytest

from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.walk import (
    WalkState,
    follow_command,
    visible_lines,
    walk_lines,
    walk_of,
)

STAGES = ("requested", "queued", "started", "started", "ended")


def entry(version: int, *changes: dict[str, Any]) -> dict[str, Any]:
    return {
        "position": version * 10,
        "version": version,
        "type": f"Event{version}",
        "recordedAt": f"2026-03-01T09:30:0{version}.000Z",
        "actor": {"kind": "system", "token": None, "session": None},
        "changes": [*changes, {"op": "add", "path": "/version", "value": version}],
    }


def stage(name: str) -> dict[str, Any]:
    return {"op": "add", "path": "/stage", "value": name}


@pytest.fixture
def walk() -> WalkState:
    items = [entry(version, stage(name)) for version, name in enumerate(STAGES, 1)]
    items[3]["changes"].append({"op": "add", "path": "/error", "value": "\x1b[2Jbroken"})
    return walk_of(items)


def text_of(walk: WalkState, cells: int = 80, tree: tuple[str, ...] = ()) -> str:
    return "\n".join("".join(text for text, _ in line) for line in walk_lines(walk, cells, tree))


def after(walk: WalkState, *commands: str) -> WalkState:
    for command in commands:
        walk = follow_command(walk, command)
    return walk


@pytest.mark.parametrize(
    ("commands", "version"),
    [
        ((), 1),
        (("n",), 2),
        (("", ""), 3),
        (("next", "b"), 1),
        (("last",), 5),
        (("last", "first"), 1),
        (("4",), 4),
        (("g 34",), 3),
        (("g34",), 3),
        (("pos:9999",), 5),
        (("ended",), 5),
        (("started",), 3),
        (("g queued",), 2),
        (("4", "started"), 3),
    ],
)
def test_command_leads_to_a_place(walk: WalkState, commands: tuple[str, ...], version: int) -> None:
    there = after(walk, *commands)
    assert (there.here.version, there.note) == (version, "")


@pytest.mark.parametrize(
    ("commands", "version", "note"),
    [
        (("b",), 1, "first event"),
        (("last", "n"), 5, "last event"),
        (("7",), 1, "events are 1 to 5"),
        (
            ("archived",),
            1,
            "not a command or stage of this run (requested, queued, started, ended)",
        ),
        (("g 3",), 1, "begins after position 3"),
        (("?",), 1, "q quit"),
    ],
)
def test_command_that_leads_nowhere_says_why(
    walk: WalkState, commands: tuple[str, ...], version: int, note: str
) -> None:
    there = after(walk, *commands)
    assert there.here.version == version
    assert note in there.note
    assert after(there, "s").note == ""


def test_walk_ends_with_q(walk: WalkState) -> None:
    assert not walk.is_over
    assert after(walk, "q").is_over


def test_state_and_difference_are_side_by_side_if_wide(walk: WalkState) -> None:
    there = after(walk, "started")
    wide = text_of(there, 120).splitlines()
    assert any("state" in line and "difference" in line for line in wide)
    assert all(len(line) <= 120 for line in wide)
    narrow = text_of(there, 80).splitlines()
    assert narrow.index("state") < narrow.index("difference")
    assert {"stage", "  - queued", "  + started"} <= set(narrow)
    only = text_of(after(there, "s"), 120)
    assert "state" in only
    assert "difference" not in only
    assert "state " not in text_of(after(there, "d"), 120)


def test_tree_is_shown_until_the_next_step(walk: WalkState) -> None:
    there = after(walk, "3", "t")
    assert "other events of the tree, 20 to 30" in text_of(there, tree=("  25  RunQueued",))
    assert "25  RunQueued" in text_of(there, tree=("  25  RunQueued",))
    assert "none" in text_of(there)
    assert "what else" not in text_of(after(there, "n"))
    assert after(walk, "d", "t", "n").view == "difference"


def test_state_cannot_steer_terminal(walk: WalkState) -> None:
    shown = text_of(after(walk, "4"))
    assert "\x1b" not in shown
    assert "\\x1b[2Jbroken" in shown


def test_long_state_is_scrolled(walk: WalkState) -> None:
    state = {f"field{number}": number for number in range(60)}
    items = [
        entry(
            1, *({"op": "add", "path": f"/{name}", "value": value} for name, value in state.items())
        )
    ]
    there = walk_of(items)
    shown = visible_lines(there, walk_lines(there, 80), 24)
    assert len(shown) == 22
    assert "more lines" in shown[-1][0][0]
    for _ in range(20):
        there = follow_command(there, "down")
    end = visible_lines(there, walk_lines(there, 80), 24)
    assert "more lines" not in str(end)
    assert end[:3] == shown[:3]
    assert follow_command(there, "n").scrolled == 0


def test_line_is_cut_to_the_width(walk: WalkState) -> None:
    for cells in (1, 10, 40, 100, 300):
        for view in ("s", "d", "both"):
            lines = text_of(after(walk, "4", view), cells).splitlines()
            assert all(len(line) <= cells for line in lines)


def test_unusable_history_is_an_error() -> None:
    with pytest.raises(CommandError, match="no events"):
        walk_of([])
    with pytest.raises(CommandError, match="cannot be read"):
        walk_of([entry(1, {"op": "remove", "path": "/nothing"})])
