"""State of a walk through the states of a run: its place, its commands and its lines.

Pure: a command and a walk give another walk. Reading keys and printing are elsewhere.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from application.queries.changes.json_patch import PatchError, apply_patch
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output import JsonObject
from infrastructure.inbound.command_line.display.plain_text import ELLIPSIS, printable_line, text_of
from infrastructure.inbound.command_line.display.times import format_instant, format_offset

SIDE_BY_SIDE_CELLS_MIN = 100
VALUE_CHARACTERS_MAX = 400
GAP_CELLS = 3
PATCH_OPERATIONS_MAX = 100_000
HELP = (
    "n, Enter, → next · b, ← back · first · last · a version, a stage or g POSITION jumps ·"
    " s state · d difference · both · t other events of the tree · ↑ ↓ scroll · q quit"
)
WalkView = Literal["both", "state", "difference"]
Segment = tuple[str, str]
"""A text and its style."""
Line = tuple[Segment, ...]

_WORDS: Mapping[str, str] = {
    "": "next", "n": "next", "next": "next",
    "b": "back", "back": "back",
    "first": "first", "0": "first",
    "last": "last", "$": "last",
    "s": "state", "state": "state",
    "d": "difference", "difference": "difference",
    "both": "both",
    "t": "tree", "tree": "tree",
    "up": "up", "down": "down",
    "q": "quit", "quit": "quit",
    "?": "help", "h": "help", "help": "help",
}  # fmt: skip
_NUMBER = re.compile("[0-9]{1,10}")
_POSITION = re.compile(r"(?:g\s*|pos:)([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class WalkStep:
    """One event of the run, the state after it, and the changed fields with old and new values."""

    position: int
    version: int
    type: str
    recorded_at: str
    actor: str
    state: JsonObject
    changes: tuple[tuple[str, Any, Any], ...]


@dataclass(frozen=True, slots=True)
class WalkState:
    """Position in a walk, and the view of it.

    Attributes:
        place: Index of the step, from 0.
        shows_tree: True if the other events of the tree are shown, until the next command.
        scrolled: Number of lines above the screen.
        note: Message of the last command.
        is_over: True if the walk has ended.
    """

    steps: tuple[WalkStep, ...]
    place: int = 0
    view: WalkView = "both"
    shows_tree: bool = False
    scrolled: int = 0
    note: str = ""
    is_over: bool = False

    @property
    def here(self) -> WalkStep:
        """Return the current step."""
        return self.steps[self.place]

    @property
    def before(self) -> WalkStep | None:
        """Return the preceding step, or None at the first one."""
        return self.steps[self.place - 1] if self.place else None


def walk_of(entries: Sequence[JsonObject]) -> WalkState:
    """Return a walk at the first of these entries of a history.

    The entries begin with the run's first event.

    Raises:
        CommandError: There are no entries, or their changes do not apply in this order.
    """
    steps: list[WalkStep] = []
    state: Any = {}
    for entry in entries:
        try:
            after = apply_patch(entry["changes"], state, operations_max=PATCH_OPERATIONS_MAX)
            steps.append(_step(entry, state, after))
        except (PatchError, KeyError, TypeError, ValueError) as error:
            raise CommandError(f"the history of the run cannot be read: {error}") from None
        state = after
    if not steps:
        raise CommandError("the run has no events to walk through")
    return WalkState(tuple(steps))


def _step(entry: JsonObject, before: JsonObject, after: JsonObject) -> WalkStep:
    changed = [name for name in (*after, *before) if before.get(name) != after.get(name)]
    actor = entry.get("actor") or {}
    return WalkStep(
        position=int(entry["position"]),
        version=int(entry["version"]),
        type=str(entry["type"]),
        recorded_at=str(entry["recordedAt"]),
        actor=str(actor.get("session") or actor.get("token") or actor.get("kind") or ""),
        state=after,
        changes=tuple((name, before.get(name), after.get(name)) for name in dict.fromkeys(changed)),
    )


def follow_command(walk: WalkState, text: str) -> WalkState:
    """Return the walk after a command. An unknown command only sets the note."""
    word = text.strip()
    walk = replace(walk, note="", shows_tree=False)
    match _WORDS.get(word.lower()):
        case "next":
            return _moved(walk, walk.place + 1, "this is the last event")
        case "back":
            return _moved(walk, walk.place - 1, "this is the first event")
        case "first":
            return _moved(walk, 0)
        case "last":
            return _moved(walk, len(walk.steps) - 1)
        case "state" | "difference" | "both" as view:
            return replace(walk, view=view, scrolled=0)
        case "tree":
            return replace(walk, shows_tree=True, scrolled=0)
        case "up":
            return replace(walk, scrolled=max(0, walk.scrolled - 10))
        case "down":
            return replace(walk, scrolled=walk.scrolled + 10)
        case "quit":
            return replace(walk, is_over=True)
        case "help":
            return replace(walk, note=HELP)
        case _:
            return _jumped(walk, word)


def _jumped(walk: WalkState, word: str) -> WalkState:
    if match := _POSITION.fullmatch(word):
        position = int(match[1])
        places = [at for at, step in enumerate(walk.steps) if step.position <= position]
        if not places:
            return _moved(walk, 0, f"the run begins after position {position}")
        return _moved(walk, places[-1])
    if _NUMBER.fullmatch(word):
        places = [at for at, step in enumerate(walk.steps) if step.version == int(word)]
        last = walk.steps[-1].version
        why = f"there is no event {word}: events are {walk.steps[0].version} to {last}"
        return _moved(walk, places[0]) if places else replace(walk, note=why)
    name = word.lower().removeprefix("g").strip()
    for at, step in enumerate(walk.steps):
        earlier = walk.steps[at - 1].state.get("stage") if at else None
        if str(step.state.get("stage")).lower() == name != earlier:
            return _moved(walk, at)
    stages = dict.fromkeys(str(step.state.get("stage")) for step in walk.steps)
    return replace(
        walk, note=f"not a command or stage of this run ({', '.join(stages)}); ? shows commands"
    )


def _moved(walk: WalkState, place: int, at_end: str = "") -> WalkState:
    within = min(max(place, 0), len(walk.steps) - 1)
    note = at_end if within != place or (at_end.startswith("the run begins")) else ""
    return replace(walk, place=within, scrolled=0, note=note)


# Drawing


def walk_lines(walk: WalkState, cells: int, tree: Sequence[str] = ()) -> list[Line]:
    """Return the lines to show at the current step.

    Args:
        walk: The walk.
        cells: Width of the terminal; if it suffices, state and difference are side by side.
        tree: Other events of the tree since the preceding step.
    """
    here, first = walk.here, walk.steps[0]
    offset = format_offset(first.recorded_at, here.recorded_at)
    lines: list[Line] = [
        (
            (f"event {here.version} of {walk.steps[-1].version}  ", ""),
            (printable_line(here.type), "bold"),
            (f"  position {here.position}", ""),
        ),
        ((f"{format_instant(here.recorded_at)} {offset}  by {printable_line(here.actor)}", "dim"),),
        (),
    ]
    if walk.shows_tree:
        since = walk.before.position if walk.before is not None else 0
        lines.append(((f"other events of the tree, {since} to {here.position}", "bold"),))
        lines += [((text, ""),) for text in tree or ("none",)]
    elif walk.view == "both" and cells >= SIDE_BY_SIDE_CELLS_MIN:
        lines += _side_by_side(_state_lines(here), _difference_lines(here), cells)
    else:
        if walk.view != "difference":
            lines += _state_lines(here)
        if walk.view == "both":
            lines.append(())
        if walk.view != "state":
            lines += _difference_lines(here)
    return [_cut(line, cells) for line in lines]


def visible_lines(walk: WalkState, lines: Sequence[Line], rows: int) -> list[Line]:
    """Return the lines that fit on a screen of `rows` rows, always with the first three."""
    head, body = list(lines[:3]), list(lines[3:])
    room = max(1, rows - len(head) - 2)
    start = min(walk.scrolled, max(0, len(body) - room))
    shown = body[start : start + room]
    hidden = len(body) - start - len(shown)
    if hidden:
        shown[-1] = ((f"({hidden + 1} more lines: ↓)", "dim"),)
    return [*head, *shown]


def _state_lines(step: WalkStep) -> list[Line]:
    shown = {name: value for name, value in step.state.items() if not _is_empty(value)}
    width = max(map(len, shown), default=0)
    changed = {name for name, _, _ in step.changes}
    return [
        (("state", "bold"),),
        *(
            (
                (f"{printable_line(name):<{width}}  ", "yellow" if name in changed else ""),
                (_shown(value), "yellow" if name in changed else ""),
            )
            for name, value in shown.items()
        ),
    ]


def _difference_lines(step: WalkStep) -> list[Line]:
    lines: list[Line] = [(("difference", "bold"),)]
    # At the first event everything is new: empty values are not worth a line.
    changes = [
        (name, before, after)
        for name, before, after in step.changes
        if not _is_empty(before) or not _is_empty(after)
    ]
    for name, before, after in changes:
        lines.append(((printable_line(name), "yellow"),))
        if not _is_empty(before):
            lines.append(((f"  - {_shown(before)}", "red"),))
        if not _is_empty(after):
            lines.append(((f"  + {_shown(after)}", "green"),))
    return lines if changes else [*lines, (("none", ""),)]


def _is_empty(value: Any) -> bool:
    return value is None or value == [] or value == {}


def _shown(value: Any) -> str:
    return printable_line(text_of(value), VALUE_CHARACTERS_MAX)


def _side_by_side(left: Sequence[Line], right: Sequence[Line], cells: int) -> list[Line]:
    half = (cells - GAP_CELLS) // 2
    lines: list[Line] = []
    for at in range(max(len(left), len(right))):
        left_line = _cut(left[at], half) if at < len(left) else ()
        right_line = right[at] if at < len(right) else ()
        padding = " " * (half - _cells_of(left_line) + GAP_CELLS)
        lines.append((*left_line, (padding, ""), *right_line) if right_line else left_line)
    return lines


def _cells_of(line: Line) -> int:
    from rich.cells import cell_len

    return sum(cell_len(text) for text, _ in line)


def _cut(line: Line, cells: int) -> Line:
    """Return the line cut to this many cells, with `…` if it was cut."""
    from rich.cells import cell_len, set_cell_size

    if _cells_of(line) <= cells:
        return line
    cut: list[Segment] = []
    room = max(cells - 1, 0)
    for text, style in line:
        if cell_len(text) > room:
            cut.append((set_cell_size(text, room).rstrip() + ELLIPSIS, style))
            break
        cut.append((text, style))
        room -= cell_len(text)
    return tuple(cut)
