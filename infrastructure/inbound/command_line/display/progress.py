"""Progress of rebuilds, verifications, transfers and searches, on stderr.

A terminal shows a bar, other outputs a line now and then.
"""

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
    "indexes": "creating indexes",
    "comparison": "comparing rows",
    "exchange": "swapping tables",
}
_OnStep = Callable[[str, RebuildProgress], None]
"""Callback with the name of the current step and its progress."""


@contextmanager
def show_rebuild_progress() -> Iterator[OnProgress]:
    """Show the progress of a rebuild until the end of the block."""
    with _display("") as show:
        yield lambda progress: show(_STEPS[progress.step], progress)


@contextmanager
def show_verify_progress() -> Iterator[OnVerifyProgress]:
    """Show the progress of a verification until the block ends. A short one prints nothing."""
    doing = "verifying events"
    with _display(doing) as show:
        yield lambda began, position, last: show(
            doing, RebuildProgress("events", position, last, began)
        )


_TRANSFER_STEPS: dict[TransferStep, str] = {
    "texts": "writing texts",
    "transcripts": "writing transcripts",
    "indexes": "creating indexes",
}


@contextmanager
def show_transfer_progress(doing: str) -> Iterator[OnTransferProgress]:
    """Show the progress of an export, an import or the verification of a file.

    A short one prints nothing. `doing` names the step for events, or for lines.
    """
    with _display(doing) as show:
        yield lambda step, began, done, total: show(
            _TRANSFER_STEPS.get(step, doing),
            RebuildProgress("indexes" if step == "indexes" else "events", done, total, began),
        )


@contextmanager
def show_search_progress() -> Iterator[OnVerifyProgress]:
    """Show the progress of a search until the end of the block. A short one prints nothing."""
    doing = "searching events"
    with _display(doing) as show:
        yield lambda began, position, last: show(
            doing, RebuildProgress("events", position, last, began)
        )


@contextmanager
def _display(doing: str) -> Iterator[_OnStep]:
    """Show progress. `doing` is the step at the beginning, which is not printed as a new one."""
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
    """Progress as lines: one at each new step, and one every few seconds in between."""

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
    """Rate since the first report; work that was done before does not count."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def described(self, progress: RebuildProgress) -> str:
        """Return done and total; for events also the rate per second."""
        if progress.total <= 1:
            return ""
        count = f"{progress.done:,} of {progress.total:,}"
        seconds = time.monotonic() - self._began
        if progress.step != "events" or seconds < 0.5:
            return count
        return f"{count}, {(progress.done - progress.began) / seconds:,.0f} a second"
