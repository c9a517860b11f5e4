"""`spawnlog run events`, `run log`, `run prompt`, `run explain`: what is on record about a run."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    AsOfOption,
    LimitOption,
    RunName,
)
from infrastructure.inbound.command_line.display.event_line import event_facts
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Listing,
    Output,
    print_block,
    print_json_line,
    print_listing,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant, format_offset
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

TRANSCRIPT_PAGE_ITEMS = 50
LAST_ENTRIES_MAX = 500
EVENTS_MAX = 10_000
_HEADINGS = {"systemPrompt": "system prompt", "message": "message"}
_PART_COLUMNS = (
    TableColumn("OF", value_of("of")),
    TableColumn("SOURCE", value_of("source")),
    TableColumn("START", value_of("start"), right=True),
    TableColumn("END", value_of("end"), right=True),
    TableColumn("HASH", lambda part: part.get("sha256") or part.get("hmac")),
)


def run_events(name: RunName, at: AsOfOption = None, *, api: ApiOptions) -> None:
    """Show the events of a run, in order."""
    with api.client() as client:
        found = find_run(client, name)
        listing = client.items(
            path_of("runs", found.run_id, "events"), {"at": at}, limit=EVENTS_MAX
        )
    if api.output is Output.TABLE and listing.items:
        print_note(
            f"run {found.run_id}, from {format_instant(listing.items[0].get('recordedAt'))} UTC"
        )
    print_listing(listing, event_columns(listing), api.output)


def event_columns(listing: Listing) -> tuple[TableColumn, ...]:
    """The columns of a run's events; times also as distances from the first, and without the
    date when they are all of one day."""
    times = [event.get("recordedAt") for event in listing.items]
    start = times[0] if times else None
    date = (
        "" if len({format_instant(time)[:10] for time in times}) > 1 else format_instant(start)[:11]
    )
    return (
        TableColumn("POSITION", value_of("position"), right=True),
        TableColumn(
            "TIME", lambda event: format_instant(event.get("recordedAt")).removeprefix(date)
        ),
        TableColumn(
            "AFTER", lambda event: format_offset(start, event.get("recordedAt")), right=True
        ),
        TableColumn("EVENT", value_of("type")),
        TableColumn("FACTS", event_facts, folds=True),
    )


def run_log(
    name: RunName,
    limit: LimitOption = 200,
    after: Annotated[
        int | None, typer.Option(min=0, metavar="SEQUENCE", help="Go on after this entry.")
    ] = None,
    tools: Annotated[bool, typer.Option("--tools", help="With the calls of tools.")] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Show entries as they are written, until it is over."),
    ] = False,
    at: AsOfOption = None,
    *,
    api: ApiOptions,
) -> None:
    """Show the transcript of a run.

    Both sides of it, in order: its last entries (500 at most), or those after --after.
    """
    with_tools = "true" if tools else None
    if follow:
        _require_followable(at, api.output)
    with api.client() as client:
        found = find_run(client, name)
        path = path_of("runs", found.run_id, "transcript")
        if follow:
            _follow_log(client, found.run_id, path, limit, after, tools, api.output)
            return
        if after is None and limit <= LAST_ENTRIES_MAX:
            page = client.get(path, {"last": limit, "tools": with_tools, "at": at}).value
            listing = Listing(list(page.get("items") or ()), more=False)
        else:
            listing = client.items(
                path,
                {"after": after, "tools": with_tools, "at": at},
                limit=limit,
                page_items=TRANSCRIPT_PAGE_ITEMS,
            )
        run = (
            client.get(path_of("runs", found.run_id), {"at": at}).value
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
        print_note(f"there is more: go on with --after {listing.items[-1].get('sequence')}")


def _require_followable(at: str | None, output: Output) -> None:
    if at is not None:
        raise CommandFailed("--follow goes on from now: leave --at out")
    if output not in (Output.JSONL, Output.TABLE):
        raise CommandFailed("a stream is no document: follow it with --output jsonl or table")


def _follow_log(
    client: "CommandClient",
    run_id: str,
    path: str,
    limit: int,
    after: int | None,
    tools: bool,
    output: Output,
) -> None:
    """Print the last entries, or those behind `after`, and each later one until the run is over."""
    # Here and not above: `--help` needs no HTTP library.
    from infrastructure.inbound.command_line.client.follow import follow_transcript

    def show(entry: JsonObject) -> None:
        if output is Output.JSONL:
            print_json_line(entry)
        else:
            _print_entry(entry)
            sys.stdout.flush()

    if after is None:
        last = min(limit, LAST_ENTRIES_MAX)
        page = client.get(path, {"last": last, "tools": "true" if tools else None}).value
        for entry in page.get("items") or ():
            show(entry)
        after = int(page.get("lastSequence") or 0)
    for entry in follow_transcript(client, run_id, after=after, tools=tools):
        show(entry)
    run = client.get(path_of("runs", run_id)).value
    print_note(f"run {run_id} is {printable_line(run.get('status'), 20)}")
    if run.get("continuedBy"):
        following = printable_line(run["continuedBy"])
        print_note(f"its session continues with: spawnlog run log --follow {following}")


def run_prompt(name: RunName, at: AsOfOption = None, *, api: ApiOptions) -> None:
    """Show the prompt of a run, and where each part came from."""
    with api.client() as client:
        found = find_run(client, name)
        prompt = client.get(path_of("runs", found.run_id, "prompt"), {"at": at}).value
    if print_object(prompt, api.output):
        return
    for key, heading in _HEADINGS.items():
        text = str(prompt.get(key) or "")
        print(f"=== {heading} ({len(text.encode('utf-8', 'replace'))} bytes) ===")
        print_block(text)
        print()
    print("=== parts ===")
    print_table(prompt.get("parts") or [], _PART_COLUMNS)


def _print_entry(entry: JsonObject) -> None:
    body = entry.get("body")
    body = body if isinstance(body, dict) else {"text": body}
    kind = str(entry.get("kind"))
    time = format_instant(entry.get("recordedAt"))[11:]
    speaker = printable_line(body.get("role") or body.get("name") or "", 60)
    print(f"[{entry.get('sequence')}] {time} {printable_line(kind, 20)} {speaker}".rstrip())
    print_block(_indent_text(_entry_text(kind, body)))


def _entry_text(kind: str, body: Item) -> str:
    if kind == "tool":
        lines = [f"{name}: {_as_text(body[name])}" for name in ("input", "output") if name in body]
        return "\n".join(lines)
    if "text" in body:
        return _as_text(body["text"])
    return ", ".join(f"{name} {_as_text(value)}" for name, value in body.items())


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _indent_text(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


_COLUMNS = (
    TableColumn("RULE", value_of("rule")),
    TableColumn("RESULT", lambda one: str(one.get("result")).replace("_", " "), coloured=True),
    TableColumn("WHAT", value_of("text"), folds=True),
)


def explain_run(name: RunName, at: AsOfOption = None, *, api: ApiOptions) -> None:
    """Show why a run was permitted or refused, rule by rule.

    Each rule stands with what it compared.
    """
    with api.client() as client:
        found = find_run(client, name)
        explanation = client.get(path_of("runs", found.run_id, "explain"), {"at": at}).value
    if print_object(explanation, api.output):
        return
    stage, revision = (
        printable_line(explanation.get("stage")),
        printable_line(explanation.get("configRevision")),
    )
    print_note(f"run {found.run_id}, {stage}, under configuration revision {revision}")
    print_table(explanation.get("decisions") or [], _COLUMNS)
    refused = explanation.get("refused")
    if isinstance(refused, dict):
        rule, status = printable_line(refused.get("rule")), printable_line(refused.get("status"))
        print(f"\nrefused by rule {rule} ({status}):")
        print_block(str(refused.get("text") or ""))
