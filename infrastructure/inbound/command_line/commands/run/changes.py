"""`spawnlog diff` and `spawnlog run history`: changes between two moments, and of one run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.described import (
    OperationOptions,
    OptionsOf,
    columns_of,
    is_typed,
)
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.forms import table_columns
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    note_more,
    print_document,
    print_json_line,
    print_note,
    print_table,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.patches import changes_text
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

PAGE_ITEMS = 200
DIFFERS = 1
_VERDICTS = ("added", "removed", "changed")


def _label(item: Item) -> object:
    return item.get("label") if item.get("label") != item.get("id") else None


_DIFF_COLUMNS = (
    TableColumn("CHANGE", value_of("change"), coloured=True),
    TableColumn("KIND", value_of("kind")),
    TableColumn("LABEL", _label, elastic=True),
    TableColumn("ID", value_of("id"), elastic=True),
    TableColumn("WHAT", lambda item: changes_text(item.get("patch") or ()), folds=True),
)
_SET_BY_COLUMNS = (
    TableColumn("FIELD", value_of("field")),
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("VERSION", value_of("version"), right=True),
    TableColumn("EVENT", value_of("type")),
)
_SPAN = ("fromPosition", "toPosition", "fromConfigRevision", "toConfigRevision")


def diff(given: Annotated[OperationOptions, OptionsOf("getDiff")], *, api: ApiOptions) -> None:
    """Show what changed between two moments.

    Compares the whole registry, or a part of it. Exit status 1 if something changed; for the whole
    registry also if another configuration was in force.
    """
    with api.client() as client:
        query = given.query(client, without=("limit",))
        changes, page = _read_diff(client, dict(query), given["limit"])
    span = {name: page.get(name) for name in _SPAN}
    revisions = [span["fromConfigRevision"], span["toConfigRevision"]]
    more = page.get("nextCursor") is not None
    by_verdict = {
        name: [change for change in changes if change["change"] == name] for name in _VERDICTS
    }
    if api.output is Output.TABLE:
        _print_changes(changes, span, page.get("nextCursor"))
    elif not print_document(
        {**span, **by_verdict, "more": more, "nextCursor": page.get("nextCursor")}, api.output
    ):
        for change in changes:
            print_json_line(change)
    is_whole = not any(query[name] for name in ("runId", "session", "tree"))
    if changes or more or (is_whole and revisions[0] != revisions[1]):
        raise typer.Exit(DIFFERS)


def _read_diff(
    client: "CommandClient", query: JsonObject, limit: int
) -> tuple[list[JsonObject], JsonObject]:
    """Return up to `limit` items, and the last page that was read."""
    changes: list[JsonObject] = []
    while True:
        query["limit"] = min(PAGE_ITEMS, limit - len(changes))
        page = client.get("/v1/diff", query).value
        changes += _diff_items(page)
        query["cursor"] = page.get("nextCursor")
        if query["cursor"] is None or len(changes) >= limit:
            return changes, page


def _print_changes(changes: Sequence[JsonObject], span: Item, following: str | None) -> None:
    if changes:
        print_table(changes, _DIFF_COLUMNS)
    counts = ", ".join(
        f"{sum(change['change'] == name for change in changes)} {name}" for name in _VERDICTS
    )
    print_note(f"pos:{span['fromPosition']} to pos:{span['toPosition']}: {counts}")
    revisions = [span["fromConfigRevision"], span["toConfigRevision"]]
    if revisions[0] != revisions[1]:
        shown = " then ".join(
            "none" if revision is None else printable_line(revision) for revision in revisions
        )
        print_note(f"the configuration in force was revision {shown}; see spawnlog config diff")
    if following is not None:
        note_more(cursor=following)


def _diff_items(page: JsonObject) -> list[JsonObject]:
    changes = []
    for name in _VERDICTS:
        changed = page.get(name)
        if not isinstance(changed, list):
            raise CommandError("the answer is not a diff from a spawnlog server: check --url")
        changes += [{"change": name, **change} for change in changed]
    return changes


def show_history(
    context: typer.Context,
    given: Annotated[OperationOptions, OptionsOf("getRunHistory")],
    set_by: Annotated[
        bool, typer.Option("--set-by", help="Show which event last set each field.")
    ] = False,
    *,
    api: ApiOptions,
) -> None:
    """Show the states of a run, and the event that caused each change."""
    if set_by and (given["after"] is not None or is_typed(context, "limit")):
        raise CommandError("--set-by covers all events: leave --after and --limit out")
    items: list[JsonObject] = []
    with api.client() as client:
        path = given.path(client, "/v1/runs/{runId}/history")
        first_query, limit = given.query(client, without=("limit",)), given["limit"]
        after: int | None = first_query["after"] or 0
        while after is not None:
            query = {**first_query, "after": after, "limit": min(PAGE_ITEMS, limit - len(items))}
            page = client.get(path, query).value
            items += page.get("items") or []
            after = page.get("nextAfter") if len(items) < limit and not set_by else None
    more = page.get("nextAfter") is not None
    setters = [{"field": field, **event} for field, event in (page.get("setBy") or {}).items()]
    shown, columns = (
        (setters, _SET_BY_COLUMNS)
        if set_by
        else (items, table_columns(columns_of("getRunHistory")))
    )
    more = more and not set_by
    whole = {
        "items": items,
        "setBy": page.get("setBy"),
        "more": more,
        "nextAfter": page.get("nextAfter") if more else None,
    }
    if print_document(whole, api.output):
        return
    if api.output is Output.JSONL:
        for row in shown:
            print_json_line(row)
    else:
        print_table(shown, columns)
        if more:
            note_more(after=page["nextAfter"])
