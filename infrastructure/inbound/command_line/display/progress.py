"""How far a rebuild is: a bar on a terminal, a line now and then elsewhere. Both on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from infrastructure.contract.orders import (
    OnProgress,
    OnVerifyProgress,
    RebuildProgress,
    RebuildStep,
)
from infrastructure.inbound.command_line.display.output import print_note

REBUILD_LINE_SECONDS = 5.0
_STEPS: dict[RebuildStep, str] = {
    "events": "folding events",
    "indexes": "making indexes",
    "comparison": "comparing rows",
    "exchange": "swapping tables",
}


@contextmanager
def show_rebuild_progress() -> Iterator[OnProgress]:
    """Shows what it is told until the end of the block."""
    if sys.stderr.isatty():
        with _rebuild_bar() as tell:
            yield tell
    else:
        yield _RebuildLines()


@contextmanager
def _rebuild_bar() -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task("", total=None, count="")
        rate = _RebuildRate()

        def tell(told: RebuildProgress) -> None:
            progress.update(
                task,
                description=_STEPS[told.step],
                completed=told.done,
                total=told.total if told.total > 1 else None,
                count=rate.described(told),
            )

        yield tell


class _RebuildLines:
    """A line at each new step, and every few seconds in between."""

    def __init__(self) -> None:
        self._step: RebuildStep | None = None
        self._told = 0.0
        self._rate = _RebuildRate()

    def __call__(self, told: RebuildProgress) -> None:
        described = self._rate.described(told)
        now = time.monotonic()
        if told.step == self._step and now - self._told < REBUILD_LINE_SECONDS:
            return
        self._step, self._told = told.step, now
        print_note(f"{_STEPS[told.step]} {described}".rstrip())


class _RebuildRate:
    """Counts from the first word it hears, so that what was done before does not flatter it."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def described(self, told: RebuildProgress) -> str:
        """How much of how much, and for events how many a second."""
        if told.total <= 1:
            return ""
        count = f"{told.done:,} of {told.total:,}"
        seconds = time.monotonic() - self._began
        if told.step != "events" or seconds < 0.5:
            return count
        return f"{count}, {(told.done - told.began) / seconds:,.0f} a second"


# How far a verification is: a bar on a terminal, a line now and then elsewhere. On stderr.


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
