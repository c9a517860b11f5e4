"""`spawnlog log head`, `log rebuild`, `log verify`, `log export` and `log import`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from infrastructure.contract.errors import NameUnknown
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
from infrastructure.inbound.command_line.display.failures import CommandFailed, NotFound, RunFailed
from infrastructure.inbound.command_line.display.output import print_note, print_object
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.progress import (
    show_rebuild_progress,
    show_transfer_progress,
    show_verify_progress,
)


def rebuild_log(home: HomeOptions, output: OutputOption = Output.TABLE) -> None:
    """Make the read tables anew from the events. Exits with 1 when they were not the same.

    Servers go on reading and writing meanwhile. One that was interrupted goes on where it was.
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
            print("the tables are identical to what they were")
    if not report.identical:
        raise RunFailed(f"{report.differing} rows were not what the events say; now the tables are")


HASH_BYTES = 32
POSITION_MAX = 2**62
NotedHeadOption = Annotated[
    str | None,
    typer.Option(
        "--head",
        metavar="POSITION:HASH",
        help="A head noted earlier, as this command prints it: the log must still have it.",
        show_default=False,
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on behind what the last verification found to be right."),
]
StateFile = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="Where progress is noted. Without: log-verify.json in the data directory.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --output json.")]


ExportedFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="A file of `log export`, verified without a server or a database.",
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

    The log is compared with its chain of hashes, and texts and read tables with the log; a file
    with its own chain, seal and keys.

    Exits with 1 at the first difference and names its position. Servers go on meanwhile.
    """
    if file is not None:
        if head or resume or state or home != HomeOptions():
            raise CommandFailed("a file is verified by itself; give no other flags than --output")
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
        print_note("servers do not tell of this verification: the database takes no record of it")
    if report.difference is not None:
        raise RunFailed(str(report.difference))


def _run_verification(options: ServeOptions, verify_options: VerifyOptions) -> VerifyReport:
    from infrastructure.server.operations import verify

    with _resumable(), show_verify_progress() as on_progress:
        return verify(options, verify_options, on_progress)


@contextmanager
def _resumable() -> Iterator[None]:
    """What goes on where it was when it is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandFailed("interrupted before the end; go on with --resume") from None


def _pace(events: int, seconds: float, unit: str = "") -> str:
    """How long events took, and how many that was a second."""
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
    right = position.isascii() and position.isdecimal() and len(position) <= len(str(2**62))
    if not right or int(position) < 1 or len(chain_hash) != HASH_BYTES:
        raise CommandFailed(
            "--head takes a position and a hash of 64 hexadecimal digits, as in 18342:9f2c…"
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
    since = f" behind position {report.began}" if report.began else ""
    pace = _pace(report.events, report.seconds)
    print(f"{report.events:,} events{since} were right, verified in {pace}")
    counts = report.counts
    print(
        f"in all {counts.run_rows:,} rows of runs, {counts.session_rows:,} of sessions, "
        f"{counts.contents:,} texts and {counts.transcripts:,} transcripts; "
        f"{counts.erased:,} erased with their keys"
    )
    if report.difference is None:
        print("nothing differs; note the head to hold the log against it later (--head):")
        print(report.head)


def _verify_file(file: Path, output: Output) -> None:
    from infrastructure.server.operations import verify_exported

    with show_transfer_progress("verifying events") as on_progress:
        report = verify_exported(file, on_progress)
    fault, counts = report.fault, report.counts
    if fault is not None and report.scope is None:
        raise CommandFailed(f"{printable_line(file)} is no file of `spawnlog log export`: {fault}")
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
            f"{report.events:,} events were right, verified in"
            f" {_pace(report.events, report.seconds)}; {counts.contents:,} texts and"
            f" {counts.transcripts:,} transcripts; {counts.erased:,} erased or not in the file"
        )
        if fault is None:
            print(_FILE_VERDICTS[report.scope or "log"])
            print(report.head)
    if fault is not None:
        raise RunFailed(str(fault))


_FILE_VERDICTS = {
    "log": "nothing differs; the head of the log in the file:",
    "range": "nothing differs from the chain hash in the first line on; the last event:",
    "tree": "each event has the bytes that its own hash covers; whether events are missing between"
    " them cannot be told of a tree; the last event:",
}


@dataclass(frozen=True, slots=True)
class ExportFlags:
    """What of the log is written, and where."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The file to write, which must not be there. Without: standard output.",
            show_default=False,
        ),
    ] = None
    first: Annotated[
        int | None,
        typer.Option("--from", metavar="POSITION", min=1, help="The first position."),
    ] = None
    last: Annotated[
        int | None,
        typer.Option("--to", metavar="POSITION", min=1, help="The last position."),
    ] = None
    tree: Annotated[
        str | None,
        typer.Option(
            "--tree",
            metavar="KEY",
            help="Only the events of one tree: the key of its root session, in full.",
            show_default=False,
        ),
    ] = None
    contents: Annotated[
        bool,
        typer.Option("--contents", help="With the texts, and the keys that prove them: secrets."),
    ] = False
    transcripts: Annotated[
        bool, typer.Option("--transcripts", help="With the entries of transcripts.")
    ] = False
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an export that was interrupted.")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Replace the file, and begin anew.")] = (
        False
    )


def export_events(
    flags: ExportFlags, output: OutputOption = Output.TABLE, *, home: HomeOptions
) -> None:
    """Write the log as lines of CloudEvents.

    It is one snapshot; servers go on meanwhile.

    The file is FILE.part until it is whole. Import it again with --contents --transcripts.
    """
    from infrastructure.server.operations import export_to_file

    if flags.resume and flags.force:
        raise CommandFailed("--resume goes on and --force begins anew; give one of them")
    # No log is longer, and the database knows no larger number.
    first, last = (one and min(one, POSITION_MAX) for one in (flags.first, flags.last))
    export_options = ExportOptions(**{**asdict(flags), "first": first, "last": last})
    try:
        with _resumable(), show_transfer_progress("exporting events") as on_progress:
            report = export_to_file(home.serve_options(), export_options, on_progress)
    except NameUnknown as error:
        raise NotFound(str(error)) from error
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
            help="A file of `log export --contents --transcripts`.",
            show_default=False,
        ),
    ],
    without_texts: Annotated[
        bool,
        typer.Option(
            "--without-texts",
            help="Take a file without texts and transcripts: all of them read as erased.",
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an import that was interrupted.")
    ] = False,
    output: OutputOption = Output.TABLE,
    *,
    home: HomeOptions,
) -> None:
    """Store an exported log in an empty one.

    It has the same rows, the same chain and the same log id.

    What is wrong with the file is found before anything of it is there. Stop the log's servers
    before the copy is served: both would do its work.
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
