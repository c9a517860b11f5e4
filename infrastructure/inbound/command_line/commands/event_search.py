"""`spawnlog event find`: the position at which a condition began to hold."""

from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.described import (
    OperationOptions,
    OptionsOf,
    columns_of,
)
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.display.event_line import event_facts
from infrastructure.inbound.command_line.display.failures import CommandError, ResourceNotFoundError
from infrastructure.inbound.command_line.display.forms import assignments, table_columns
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    note_more,
    print_document,
    print_fields,
    print_json_line,
    print_note,
    print_table,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.progress import show_search_progress
from infrastructure.inbound.command_line.display.times import format_instant

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

PAGE_MAX = 100
COUNTED = ("method", "fromPosition", "toPosition")


def find_events(
    given: Annotated[OperationOptions, OptionsOf("findEvents")],
    last: Annotated[
        bool, typer.Option("--last", help="Show the last match instead of the first.")
    ] = False,
    *,
    api: ApiOptions,
) -> None:
    """Find the position at which a condition began to hold.

    Also finds the position at which a field of a state took a value, or an event was recorded. Exit
    status 4 if there is none.
    """
    limit = given["limit"]
    if last and limit != 1:
        raise CommandError("--last prints one match: leave --limit out")
    if last and given["cursor"] is not None:
        raise CommandError("--last searches the whole range: leave --cursor out")
    _require_question(given)
    with api.client() as client:
        question = given.query(client, without=("limit",))
        if question["rule"] is not None:
            question["rule"] = question["rule"].replace("-", "_")
        answer = _search(client, question, limit=limit, last=last)
    _print_answer(answer, api.output)
    if not answer["items"]:
        raise ResourceNotFoundError(
            f"nothing found up to pos:{answer['toPosition']}; {_effort(answer)}"
        )


def _require_question(given: OperationOptions) -> None:
    """Raise CommandError if the options name nothing to search for."""
    if not any(given[name] for name in ("when", "field", "types", "rule")):
        raise CommandError(
            "give a condition: --when CONDITION, --field NAME, --type TYPE or --rule RULE"
        )
    if given["field"] and given["becomes"] is None and not given["changes"]:
        raise CommandError("--field needs --becomes VALUE, or --changes for any change")


def _search(client: "CommandClient", question: JsonObject, *, limit: int, last: bool) -> JsonObject:
    """Return the merged answer of as many requests as the search takes."""
    items: list[JsonObject] = []
    events_read = reads = 0
    cursor: str | None = question["cursor"]
    with show_search_progress() as show:
        while True:
            wanted = PAGE_MAX if last else min(PAGE_MAX, limit - len(items))
            parameters = {**question, "limit": wanted, "cursor": cursor}
            body = client.get("/v1/events/find", parameters).value
            page, following = body.get("items"), body.get("nextCursor")
            if not isinstance(page, list) or not all(name in body for name in COUNTED):
                raise CommandError("the answer is not from a spawnlog server: check --url")
            items = (items + page)[-1:] if last else items + page
            events_read += int(body.get("eventsRead") or 0)
            reads += int(body.get("reads") or 0)
            if following is None or (not last and len(items) >= limit):
                break
            cursor = str(following)
            show(body["fromPosition"], int(body.get("searchedTo") or 0), body["toPosition"])
    return {
        "items": items,
        **{name: body[name] for name in COUNTED},
        "eventsRead": events_read,
        "reads": reads,
        "more": following is not None and not last,
        "nextCursor": None if last else following,
    }


def _print_answer(answer: JsonObject, output: Output) -> None:
    items = answer["items"]
    if print_document(answer, output):
        return
    if output is Output.JSONL:
        for item in items:
            print_json_line(item)
    elif len(items) > 1:
        print_table(items, table_columns(columns_of("findEvents")))
        print_note(_effort(answer))
        if answer["more"]:
            note_more(cursor=answer["nextCursor"])
    elif items:
        _print_one(items[0])
        print_note(_effort(answer))


def _print_one(item: JsonObject) -> None:
    event = item.get("event") or {}
    facts = event_facts(event) if event else ""
    print_fields(
        {
            "position": item.get("asOf"),
            "at": format_instant(item.get("recordedAt")),
            "held already": "yes, before the range began" if item.get("alreadyHeld") else None,
            "event": f"{event['type']} {facts}".rstrip() if event else None,
            "run": item.get("runId"),
            "session": item.get("sessionKey"),
            "before": assignments(item.get("before")),
            "after": assignments(item.get("after")),
            "configuration": f"revision {event['configRevision']}" if event else None,
        }
    )
    print_note(f"see that moment: spawnlog run list --at {printable_line(item.get('asOf'))}")


def _effort(answer: JsonObject) -> str:
    if answer["method"] == "bisection":
        return f"by bisection, with {answer['reads']} reads"
    return f"by a scan of {answer['eventsRead']:,} events"
