"""Shared steps of commands that begin a run: options, sending, and waiting for the result."""

import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from domain.delivery.output_notes import NOTES_MAX, announced_notes, read_notes
from infrastructure.inbound.command_line.client.wait import wait_for_run
from infrastructure.inbound.command_line.display.failures import (
    CommandError,
    CommandInterruptedError,
    FailedRunError,
    RequestRefusedError,
    UnreachableError,
    in_words_of_commands,
)
from infrastructure.inbound.command_line.display.forms import short_id
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_block,
    print_fields,
    print_note,
    print_object,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.times import format_duration
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient


LABEL_CHARACTERS_MAX = 40


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """Options that say whether to wait for the result, and with which idempotency key to send."""

    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the run is announced; print its result.")
    ] = False
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Print only the run id; with --wait only the result, no progress."
        ),
    ] = False
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="A repeated request with the same key returns the same run."
        ),
    ] = None


def post_once(
    client: "CommandClient", path: str, body: JsonObject, idempotency_key: str | None, lost: str
) -> JsonObject:
    """Request a run and return the server's answer if it is accepted.

    Args:
        client: The client of the server.
        path: Path of the request.
        body: Body of the request.
        idempotency_key: Key of the request. Default: a new one.
        lost: Sentence for the error, if the request was sent but its answer was lost.

    Raises:
        RequestRefused: The server refused, with a rule and a text.
        Unreachable: The server did not answer. After a lost answer the message has the key with
            which the command can be repeated without a second run.
    """
    key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
    try:
        return client.post(path, body, idempotency_key=key).value
    except UnreachableError as failure:
        if not failure.is_sent:
            raise
        raise UnreachableError(
            f"{failure.message}\n  {lost}: repeat the command with "
            f"--idempotency-key {key} to find out; nothing happens twice"
        ) from None


def post_or_print_refusal(
    client: "CommandClient", path: str, body: JsonObject, key: str | None, lost: str, output: Output
) -> JsonObject:
    """Call `post_once`, and print the problem of a refusal for a program."""
    try:
        return post_once(client, path, body, key, lost)
    except RequestRefusedError as refusal:
        if refusal.problem is not None:
            print_object(refusal.problem, output)
        raise


def print_accepted(
    accepted: JsonObject, fields: Mapping[str, object], *, quiet: bool = False
) -> None:
    """Print these fields of an accepted request for a person, with its warnings. If `quiet`, print
    only the run id."""
    if quiet:
        print_run_ids([accepted])
        return
    print_fields(fields)
    for warning in _warnings(accepted):
        print_fields({"warning": warning})


def print_run_ids(runs: Iterable[JsonObject]) -> None:
    """Print the ids of accepted runs, one per line."""
    for run in runs:
        print(printable_line(run.get("runId")))


def _warnings(accepted: JsonObject) -> list[str]:
    """Return the warnings of an accepted request."""
    not_applied = accepted.get("modelApplied") is False
    return [
        *map(str, accepted.get("warnings") or ()),
        *(["the requested model is not used"] if not_applied else []),
    ]


def follow_run(
    client: "CommandClient", accepted: JsonObject, output: Output, *, quiet: bool = False
) -> None:
    """Wait for the run's announcement and print its result. A terminal also shows progress.

    Raises:
        RunFailed: The run did not succeed.
        RequestRefused: The run was refused while it was prepared.
        Interrupted: Ctrl-C was pressed; the run continues.
    """
    note = _no_note if quiet else print_note
    shows_progress = not quiet and output is Output.TABLE and sys.stderr.isatty()
    run_id = str(accepted.get("runId"))
    note(f"run {printable_line(run_id)} is accepted; waiting for its announcement")
    for warning in _warnings(accepted):
        note(f"warning: {printable_line(warning, 2000)}")
    try:
        if shows_progress:
            _show_progress(client, run_id, accepted.get("label"))
        run = wait_for_run(client, run_id, until="announced")
        while run.get("continuedBy") and (run.get("announcement") or {}).get("state") == "skipped":
            # The run yielded or was steered: the result is that of the run that continues it.
            note(f"run {printable_line(run['continuedBy'])} continues in its place")
            run_id = str(run["continuedBy"])
            if shows_progress:
                _show_progress(client, run_id, accepted.get("label"))
            run = wait_for_run(client, run_id, until="announced")
    except KeyboardInterrupt:
        shown = printable_line(run_id)
        raise CommandInterruptedError(
            f"run {shown} continues; show it with `spawnlog run get {shown}`, stop it with"
            f" `spawnlog run stop {shown}`"
        ) from None
    if not print_object(run, output):
        if run.get("resultText"):
            print_block(str(run["resultText"]))
        else:
            note("the run has no result")
        if not quiet:
            _print_output_notes(client, run)
    status = printable_line(run.get("status"), 20)
    if run.get("stage") == "refused":
        raise RequestRefusedError(
            f"run {printable_line(run_id)}: {printable_line(_why_refused(run), 2000)}"
        )
    if run.get("outcome") != "success":
        reason = printable_line(run.get("error") or "", 2000)
        raise FailedRunError(
            f"run {printable_line(run_id)} ended as {status}{': ' if reason else ''}{reason}"
        )
    took = format_duration(run.get("runtimeMs"))
    note(f"run {printable_line(run_id)} is {status}{f' after {took}' if took else ''}")


def _print_output_notes(client: "CommandClient", run: JsonObject) -> None:
    """Print the notes on the output of an ended run, as its requester receives them.

    Prints nothing if the token may not read the transcript.
    """
    path = path_of("runs", str(run.get("runId")), "transcript")
    try:
        page = client.get(path, {"last": NOTES_MAX}).value
    except CommandError:
        # The run is over and its result is printed: missing notes are no failure.
        return
    notes = read_notes([entry.get("body") or {} for entry in page.get("items") or ()])
    for text in announced_notes(
        notes, has_result=bool(run.get("resultText")), has_error=bool(run.get("error"))
    ):
        print_note(printable_line(text, 2000))


def _show_progress(client: "CommandClient", run_id: str, label: object) -> None:
    """Print the progress of a run until it is over. Return at once if the token may not see it."""
    # Imported late: `--help` needs no HTTP library.
    from infrastructure.inbound.command_line.client.follow import follow_transcript

    name = printable_line(label or short_id(run_id), LABEL_CHARACTERS_MAX)
    try:
        for entry in follow_transcript(client, run_id, after=0):
            if entry.get("kind") == "progress":
                body = entry.get("body") or {}
                print_note(f"{name}: {printable_line(body.get('text') or '')}")
    except UnreachableError:
        raise
    except CommandError:
        return


def _why_refused(run: JsonObject) -> str:
    return in_words_of_commands(str(run.get("error") or "refused"))


def _no_note(_: str) -> None:
    """Discard a note."""
