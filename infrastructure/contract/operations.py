"""Options, progress and reports of commands on a server, its log and its scripts."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from application.ports.verifications import Difference
from infrastructure.contract.errors import FileContentError

if TYPE_CHECKING:
    # Help is printed without the types of the domain, which take longer to load than the rest.
    from domain.run.facts import Cleanup


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Options of a server. None means the environment variable, the file or the default.

    `config` is the configuration file; without one the active configuration of the log stays in
    force. `port` 0 picks a free port. `database_url` may hold a password, so it is left out of the
    repr.
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
    """A spawn whose context scripts are tried. `requester` is a session key in any spelling."""

    agent: str
    task: str
    requester: str
    label: str | None = None
    cleanup: "Cleanup | None" = None


OnVerifyProgress = Callable[[int, int, int], None]
"""Callback with three positions: where the verification began, how far it is, and the last one."""


def ignore_verify_progress(_began: int, _position: int, _last: int) -> None:
    """Do nothing with the progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """Options of a verification.

    Attributes:
        head: Position and chain hash that an earlier verification printed.
        resume: True continues after the progress in `state_file`.
        state_file: File for the progress. Default: a file in the data directory.
    """

    head: tuple[int, bytes] | None = None
    resume: bool = False
    state_file: Path | None = None


@dataclass(slots=True)
class VerifiedCounts:
    """Numbers of rows, texts and transcripts that a verification compared.

    `erased` counts texts and transcripts that were erased with their keys.
    """

    run_rows: int = 0
    session_rows: int = 0
    contents: int = 0
    transcripts: int = 0
    erased: int = 0

    def __add__(self, other: "VerifiedCounts") -> "VerifiedCounts":
        return VerifiedCounts(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """Result of a verification.

    Attributes:
        head: Position and chain hash of the last event.
        began: Position after which it began.
        events: Number of verified events.
        difference: The first difference, or None.
        is_recorded: True if the servers of the log show this verification.
    """

    head: str
    began: int
    events: int
    counts: VerifiedCounts
    seconds: float
    difference: Difference | None = None
    is_recorded: bool = True


TransferStep = Literal["events", "texts", "transcripts", "indexes"]
OnTransferProgress = Callable[[TransferStep, int, int, int], None]
"""Callback with the step, and the amount done before, the amount done now, and the total.

The total is 0 if it is unknown.
"""


def ignore_transfer_progress(_step: TransferStep, _began: int, _done: int, _total: int) -> None:
    """Do nothing with the progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        out: File to write. None means standard output.
        first: First position.
        last: Last position.
        tree: Key of a root session, to export only its tree.
        contents: True includes texts and their keys.
        transcripts: True includes the entries of transcripts.
        resume: True continues an interrupted export.
        force: True replaces the file.
    """

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
    """Numbers of events, keys, texts and transcript entries in an exported file.

    `began` events were in the file already. `head` is the position and hash of the last event.
    """

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
    """Options of an import.

    `without_texts` accepts a file without texts and transcripts; they read as erased.
    """

    file: Path
    without_texts: bool = False
    resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """Numbers of stored items. `began` events were stored by an earlier, interrupted import."""

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
    """Findings in an exported file, up to the first fault.

    `scope` is `log`, `range` or `tree`, or None if the first line cannot be read.
    """

    scope: str | None = None
    events: int = 0
    last_position: int = 0
    chain_hash: bytes = b""
    counts: VerifiedCounts = field(default_factory=VerifiedCounts)
    seconds: float = 0.0
    fault: FileContentError | None = None

    @property
    def head(self) -> str:
        """Return position and hash of the last event, in the form of `log verify --head`."""
        return f"{self.last_position}:{self.chain_hash.hex()}"


RebuildStep = Literal["events", "indexes", "comparison", "exchange"]


@dataclass(frozen=True, slots=True)
class RebuildProgress:
    """Progress of a rebuild: `done` of `total` events folded, or indexes created.

    `began` of them were done by an earlier process that was interrupted.
    """

    step: RebuildStep
    done: int
    total: int
    began: int = 0


OnProgress = Callable[[RebuildProgress], None]


def ignore_rebuild_progress(_: RebuildProgress) -> None:
    """Do nothing with the progress."""
