"""`spawnlog run log`: the transcript of a run."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.described import (
    OperationOptions,
    OptionsOf,
    is_typed,
)
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Listing,
    note_more,
    print_block,
    print_json_line,
    print_listing,
    print_note,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line, text_of
from infrastructure.inbound.command_line.display.tables import Item
from infrastructure.inbound.command_line.display.times import format_duration, format_instant

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

TRANSCRIPT_PAGE_ITEMS = 50
LAST_ENTRIES_MAX = 500
EVENTS_MAX = 10_000


def run_log(
    context: typer.Context,
    given: Annotated[OperationOptions, OptionsOf("getRunTranscript")],
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Show entries as they come, until the run ends."),
    ] = False,
    *,
    api: ApiOptions,
) -> None:
    """Show the transcript of a run.

    Prints both sides of the conversation in order: the last entries (500 at most), or those after
    --after.
    """
    limit, after, at = given["limit"], given["after"], given["at"]
    if after is None and limit > LAST_ENTRIES_MAX:
        raise CommandError(
            f"the last entries are {LAST_ENTRIES_MAX} at most: give --after 0 to begin with the"
            " first ones, or a smaller --limit"
        )
    if follow:
        _require_followable(at, api.output)
        if after is not None and is_typed(context, "limit"):
            raise CommandError("--follow --after shows each entry: leave --limit out")
    with api.client() as client:
        path = given.path(client, "/v1/runs/{runId}/transcript")
        query = given.query(client, without=("limit",))
        if follow:
            _follow_log(client, path, query, limit, api.output)
            return
        if after is None:
            page = client.get(path, {**query, "last": limit}).value
            listing = Listing(list(page.get("items") or ()), more=False)
        else:
            listing = client.items(path, query, limit=limit, page_items=TRANSCRIPT_PAGE_ITEMS)
        run = (
            client.get(path.removesuffix("/transcript"), {"at": at}).value
            if api.output is Output.TABLE
            else {}
        )
    if api.output is not Output.TABLE:
        print_listing(listing, (), api.output)
        return
    if run.get("continues"):
        before = printable_line(run["continues"])
        print_note(f"this run continues run {before}, which has a transcript of its own")
    for entry in listing.items:
        _print_entry(entry)
    if not listing.items:
        print_note("the transcript is empty")
    elif listing.more:
        note_more(after=listing.items[-1].get("sequence"))


def _require_followable(at: str | None, output: Output) -> None:
    if at is not None:
        raise CommandError("--follow runs forward: leave --at out")
    if output not in (Output.JSONL, Output.TABLE):
        raise CommandError("--follow prints no single document: use --output jsonl or table")


def _follow_log(
    client: "CommandClient", path: str, query: JsonObject, limit: int, output: Output
) -> None:
    """Print the last entries, or those after `after`, then each new one until the run ends."""
    # Imported late: `--help` needs no HTTP library.
    from infrastructure.inbound.command_line.client.follow import follow_transcript

    def show(entry: JsonObject) -> None:
        if output is Output.JSONL:
            print_json_line(entry)
        else:
            _print_entry(entry)
            sys.stdout.flush()

    run_path = path.removesuffix("/transcript")
    run_id, after = run_path.rpartition("/")[2], query["after"]
    if after is None:
        page = client.get(path, {**query, "last": limit}).value
        for entry in page.get("items") or ():
            show(entry)
        after = int(page.get("lastSequence") or 0)
    for entry in follow_transcript(client, run_id, after=after, tools=query["tools"] is not None):
        show(entry)
    run = client.get(run_path).value
    print_note(f"run {run_id} is {printable_line(run.get('status'), 20)}")
    if run.get("continuedBy"):
        following = printable_line(run["continuedBy"])
        print_note(f"its session continues with: spawnlog run log --follow {following}")


def _print_entry(entry: JsonObject) -> None:
    body = entry.get("body")
    body = body if isinstance(body, dict) else {"text": body}
    kind = str(entry.get("kind"))
    time = format_instant(entry.get("recordedAt"))[11:]
    speaker = printable_line(body.get("role") or body.get("name") or "", 60)
    facts = (time, printable_line(kind, 20), speaker, format_duration(body.get("durationMs")))
    print(" ".join([f"[{entry.get('sequence')}]", *filter(None, facts)]))
    print_block(_indent_text(_entry_text(kind, body)))


def _entry_text(kind: str, body: Item) -> str:
    if kind == "tool":
        lines = [f"{name}: {text_of(body[name])}" for name in ("input", "output") if name in body]
        return "\n".join(lines)
    if "text" in body:
        return text_of(body["text"])
    return ", ".join(f"{name} {text_of(value)}" for name, value in body.items())


def _indent_text(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
