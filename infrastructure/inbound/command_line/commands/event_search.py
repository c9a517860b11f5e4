"""`spawnlog event find`: since when something is so."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.values.moments import MOMENT_FORMS
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.commands.events import EventOptions
from infrastructure.inbound.command_line.display.event_line import event_facts
from infrastructure.inbound.command_line.display.failures import CommandFailed, NotFound
from infrastructure.inbound.command_line.display.forms import short_id
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Output,
    print_document,
    print_fields,
    print_json_line,
    print_note,
    print_table,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.progress import show_search_progress
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

PAGE_MAX = 100
COUNTED = ("method", "fromPosition", "toPosition")


@dataclass(frozen=True, slots=True)
class ConditionOptions:
    """What is looked for, and where."""

    when: Annotated[
        str | None,
        typer.Option(
            "--when",
            metavar="CONDITION",
            help="Where this begins to hold: 'running > 6 and not config = 2'. Numbers of runs by "
            "status (running, queued, waiting, preparing, refused, failed, done, …), spawned, "
            "archived, active, config, position.",
            show_default=False,
        ),
    ] = None
    field: Annotated[
        str | None,
        typer.Option(
            "--field",
            metavar="NAME",
            help="A field of a run, or of --session, by its name in JSON: outcome, stage, model, "
            "maxChildren …",
            show_default=False,
        ),
    ] = None
    becomes: Annotated[
        str | None,
        typer.Option(
            "--becomes", metavar="VALUE", help="Where it becomes this.", show_default=False
        ),
    ] = None
    changes: Annotated[bool, typer.Option("--changes", help="Where it changes at all.")] = False
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule", metavar="RULE", help="Where this rule refuses a run.", show_default=False
        ),
    ] = None
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="KEY",
            help="Only of this session and the runs that it asked for.",
            show_default=False,
        ),
    ] = None
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="ID", help="Only runs of this agent.", show_default=False),
    ] = None
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help=f"Only after then: {MOMENT_FORMS}.",
            show_default=False,
        ),
    ] = None
    until: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Only up to then.", show_default=False),
    ] = None

    def require_complete(self, events: EventOptions) -> None:
        """CommandFailed for a search of nothing."""
        if not (self.when or self.field or events.event_type or self.rule):
            raise CommandFailed(
                "say what to look for: --when CONDITION, --field NAME, --type TYPE or --rule RULE"
            )
        if self.field and self.becomes is None and not self.changes:
            raise CommandFailed("--field needs --becomes VALUE, or --changes for any change")

    def query(self) -> dict[str, str | int | None]:
        """The same as parameters."""
        return {
            "when": self.when,
            "field": self.field,
            "becomes": self.becomes,
            "changes": "true" if self.changes else None,
            "rule": self.rule.replace("-", "_") if self.rule is not None else None,
            "session": self.session,
            "agentId": self.agent,
            "from": self.since,
            "to": self.until,
        }


def find_events(
    condition: ConditionOptions,
    events: EventOptions,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="How many, the first ones.")
    ] = 1,
    last: Annotated[
        bool, typer.Option("--last", help="The last one instead: since when it is so now.")
    ] = False,
    *,
    api: ApiOptions,
) -> None:
    """Find since when something is so.

    That is the first position at which a condition begins to hold, a field of a state becomes a
    value, or something was recorded. Not found is exit status 4.
    """
    if last and limit != 1:
        raise CommandFailed("--last is one: leave --limit out")
    condition.require_complete(events)
    with api.client() as client:
        question = {**condition.query(), **events.query(client)}
        answer = _search(client, question, limit=limit, last=last)
    _print_answer(answer, api.output)
    if not answer["items"]:
        raise NotFound(f"nothing found up to pos:{answer['toPosition']}; {_effort(answer)}")


def _search(
    client: "CommandClient", question: dict[str, str | int | None], *, limit: int, last: bool
) -> JsonObject:
    """All of a search: the answers of as many requests as it takes, as one."""
    items: list[JsonObject] = []
    events_read = reads = 0
    cursor: str | None = None
    with show_search_progress() as show:
        while True:
            wanted = PAGE_MAX if last else min(PAGE_MAX, limit - len(items))
            parameters = {**question, "limit": wanted, "cursor": cursor}
            body = client.get("/v1/events/find", parameters).value
            found, following = body.get("items"), body.get("nextCursor")
            if not isinstance(found, list) or not all(name in body for name in COUNTED):
                raise CommandFailed("the answer is not from a spawnlog server: check --url")
            items = (items + found)[-1:] if last else items + found
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
    }


def _print_answer(answer: JsonObject, output: Output) -> None:
    items = answer["items"]
    if print_document(answer, output):
        return
    if output is Output.JSONL:
        for item in items:
            print_json_line(item)
    elif len(items) > 1:
        print_table(items, _COLUMNS)
        print_note(_effort(answer))
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
            "before": _values(item.get("before")),
            "after": _values(item.get("after")),
            "configuration": f"revision {event['configRevision']}" if event else None,
        }
    )
    print_note(f"as it was then: spawnlog run list --at {printable_line(item.get('asOf'))}")


def _effort(answer: JsonObject) -> str:
    if answer["method"] == "bisection":
        return f"by bisection, with {answer['reads']} reads"
    return f"by a scan of {answer['eventsRead']:,} events"


def _values(values: Any) -> str | None:
    if not isinstance(values, dict) or not values:
        return None
    return " ".join(
        f"{printable_line(name)}={printable_line('null' if value is None else value)}"
        for name, value in values.items()
    )


_COLUMNS = (
    TableColumn("POSITION", value_of("asOf"), right=True),
    TableColumn("TIME", lambda item: format_instant(item.get("recordedAt"))),
    TableColumn("RUN", lambda item: short_id(item.get("runId"))),
    TableColumn("EVENT", lambda item: (item.get("event") or {}).get("type")),
    TableColumn("BEFORE", lambda item: _values(item.get("before"))),
    TableColumn("AFTER", lambda item: _values(item.get("after")), folds=True),
)
