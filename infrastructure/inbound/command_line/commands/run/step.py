"""`spawnlog run step`: steps through the states of a run, by keys or by lines of input."""

import os
import select
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import ApiOptions, AsOfOption, RunName
from infrastructure.inbound.command_line.display.event_line import event_facts
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output import JsonObject, print_object
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.walk import (
    HELP,
    Line,
    WalkState,
    follow_command,
    visible_lines,
    walk_lines,
    walk_of,
)
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

EVENTS_MAX = 10_000
OTHERS_SHOWN_MAX = 100
OTHERS_PAGES_MAX = 5
LOOK_SECONDS = 0.25
"""Seconds between two checks of the terminal's size."""
LINE_CHARACTERS_MAX = 100
NARROW_CELLS = 80
INTERRUPTED = 130
_KEYS = {
    b"\x1b[C": "next",
    b"\x1b[D": "back",
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1bOC": "next",
    b"\x1bOD": "back",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1b[H": "first",
    b"\x1b[F": "last",
    b"\r": "next",
    b"\n": "next",
    b" ": "next",
    b"?": "help",
    b"$": "last",
    b"\x04": "quit",
}
_AT_ONCE = "nbsdtqh"
_LINE_BEGINS = "g:0123456789"
TreeLines = Callable[[WalkState], Sequence[str]]


def step_run(name: RunName, at: AsOfOption = None, *, api: ApiOptions) -> None:
    """Step through the states of a run.

    `n` or Enter shows the next state, `b` the previous one, `s` the whole state, `d` the
    difference, `t` the other events of its tree; `q` quits. A version, a stage or `g POSITION`
    jumps there. Without a terminal, commands are read from standard input, one per line.
    """
    with api.client() as client:
        run = find_run(client, name)
        path = path_of("runs", run.run_id, "history")
        listing = client.items(path, {"at": at}, limit=EVENTS_MAX)
        walk = walk_of(listing.items)
        others = _TreeEvents(client, run.run_id)
        is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and api.output is Output.TABLE
        if is_terminal:
            _walk_by_keys(walk, others.lines)
        else:
            _walk_by_lines(walk, others.lines, api.output)


class _TreeEvents:
    """Events of other streams of the run's tree between two events of the run."""

    def __init__(self, client: "CommandClient", run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._root: str | None = None
        self._known: dict[int, Sequence[str]] = {}

    def lines(self, walk: WalkState) -> Sequence[str]:
        """Return a line for each of these events since the preceding step; without any, the
        reason."""
        position = walk.here.position
        if position not in self._known:
            try:
                self._known[position] = self._read(walk)
            except CommandError as failure:
                return (f"cannot be shown: {printable_line(failure.message)}",)
        return self._known[position]

    def _read(self, walk: WalkState) -> list[str]:
        if walk.before is None:
            return []
        after, until = walk.before.position, walk.here.position
        lines: list[str] = []
        for _ in range(OTHERS_PAGES_MAX):
            query: dict[str, str | int | None] = {
                "tree": self._tree(walk),
                "after": after,
                "limit": OTHERS_SHOWN_MAX,
            }
            page = self._client.get("/v1/events", query).value
            for event in page.get("items") or ():
                if int(event["position"]) >= until:
                    return lines
                if event.get("stream") != f"run:{self._run_id}":
                    lines.append(_event_text(event))
                if len(lines) == OTHERS_SHOWN_MAX:
                    return [*lines, "… and more: spawnlog event list --tree"]
            after = int(page["nextAfter"])
            if after >= until - 1:
                return lines
        return [*lines, "… and maybe more: spawnlog event list --tree"]

    def _tree(self, walk: WalkState) -> str:
        if self._root is None:
            requester = str(walk.here.state["requesterSessionKey"])
            session = self._client.get(path_of("sessions", requester)).value
            self._root = str(session["rootSessionKey"])
        return self._root


def _event_text(event: JsonObject) -> str:
    who = printable_line(event.get("stream"), 60)
    kind, facts = printable_line(event.get("type")), event_facts(event)
    return f"{event.get('position'):>8}  {kind}  {who}  {facts}".rstrip()


# By lines.


def _walk_by_lines(walk: WalkState, others: TreeLines, output: Output) -> None:
    _print_walk(walk, others, output)
    for text in sys.stdin:
        walk = follow_command(walk, text[:LINE_CHARACTERS_MAX])
        if walk.is_over:
            return
        _print_walk(walk, others, output)


def _print_walk(walk: WalkState, others: TreeLines, output: Output) -> None:
    here = walk.here
    tree = list(others(walk)) if walk.shows_tree else None
    shown: dict[str, Any] = {
        "version": here.version,
        "position": here.position,
        "type": here.type,
        "recordedAt": here.recorded_at,
        "state": here.state,
        "changes": [
            {"field": name, "before": before, "after": after}
            for name, before, after in here.changes
        ],
        "tree": tree,
        "note": walk.note or None,
    }
    if print_object(shown, output):
        return
    cells = shutil.get_terminal_size((NARROW_CELLS, 24)).columns
    for line in walk_lines(walk, cells, tree or ()):
        print("".join(text for text, _ in line).rstrip())
    if walk.note:
        print(f"({printable_line(walk.note)})")
    print(flush=True)


# By keys.


def _walk_by_keys(walk: WalkState, others: TreeLines) -> None:
    # SIGTERM and SIGHUP end the process by an exception, so that the terminal is restored.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        with _raw_terminal() as descriptor:
            _pump(walk, others, descriptor)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _raw_terminal() -> Iterator[int]:
    """Deliver keys one by one without echo, on the alternate screen; restore both at the end."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        keys = termios.tcgetattr(descriptor)
        # These keys would suspend or end the process without restoring the screen.
        keys[6][termios.VSUSP] = keys[6][termios.VQUIT] = b"\0"
        termios.tcsetattr(descriptor, termios.TCSADRAIN, keys)
        _write("\x1b[?1049h\x1b[?25l")
        yield descriptor
    finally:
        _write("\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _pump(walk: WalkState, others: TreeLines, descriptor: int) -> None:
    typed: str | None = None
    drawn: tuple[object, ...] = ()
    while not walk.is_over:
        size = shutil.get_terminal_size()
        if drawn != (walk, typed, size):
            _draw(walk, others, typed, size)
            drawn = (walk, typed, size)
        if not select.select([descriptor], [], [], LOOK_SECONDS)[0]:
            continue
        pressed = os.read(descriptor, 64)
        if not pressed:
            return
        for key in _keys(pressed):
            typed, command = _typed(typed, key)
            if command is not None:
                walk = follow_command(walk, command)


def _keys(pressed: bytes) -> Iterator[bytes]:
    """Split the bytes of one read into keys; a key may be several bytes."""
    while pressed:
        length = next((len(key) for key in _KEYS if pressed.startswith(key)), 1)
        if pressed[0] == 0x1B and length == 1:
            # Escape alone, or an unknown sequence: taken as one key.
            yield b"\x1b"
            return
        yield pressed[:length]
        pressed = pressed[length:]


def _typed(typed: str | None, key: bytes) -> tuple[str | None, str | None]:
    """Return the typed line after a key (None if there is none), and a completed command."""
    letter = key.decode("ascii", "ignore")
    if typed is not None:
        if key in (b"\r", b"\n"):
            return None, typed.removeprefix(":")
        if key in (b"\x7f", b"\x08"):
            return (typed[:-1] or None), None
        if key == b"\x1b":
            return None, None
        if letter.isprintable():
            return (typed + letter)[:LINE_CHARACTERS_MAX], None
        return typed, None
    if letter and letter in _LINE_BEGINS:
        return letter, None
    if letter and letter in _AT_ONCE:
        return None, letter
    return None, _KEYS.get(key)


def _draw(walk: WalkState, others: TreeLines, typed: str | None, size: os.terminal_size) -> None:
    from rich.console import Console
    from rich.text import Text

    tree = others(walk) if walk.shows_tree else ()
    lines = visible_lines(walk, walk_lines(walk, size.columns, tree), size.lines)
    foot = typed if typed is not None else walk.note or HELP
    last: Line = ((printable_line(foot, max(2, size.columns - 1)), "dim"),)
    _write("\x1b[H\x1b[2J")
    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    for line in (*lines, ()):
        console.print(Text.assemble(*line), soft_wrap=True)
    console.print(Text.assemble(*last), soft_wrap=True, end="")
