"""`spawnlog what-if`: recorded decisions under another configuration."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from infrastructure.contract.json_values import DuplicateKeyError
from infrastructure.inbound.command_line.client.arguments import parse_json
from infrastructure.inbound.command_line.client.described import OperationOptions, OptionsOf
from infrastructure.inbound.command_line.client.options import ApiPlace
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_json,
    print_json_line,
    print_note,
    print_yaml,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.what_if import (
    WhatIfReport,
    print_junit,
    print_report,
)

FILE_BYTES_MAX = 512 * 1024


class WhatIfOutput(StrEnum):
    """Output form: for a person, for a program, or JUnit XML for a build."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    JUNIT = "junit"


@dataclass(frozen=True, slots=True)
class CandidateOptions:
    """Options that give the configuration to try."""

    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Configuration to try, JSON5; - reads standard input."
        ),
    ] = None
    patch: Annotated[
        Path | None,
        typer.Option(
            "--patch",
            metavar="FILE",
            help="JSON Patch (RFC 6902) of the revision under which each decision was made.",
        ),
    ] = None
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="POINTER=JSON",
            help="Change one value of that revision, such as "
            "/agents/defaults/subagents/maxSpawnDepth=2; may be repeated.",
        ),
    ] = None

    def members(self) -> JsonObject:
        """Return the configuration to try as members of a request.

        Raises:
            CommandError: None or several were given, or a file cannot be read.
        """
        given = [self.config is not None, self.patch is not None, bool(self.changes)]
        if sum(given) != 1:
            raise CommandError(
                "give the configuration to try: one of --config FILE, --patch FILE and --set"
            )
        if self.config is not None:
            from infrastructure.server.operations import candidate_of

            name = "stdin" if str(self.config) == "-" else str(self.config)
            members, warnings = candidate_of(_read(self.config), name)
            for warning in warnings:
                print_note(f"warning: {printable_line(warning, 1000)}")
            return members
        if self.patch is not None:
            try:
                operations = parse_json(_read(self.patch))
            except DuplicateKeyError as error:
                raise CommandError(f"{self.patch}: {error}") from None
            except ValueError as error:
                raise CommandError(f"{self.patch} is not JSON: {error}") from None
            if not isinstance(operations, list):
                raise CommandError(
                    f"{self.patch} is not a JSON Patch: it must be a list of operations"
                )
            return {"patch": operations}
        return {"patch": [_operation(change) for change in self.changes or ()]}


_COUNTED = ("newly-allowed", "newly-refused")
"""Verdicts that change the number of active children."""


def what_if(
    candidate: CandidateOptions,
    given: Annotated[OperationOptions, OptionsOf("whatIf")],
    everything: Annotated[
        bool, typer.Option("--all", help="Include unchanged decisions in JSON and YAML output.")
    ] = False,
    output: Annotated[
        WhatIfOutput,
        typer.Option(
            "--output",
            "-o",
            help="Table, one JSON or YAML document, JSON lines, or JUnit XML for a build.",
        ),
    ] = WhatIfOutput.TABLE,
    *,
    api: ApiPlace,
) -> None:
    """Replay recorded spawn decisions under another configuration.

    Covers messages too. Only decisions are replayed: no script, runtime or hook is called, and
    nothing is written. Facts that were not recorded are named, not guessed.
    """
    body = candidate.members()
    if not everything or output in (WhatIfOutput.TABLE, WhatIfOutput.JUNIT):
        body["only"] = list(given.parameter("only").choices)
    report = WhatIfReport(frozenset(given["only"] or ()))
    lines: list[JsonObject] = []
    with api.client() as client:
        body |= given.body(client, without=("only",))
        for line in _shown(client.lines("/v1/what-if", body), report):
            if output is WhatIfOutput.JSONL:
                print_json_line(line)
            elif output in (WhatIfOutput.JSON, WhatIfOutput.YAML):
                lines.append(line)
    if report.totals is None:
        raise CommandError("the answer is incomplete: try again")
    whole = {"items": lines, "totals": report.totals}
    if output is WhatIfOutput.JSON:
        print_json(whole)
    elif output is WhatIfOutput.YAML:
        print_yaml(whole)
    elif output is WhatIfOutput.JSONL:
        print_json_line({"totals": report.totals})
    elif output is WhatIfOutput.JUNIT:
        print_junit(report)
    else:
        print_report(report)
        if not given["cascade"] and sum(report.counts.get(name, 0) for name in _COUNTED) > 1:
            print_note(
                "each decision is checked alone, with the recorded counts; with --cascade,"
                " earlier verdicts change the counts of later ones"
            )
    if report.failed:
        raise typer.Exit(1)


def _shown(lines: Iterator[JsonObject], report: WhatIfReport) -> Iterator[JsonObject]:
    """Yield the verdicts. Progress goes to stderr, and totals into the report."""
    is_watched = sys.stderr.isatty()
    for line in lines:
        if "progress" in line:
            if is_watched:
                progress = line["progress"]
                print_note(
                    f"position {progress['position']:,} of {progress['until']:,},"
                    f" {progress['decisions']:,} decisions"
                )
        elif "failure" in line:
            raise CommandError(str(line["failure"].get("detail")))
        elif "totals" in line:
            report.totals = line["totals"]
        else:
            report.take(line)
            yield line


def _operation(change: str) -> dict[str, Any]:
    pointer, equals, text = change.partition("=")
    if not equals or not pointer.startswith("/"):
        raise CommandError(
            f"--set {change}: write it as /path/to/value=JSON, such as"
            " /agents/defaults/subagents/maxSpawnDepth=2"
        )
    try:
        value = parse_json(text)
    except DuplicateKeyError as error:
        raise CommandError(f"--set {pointer}: {error}") from None
    except ValueError:
        raise CommandError(
            f'--set {change}: the value after = is not JSON; a text needs quotes: ="text"'
        ) from None
    return {"op": "add", "path": pointer, "value": value}


def _read(path: Path) -> str:
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        else:
            with path.open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8; save it as UTF-8") from None
    if len(content) > FILE_BYTES_MAX:
        raise CommandError(f"{path} is larger than {FILE_BYTES_MAX // 1024} KiB")
    return text
