"""`spawnlog log head`, `log rebuild`, `log verify`, `log export` and `log import`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from infrastructure.contract.errors import UnknownNameError
from infrastructure.contract.operations import (
    ExportOptions,
    ExportReport,
    ImportOptions,
    ImportReport,
    ServeOptions,
    VerifiedCounts,
    VerifyOptions,
    VerifyReport,
)
from infrastructure.inbound.command_line.client.global_options import OutputOption
from infrastructure.inbound.command_line.client.options import HomeOptions
from infrastructure.inbound.command_line.display.failures import (
    CommandError,
    FailedRunError,
    ResourceNotFoundError,
)
from infrastructure.inbound.command_line.display.output import print_note, print_object
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.progress import (
    show_rebuild_progress,
    show_transfer_progress,
    show_verify_progress,
)


def rebuild_log(home: HomeOptions, output: OutputOption = Output.TABLE) -> None:
    """Rebuild the read tables from the events.

    Exit status 1 if the tables differed from the events. Servers keep reading and writing
    meanwhile. An interrupted rebuild resumes where it stopped.
    """
    from infrastructure.server.operations import rebuild

    options = home.serve_options()
    with show_rebuild_progress() as on_progress:
        report = rebuild(options, on_progress)
    facts = {
        "events": report.events,
        "runs": report.runs,
        "sessions": report.sessions,
        "seconds": round(report.seconds, 3),
        "identical": report.identical,
        "differing": report.differing,
    }
    if not print_object(facts, output):
        print(
            f"{report.events} events gave {report.runs} runs and {report.sessions} sessions "
            f"in {report.seconds:.2f} s"
        )
        if report.identical:
            print("the tables already matched the events")
    if not report.identical:
        raise FailedRunError(
            f"{report.differing} rows differed from the events; they are corrected"
        )


HASH_BYTES = 32
POSITION_MAX = 2**62
NotedHeadOption = Annotated[
    str | None,
    typer.Option(
        "--head",
        metavar="POSITION:HASH",
        help="Head that an earlier verification printed; the log must still contain it.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue after the last position that was verified."),
]
StateFile = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="File for the progress. Default: log-verify.json in the data directory.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Same as --output json.")]


ExportedFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="File written by `log export`, verified without a server or a database.",
        show_default=False,
    ),
]


def verify_log(
    file: ExportedFile = None,
    head: NotedHeadOption = None,
    resume: Resume = False,
    state: StateFile = None,
    output: OutputOption = Output.TABLE,
    as_json: JsonOption = False,
    *,
    home: HomeOptions,
) -> None:
    """Verify the log, or a file of `log export`.

    Checks the hash chain of the log, then its texts and read tables against the events. A file is
    checked against its own chain, seal and keys.

    Exit status 1 at the first difference, which is printed with its position. Servers keep running
    meanwhile.
    """
    if file is not None:
        if head or resume or state or home != HomeOptions():
            raise CommandError("FILE needs no server: give no other option than --output")
        _verify_file(file, Output.JSON if as_json else output)
        return
    verify_options = VerifyOptions(
        head=_parse_noted_head(head) if head is not None else None, resume=resume, state_file=state
    )
    options = home.serve_options()
    report = _run_verification(options, verify_options)
    if not print_object(_report_json(report), Output.JSON if as_json else output):
        _print_report(report)
    if not report.is_recorded:
        print_note("servers will not show this verification: the database could not store it")
    if report.difference is not None:
        raise FailedRunError(str(report.difference))


def _run_verification(options: ServeOptions, verify_options: VerifyOptions) -> VerifyReport:
    from infrastructure.server.operations import verify

    with _resumable(), show_verify_progress() as on_progress:
        return verify(options, verify_options, on_progress)


@contextmanager
def _resumable() -> Iterator[None]:
    """Report Ctrl-C as a failure that recommends --resume."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError("interrupted; continue with --resume") from None


def _pace(events: int, seconds: float, unit: str = "") -> str:
    """Return a duration, and the rate per second."""
    rate = events / seconds if seconds > 0 else 0.0
    return f"{seconds:.2f} s ({rate:,.0f} {unit}a second)"


def _counts_text(report: ExportReport | ImportReport) -> str:
    return (
        f"{report.events:,} events, {report.contents:,} texts and {report.entries:,} entries of"
        " transcripts"
    )


def _parse_noted_head(text: str) -> tuple[int, bytes]:
    position, _, digest = text.strip().partition(":")
    try:
        chain_hash = bytes.fromhex(digest)
    except ValueError:
        chain_hash = b""
    is_position = position.isascii() and position.isdecimal() and len(position) <= len(str(2**62))
    if not is_position or int(position) < 1 or len(chain_hash) != HASH_BYTES:
        raise CommandError(
            "--head takes a position and a hash of 64 hexadecimal digits, such as 18342:9f2c…"
        )
    return int(position), chain_hash


def _report_json(report: VerifyReport) -> dict[str, object]:
    difference = report.difference
    return {
        "ok": difference is None,
        "head": report.head,
        "began": report.began,
        "events": report.events,
        "runRows": report.counts.run_rows,
        "sessionRows": report.counts.session_rows,
        **_texts_json(report.counts),
        "seconds": round(report.seconds, 3),
        "difference": {
            "position": difference.position,
            "kind": difference.kind,
            "text": str(difference),
        }
        if difference is not None
        else None,
    }


def _texts_json(counts: VerifiedCounts) -> dict[str, int]:
    return {
        "contents": counts.contents,
        "transcripts": counts.transcripts,
        "erased": counts.erased,
    }


def _print_report(report: VerifyReport) -> None:
    since = f" after position {report.began}" if report.began else ""
    pace = _pace(report.events, report.seconds)
    print(f"{report.events:,} events{since} are valid, verified in {pace}")
    counts = report.counts
    print(
        f"checked {counts.run_rows:,} rows of runs, {counts.session_rows:,} of sessions, "
        f"{counts.contents:,} texts and {counts.transcripts:,} transcripts; "
        f"{counts.erased:,} erased with their keys"
    )
    if report.difference is None:
        print("no differences; keep this head to check the log against it later (--head):")
        print(report.head)


def _verify_file(file: Path, output: Output) -> None:
    from infrastructure.server.operations import verify_exported

    with show_transfer_progress("verifying events") as on_progress:
        report = verify_exported(file, on_progress)
    fault, counts = report.fault, report.counts
    if fault is not None and report.scope is None:
        raise CommandError(f"{printable_line(file)} is not from `spawnlog log export`: {fault}")
    facts = {
        "ok": fault is None,
        "scope": report.scope,
        "head": report.head,
        "events": report.events,
        **_texts_json(counts),
        "seconds": round(report.seconds, 3),
        "difference": {"line": fault.line, "position": fault.position, "text": str(fault)}
        if fault is not None
        else None,
    }
    if not print_object(facts, output):
        print(
            f"{report.events:,} events are valid, verified in"
            f" {_pace(report.events, report.seconds)}; {counts.contents:,} texts and"
            f" {counts.transcripts:,} transcripts; {counts.erased:,} erased or not in the file"
        )
        if fault is None:
            print(_FILE_VERDICTS[report.scope or "log"])
            print(report.head)
    if fault is not None:
        raise FailedRunError(str(fault))


_FILE_VERDICTS = {
    "log": "no differences; the head of the log in the file:",
    "range": "no differences, starting from the chain hash in the first line; the last event:",
    "tree": "each event matches its own hash; the export of one tree cannot prove that no events"
    " are missing between them; the last event:",
}


@dataclass(frozen=True, slots=True)
class ExportFlags:
    """Options of `log export`: the range, the contents and the destination."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="File to write; it must not exist. Default: standard output.",
            show_default=False,
        ),
    ] = None
    first: Annotated[
        int | None,
        typer.Option("--from", metavar="POSITION", min=1, help="First position. Default: 1."),
    ] = None
    last: Annotated[
        int | None,
        typer.Option("--to", metavar="POSITION", min=1, help="Last position. Default: the head."),
    ] = None
    tree: Annotated[
        str | None,
        typer.Option(
            "--tree",
            metavar="KEY",
            help="Only the events of one tree, by the full key of its root session.",
            show_default=False,
        ),
    ] = None
    contents: Annotated[
        bool,
        typer.Option(
            "--contents",
            help="Include texts, and the keys that prove them. Keep such a file secret.",
        ),
    ] = False
    transcripts: Annotated[bool, typer.Option("--transcripts", help="Include transcripts.")] = False
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted export.")] = (
        False
    )
    force: Annotated[bool, typer.Option("--force", help="Replace the file and start over.")] = False


def export_events(
    flags: ExportFlags, output: OutputOption = Output.TABLE, *, home: HomeOptions
) -> None:
    """Export the log as lines of CloudEvents.

    The export is one snapshot; servers keep running meanwhile.

    The file is called FILE.part until it is complete. Only a file with --contents --transcripts can
    be imported as it is.
    """
    from infrastructure.server.operations import export_to_file

    if flags.resume and flags.force:
        raise CommandError("--resume continues and --force starts over: give one of them")
    # No log is longer, and the database has no larger integer.
    first, last = (
        position and min(position, POSITION_MAX) for position in (flags.first, flags.last)
    )
    export_options = ExportOptions(**{**asdict(flags), "first": first, "last": last})
    try:
        with _resumable(), show_transfer_progress("exporting events") as on_progress:
            report = export_to_file(home.serve_options(), export_options, on_progress)
    except UnknownNameError as error:
        raise ResourceNotFoundError(str(error)) from error
    facts = {
        "scope": report.scope,
        "events": report.events,
        "began": report.began,
        "contents": report.contents,
        "transcriptEntries": report.entries,
        "head": report.head,
        "sha256": report.sha256,
        "seconds": round(report.seconds, 3),
    }
    pace = _pace(report.events - report.began, report.seconds, "events ")
    text = f"{_counts_text(report)} in {pace}"
    if flags.out is None:
        print_note(text)
    elif not print_object(facts, output):
        print(f"{text}; the last event:\n{report.head}")


def import_events(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="File written by `log export --contents --transcripts`.",
            show_default=False,
        ),
    ],
    without_texts: Annotated[
        bool,
        typer.Option(
            "--without-texts",
            help="Accept a file without texts and transcripts: all of them read as erased.",
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted import.")
    ] = False,
    output: OutputOption = Output.TABLE,
    *,
    home: HomeOptions,
) -> None:
    """Import an exported log into an empty one.

    The copy has the same rows, the same chain and the same log id.

    Errors in the file are found before any of it is visible. Stop the servers of the log before you
    serve the copy: both would run its unfinished work.
    """
    from infrastructure.server.operations import import_from_file

    import_options = ImportOptions(file=file, without_texts=without_texts, resume=resume)
    with _resumable(), show_transfer_progress("importing lines") as on_progress:
        report = import_from_file(home.serve_options(), import_options, on_progress)
    facts = {
        "events": report.events,
        "began": report.began,
        "runs": report.runs,
        "sessions": report.sessions,
        "contents": report.contents,
        "transcriptEntries": report.entries,
        "head": report.head,
        "seconds": round(report.seconds, 3),
    }
    if not print_object(facts, output):
        pace = _pace(report.events, report.seconds, "events ")
        print(
            f"{_counts_text(report)} gave {report.runs:,} runs and {report.sessions:,} sessions in"
            f" {pace}; the head of the log:\n{report.head}"
        )
