"""What commands want of a server, its log and its scripts, and what they are told: flags, progress,
reports."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from application.ports.verifications import Difference
from infrastructure.contract.errors import FileFault

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


@dataclass(slots=True)
class VerifiedCounts:
    """How many rows, texts and transcripts a verification compared; `erased` counts texts and
    transcripts that are gone with their keys."""

    run_rows: int = 0
    session_rows: int = 0
    contents: int = 0
    transcripts: int = 0
    erased: int = 0

    def __add__(self, other: "VerifiedCounts") -> "VerifiedCounts":
        return VerifiedCounts(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was found. `events` were looked at, behind position `began`; `difference` is the first
    difference. `is_recorded` is whether the servers of the log tell of it."""

    head: str
    began: int
    events: int
    counts: VerifiedCounts
    seconds: float
    difference: Difference | None = None
    is_recorded: bool = True


TransferStep = Literal["events", "texts", "transcripts", "indexes"]
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


@dataclass(slots=True)
class FileFindings:
    """What was found in an exported file up to the first fault, if there is one; `scope` is `log`,
    `range` or `tree`, None if its first line cannot be read."""

    scope: str | None = None
    events: int = 0
    last_position: int = 0
    chain_hash: bytes = b""
    counts: VerifiedCounts = field(default_factory=VerifiedCounts)
    seconds: float = 0.0
    fault: FileFault | None = None

    @property
    def head(self) -> str:
        """Position and hash of the last event, as `log verify --head` takes them."""
        return f"{self.last_position}:{self.chain_hash.hex()}"


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
