"""`spawnlog log rebuild` and `log verify`."""

from pathlib import Path
from typing import Annotated

import typer

from infrastructure.contract.operations import ServeOptions, VerifyOptions, VerifyReport
from infrastructure.inbound.command_line.client.options import (
    ConfigFile,
    DatabaseUrl,
    HomeDir,
    OutputOption,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed, RunFailed
from infrastructure.inbound.command_line.display.output import Output, print_object
from infrastructure.inbound.command_line.display.progress import (
    show_rebuild_progress,
    show_verify_progress,
)


def rebuild_log(
    config: ConfigFile = None,
    database_url: DatabaseUrl = None,
    data_dir: HomeDir = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the read tables anew from the events. Exits with 1 when they were not the same.

    Servers go on reading and writing meanwhile. One that was interrupted goes on where it was.
    """
    from infrastructure.server.operations import rebuild

    options = ServeOptions(config=config, database_url=database_url, data_dir=data_dir)
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


def verify_log(
    head: NotedHeadOption = None,
    resume: Resume = False,
    state: StateFile = None,
    config: ConfigFile = None,
    database_url: DatabaseUrl = None,
    data_dir: HomeDir = None,
    output: OutputOption = Output.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Compare the log with its chain of hashes, and texts and read tables with the log.

    Exits with 1 at the first difference and names its position. Servers go on meanwhile.
    """
    verify_options = VerifyOptions(
        head=_parse_noted_head(head) if head is not None else None, resume=resume, state_file=state
    )
    options = ServeOptions(config=config, database_url=database_url, data_dir=data_dir)
    report = _run_verification(options, verify_options)
    if not print_object(_report_json(report), Output.JSON if as_json else output):
        _print_report(report)
    if report.difference is not None:
        raise RunFailed(report.difference)


def _run_verification(options: ServeOptions, verify_options: VerifyOptions) -> VerifyReport:
    from infrastructure.server.operations import verify

    try:
        with show_verify_progress() as on_progress:
            return verify(options, verify_options, on_progress)
    except KeyboardInterrupt:
        raise CommandFailed("interrupted before the end; go on with --resume") from None


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
    different = report.difference is not None
    return {
        "ok": not different,
        "head": report.head,
        "began": report.began,
        "events": report.events,
        "runRows": report.run_rows,
        "sessionRows": report.session_rows,
        "contents": report.contents,
        "transcripts": report.transcripts,
        "erased": report.erased,
        "seconds": round(report.seconds, 3),
        "difference": {
            "position": report.position,
            "kind": report.kind,
            "text": report.difference,
        }
        if different
        else None,
    }


def _print_report(report: VerifyReport) -> None:
    since = f" behind position {report.began}" if report.began else ""
    rate = report.events / report.seconds if report.seconds > 0 else 0.0
    print(
        f"{report.events:,} events{since} were right, verified in {report.seconds:.2f} s "
        f"({rate:,.0f} a second)"
    )
    print(
        f"in all {report.run_rows:,} rows of runs, {report.session_rows:,} of sessions, "
        f"{report.contents:,} texts and {report.transcripts:,} transcripts; "
        f"{report.erased:,} erased with their keys"
    )
    if report.difference is None:
        print("nothing differs; note the head to hold the log against it later (--head):")
        print(report.head)
