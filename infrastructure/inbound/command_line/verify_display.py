"""How far a verification is: a bar on a terminal, a line now and then elsewhere. On stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from infrastructure.inbound.command_line.display.output import print_note
from infrastructure.verify_order import OnVerifyProgress

VERIFY_LINE_SECONDS = 5.0


@contextmanager
def show_verify_progress() -> Iterator[OnVerifyProgress]:
    """Shows what it is told until the end of the block."""
    if sys.stderr.isatty():
        with _verify_bar() as tell:
            yield tell
    else:
        yield _VerifyLines()


@contextmanager
def _verify_bar() -> Iterator[OnVerifyProgress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task("looking at head and rows", total=None, rate="")
        rate = _VerifyRate()

        def tell(began: int, position: int, last: int) -> None:
            progress.update(
                task,
                description="verifying events",
                completed=position,
                total=last,
                rate=rate.described(began, position),
            )

        yield tell


class _VerifyLines:
    """A line every few seconds; a short verification says nothing."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._rate = _VerifyRate()

    def __call__(self, began: int, position: int, last: int) -> None:
        described = self._rate.described(began, position)
        if time.monotonic() - self._told >= VERIFY_LINE_SECONDS:
            self._told = time.monotonic()
            print_note(f"verified to position {position:,} of {last:,} {described}".rstrip())


class _VerifyRate:
    """Events a second since the first word, so that what was done before does not flatter it."""

    def __init__(self) -> None:
        self._began: float | None = None

    def described(self, began: int, position: int) -> str:
        """How many events a second; nothing before there is something to count."""
        if self._began is None:
            self._began = time.monotonic()
            return ""
        seconds = time.monotonic() - self._began
        return f"{(position - began) / seconds:,.0f} a second" if seconds > 0 else ""
