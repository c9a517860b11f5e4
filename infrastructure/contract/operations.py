"""What commands want of a server, its log and its scripts, and what they are told: flags, progress,
reports."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    # Help is shown without the types of the domain, which take longer to load than it all.
    from domain.run.facts import Cleanup


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The flags, None where none was given: then a variable, the file or the default speaks.

    `config` is the configuration file; a server without one keeps the active one of the log.
    `port` 0 picks a free port. A database URL may hold a password, so it is kept out of what is
    printed of this.
    """

    config: Path | None = None
    database_url: str | None = field(default=None, repr=False)
    data_dir: Path | None = None
    host: str | None = None
    port: int | None = None
    no_auth: bool | None = None
    no_page: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTrialOptions:
    """A spawn whose context scripts are tried; `requester` is a session's key in any spelling."""

    agent: str
    task: str
    requester: str
    label: str | None = None
    cleanup: "Cleanup | None" = None


OnVerifyProgress = Callable[[int, int, int], None]
"""Told the position behind which it began, the one up to which all is right, and the last one."""


def ignore_verify_progress(_began: int, _position: int, _last: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The flags. `head` is a position and a chain hash that were noted earlier, `state_file` where
    progress is noted when not in the data directory; `resume` goes on from there."""

    head: tuple[int, bytes] | None = None
    resume: bool = False
    state_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was found. `events` were looked at, behind position `began`; of the texts and
    transcripts beside them `contents` and `transcripts` were compared and `erased` are gone with
    their keys. `position` and `kind` are of the first difference and `difference` says what it is.
    `is_recorded` is whether the servers of the log tell of it."""

    head: str
    began: int
    events: int
    run_rows: int
    session_rows: int
    contents: int
    transcripts: int
    erased: int
    seconds: float
    position: int | None = None
    kind: str | None = None
    difference: str | None = None
    is_recorded: bool = True


TransferStep = Literal["events", "texts", "transcripts", "indexes", "rows"]
OnTransferProgress = Callable[[TransferStep, int, int, int], None]
"""Told what is being done, how much of it was done before, is done now and there is of it in all,
which is 0 where nobody knows."""


def ignore_transfer_progress(_step: TransferStep, _began: int, _done: int, _total: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The flags. Without `out` the lines go to standard output; `first` and `last` are positions,
    `tree` is the key of a root session."""

    out: Path | None = None
    first: int | None = None
    last: int | None = None
    tree: str | None = None
    contents: bool = False
    transcripts: bool = False
    resume: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What was written: events, of which `began` were in the file already, keys, texts and entries
    of transcripts; `head` is position and hash of the last event."""

    scope: str
    events: int
    began: int
    keys: int
    contents: int
    entries: int
    head: str
    sha256: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The flags. `without_texts` takes a file that holds neither texts nor transcripts: they read
    as erased."""

    file: Path
    without_texts: bool = False
    resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What was stored; `began` is how many of the events an import before this one had stored."""

    events: int
    began: int
    runs: int
    sessions: int
    contents: int
    entries: int
    head: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What was found in an exported file; `scope` is `log`, `range` or `tree`, None when its first
    line cannot be read. `line` and `position` are of the first fault and `fault` says what it is.
    """

    scope: str | None
    head: str
    events: int
    contents: int
    transcripts: int
    erased: int
    seconds: float
    line: int | None = None
    position: int | None = None
    fault: str | None = None


RebuildStep = Literal["events", "indexes", "comparison", "exchange"]


@dataclass(frozen=True, slots=True)
class RebuildProgress:
    """`done` of `total` events folded, or indexes made; `began` is how many of them were done
    before this process began, by a rebuild that was killed."""

    step: RebuildStep
    done: int
    total: int
    began: int = 0


OnProgress = Callable[[RebuildProgress], None]


def ignore_rebuild_progress(_: RebuildProgress) -> None:
    """Nobody wants to know."""
