"""How far a verification is: a bar on a terminal, a line now and then elsewhere. On stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from infrastructure.inbound.command_line.rendering import note
from infrastructure.verify_order import OnVerified

TELL_SECONDS = 5.0


@contextmanager
def shown_progress() -> Iterator[OnVerified]:
    """Shows what it is told until the end of the block."""
    if sys.stderr.isatty():
        with _bar() as tell:
            yield tell
    else:
        yield _Lines()


@contextmanager
def _bar() -> Iterator[OnVerified]:
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
        rate = _Rate()

        def tell(began: int, position: int, last: int) -> None:
            progress.update(
                task,
                description="verifying events",
                completed=position,
                total=last,
                rate=rate.described(began, position),
            )

        yield tell


class _Lines:
    """A line every few seconds; a short verification says nothing."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._rate = _Rate()

    def __call__(self, began: int, position: int, last: int) -> None:
        described = self._rate.described(began, position)
        if time.monotonic() - self._told >= TELL_SECONDS:
            self._told = time.monotonic()
            note(f"verified to position {position:,} of {last:,} {described}".rstrip())


class _Rate:
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
