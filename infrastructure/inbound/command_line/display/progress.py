"""How far a rebuild, a verification or a search is: a bar on a terminal, a line now and then
elsewhere. Both on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from infrastructure.contract.operations import (
    OnProgress,
    OnTransferProgress,
    OnVerifyProgress,
    RebuildProgress,
    RebuildStep,
    TransferStep,
)
from infrastructure.inbound.command_line.display.output import print_note

LINE_SECONDS = 5.0
_STEPS: dict[RebuildStep, str] = {
    "events": "folding events",
    "indexes": "making indexes",
    "comparison": "comparing rows",
    "exchange": "swapping tables",
}
_OnStep = Callable[[str, RebuildProgress], None]
"""Told what is done now, in words, and how far that is."""


@contextmanager
def show_rebuild_progress() -> Iterator[OnProgress]:
    """Shows how far a rebuild is until the end of the block."""
    with _display("") as show:
        yield lambda progress: show(_STEPS[progress.step], progress)


@contextmanager
def show_verify_progress() -> Iterator[OnVerifyProgress]:
    """Shows how far a verification is until the end of the block; a short one says nothing."""
    doing = "verifying events"
    with _display(doing) as show:
        yield lambda began, position, last: show(
            doing, RebuildProgress("events", position, last, began)
        )


_TRANSFER_STEPS: dict[TransferStep, str] = {
    "texts": "writing texts",
    "transcripts": "writing transcripts",
    "indexes": "making indexes",
}


@contextmanager
def show_transfer_progress(doing: str) -> Iterator[OnTransferProgress]:
    """Shows how far an export, an import or the verification of a file is; a short one says
    nothing. `doing` is what is done with the events, or the lines."""
    with _display(doing) as show:
        yield lambda step, began, done, total: show(
            _TRANSFER_STEPS.get(step, doing),
            RebuildProgress("indexes" if step == "indexes" else "events", done, total, began),
        )


@contextmanager
def show_search_progress() -> Iterator[OnVerifyProgress]:
    """Shows how far a search is until the end of the block; a short one says nothing."""
    doing = "searching events"
    with _display(doing) as show:
        yield lambda began, position, last: show(
            doing, RebuildProgress("events", position, last, began)
        )


@contextmanager
def _display(doing: str) -> Iterator[_OnStep]:
    """`doing` is what is done from the beginning, so that it is no step that begins."""
    if sys.stderr.isatty():
        with _bar(doing) as show:
            yield show
    else:
        yield _Lines(doing)


@contextmanager
def _bar(doing: str) -> Iterator[_OnStep]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(doing, total=None, count="")
        rate = _Rate()

        def show(doing: str, progress: RebuildProgress) -> None:
            total = progress.total if progress.total > 1 else None
            count = rate.described(progress)
            bar.update(task, description=doing, completed=progress.done, total=total, count=count)

        yield show


class _Lines:
    """A line at each new step, and every few seconds in between."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._printed_at = time.monotonic()
        self._rate = _Rate()

    def __call__(self, doing: str, progress: RebuildProgress) -> None:
        count = self._rate.described(progress)
        now = time.monotonic()
        if doing == self._doing and now - self._printed_at < LINE_SECONDS:
            return
        self._doing, self._printed_at = doing, now
        print_note(f"{doing} {count}".rstrip())


class _Rate:
    """Counts from the first word it hears, so that what was done before does not flatter it."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def described(self, progress: RebuildProgress) -> str:
        """How much of how much, and for events how many a second."""
        if progress.total <= 1:
            return ""
        count = f"{progress.done:,} of {progress.total:,}"
        seconds = time.monotonic() - self._began
        if progress.step != "events" or seconds < 0.5:
            return count
        return f"{count}, {(progress.done - progress.began) / seconds:,.0f} a second"
