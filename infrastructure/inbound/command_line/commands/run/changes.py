"""`spawnlog diff`, `spawnlog run history` and `spawnlog run compare`: what changed, and what
differs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from domain.values.moments import MOMENT_FORMS
from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    AsOfOption,
    LimitOption,
    RunName,
    RunOption,
    TreeOption,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Output,
    print_document,
    print_json_line,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.plain_text import printable_block, printable_line
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

PAGE_ITEMS = 200
VALUE_CHARACTERS_MAX = 60
DIFFERS = 1
_VERDICTS = ("added", "removed", "changed")
# What a line about something new says of it.
_NEW_FIELDS = ("status", "rule", "outcome", "agentId", "role")


def _label(item: Item) -> object:
    return item.get("label") if item.get("label") != item.get("id") else None


_DIFF_COLUMNS = (
    TableColumn("CHANGE", value_of("change"), coloured=True),
    TableColumn("KIND", value_of("kind")),
    TableColumn("LABEL", _label, elastic=True),
    TableColumn("ID", value_of("id"), elastic=True),
    TableColumn("WHAT", lambda item: changes_text(item.get("patch") or ()), folds=True),
)
_HISTORY_COLUMNS = (
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("VERSION", value_of("version"), right=True),
    TableColumn("TIME", lambda item: format_instant(item.get("recordedAt"))),
    TableColumn("EVENT", value_of("type")),
    TableColumn("BY", lambda item: _actor_text(item.get("actor")), elastic=True),
    TableColumn("CHANGES", lambda item: changes_text(item.get("changes") or ()), folds=True),
)
_SET_BY_COLUMNS = (
    TableColumn("FIELD", value_of("field")),
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("VERSION", value_of("version"), right=True),
    TableColumn("EVENT", value_of("type")),
)
_COMPARE_COLUMNS = (
    TableColumn("PART", value_of("part")),
    TableColumn("WHAT", value_of("what"), folds=True),
    TableColumn("LEFT", value_of("left"), folds=True),
    TableColumn("RIGHT", value_of("right"), folds=True),
)


_SPAN = ("fromPosition", "toPosition", "fromConfigRevision", "toConfigRevision")


def diff(
    left: Annotated[
        str,
        typer.Argument(
            metavar="FROM",
            help=f"A moment: {MOMENT_FORMS}.",
            show_default=False,
        ),
    ],
    right: Annotated[
        str, typer.Argument(metavar="TO", help="Another one, likewise.", show_default=False)
    ],
    run: RunOption = None,
    session: Annotated[
        str | None, typer.Option(metavar="KEY", help="Of this session as it reads.")
    ] = None,
    tree: TreeOption = None,
    limit: LimitOption = 1_000,
    *,
    api: ApiOptions,
) -> None:
    """Show what changed between two moments.

    Of the whole registry or a part of it. Exit status 1 when something did; of the whole registry
    also when another configuration was in force.
    """
    with api.client() as client:
        query: dict[str, str | int | None] = {
            "from": left,
            "to": right,
            "runId": find_run(client, run).run_id if run is not None else None,
            "session": session,
            "tree": tree,
        }
        items, page = _read_diff(client, query, limit)
    span = {name: page.get(name) for name in _SPAN}
    revisions = [span["fromConfigRevision"], span["toConfigRevision"]]
    more = page.get("nextCursor") is not None
    found = {name: [one for one in items if one["change"] == name] for name in _VERDICTS}
    if api.output is Output.TABLE:
        _print_changes(items, span, more=more)
    elif not print_document({**span, **found, "more": more}, api.output):
        for item in items:
            print_json_line(item)
    is_whole = run is None and session is None and tree is None
    if items or more or (is_whole and revisions[0] != revisions[1]):
        raise typer.Exit(DIFFERS)


def _read_diff(
    client: "CommandClient", query: dict[str, str | int | None], limit: int
) -> tuple[list[JsonObject], JsonObject]:
    """Items of as many pages as it takes, and the last page."""
    items: list[JsonObject] = []
    while True:
        query["limit"] = min(PAGE_ITEMS, limit - len(items))
        page = client.get("/v1/diff", query).value
        items += _diff_items(page)
        query["cursor"] = page.get("nextCursor")
        if query["cursor"] is None or len(items) >= limit:
            return items, page


def _print_changes(items: Sequence[JsonObject], span: Item, *, more: bool) -> None:
    if items:
        print_table(items, _DIFF_COLUMNS)
    counts = ", ".join(
        f"{sum(one['change'] == name for one in items)} {name}" for name in _VERDICTS
    )
    print_note(f"pos:{span['fromPosition']} to pos:{span['toPosition']}: {counts}")
    revisions = [span["fromConfigRevision"], span["toConfigRevision"]]
    if revisions[0] != revisions[1]:
        said = " then ".join("none" if one is None else printable_line(one) for one in revisions)
        print_note(f"the configuration in force was revision {said}; see spawnlog config diff")
    if more:
        print_note("there are more: raise --limit, or narrow the diff")


def _diff_items(page: JsonObject) -> list[JsonObject]:
    items = []
    for name in _VERDICTS:
        found = page.get(name)
        if not isinstance(found, list):
            raise CommandFailed("the answer is not from a spawnlog server: it is no diff")
        items += [{"change": name, **one} for one in found]
    return items


def show_history(
    name: RunName,
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Only what changed this field: a name, or a pointer as /announcement/state. "
            "May be repeated.",
        ),
    ] = None,
    set_by: Annotated[
        bool, typer.Option("--set-by", help="Which event set each field last, in place of states.")
    ] = False,
    at: AsOfOption = None,
    limit: LimitOption = 1_000,
    *,
    api: ApiOptions,
) -> None:
    """Show the states of a run, and which event changed what."""
    items: list[JsonObject] = []
    with api.client() as client:
        path = path_of("runs", find_run(client, name).run_id, "history")
        after: int | None = 0
        while after is not None:
            query = {
                "field": tuple(field or ()),
                "at": at,
                "after": after,
                "limit": min(PAGE_ITEMS, limit - len(items)),
            }
            page = client.get(path, query).value
            items += page.get("items") or []
            after = page.get("nextAfter") if len(items) < limit and not set_by else None
    more = page.get("nextAfter") is not None
    setters = [{"field": one, **who} for one, who in (page.get("setBy") or {}).items()]
    shown, columns = (setters, _SET_BY_COLUMNS) if set_by else (items, _HISTORY_COLUMNS)
    whole = {"items": items, "setBy": page.get("setBy"), "more": more and not set_by}
    if print_document(whole, api.output):
        return
    if api.output is Output.JSONL:
        for one in shown:
            print_json_line(one)
    else:
        print_table(shown, columns)
        if more and not set_by:
            print_note("there are more: raise --limit, or name a --field")


def compare_runs(left: RunName, right: RunName, at: AsOfOption = None, *, api: ApiOptions) -> None:
    """Show what differs between two runs.

    Their requests, decisions, plans, prompts, transcripts and outcomes are compared. Exit status 1
    when something differs.
    """
    with api.client() as client:
        one, other = find_run(client, left).run_id, find_run(client, right).run_id
        compared = client.get(path_of("runs", one, "compare"), {"with": other, "at": at}).value
    same = compared.get("same") is True
    if not print_object(compared, api.output):
        _print_comparison(compared)
    if not same:
        raise typer.Exit(DIFFERS)


def _print_comparison(compared: JsonObject) -> None:
    for side in ("left", "right"):
        run = compared.get(side) or {}
        label, status = printable_line(run.get("label") or ""), printable_line(run.get("status"))
        print_note(f"{side}: run {printable_line(run.get('runId'))} {label} {status}".rstrip())
    rows = list(_comparison_rows(compared))
    if rows:
        print_table(rows, _COMPARE_COLUMNS)
    prompt = compared.get("prompt")
    if prompt is None:
        print_note("prompts and transcripts are for a token with the scope content")
    for part in (prompt or {}).get("parts") or ():
        if part.get("diff"):
            print(f"\n{printable_line(part.get('of'))}, {printable_line(part.get('source'))}:")
            _print_diff(str(part["diff"]))
    if compared.get("same") is True:
        print_note("nothing differs")


def _comparison_rows(compared: JsonObject) -> Iterator[Item]:
    for part in ("request", "plan", "outcome"):
        section = compared.get(part) or {}
        left, right = section.get("left") or {}, section.get("right") or {}
        for name in dict.fromkeys((*left, *right)):
            if left.get(name) != right.get(name):
                yield _row(part, name, left.get(name), right.get(name))
        for name in section.get("erased") or ():
            yield _row(part, name, "erased", "erased")
        if part == "request":
            yield from _decision_rows(compared.get("decisions") or ())
    for one in (compared.get("prompt") or {}).get("parts") or ():
        if one.get("verdict") != "equal":
            what = f"{one.get('of')}, {one.get('source')}: {one.get('verdict')}"
            yield _row("prompt", what.replace("_", " "), _size(one, "left"), _size(one, "right"))
    transcript = compared.get("transcript") or {}
    first = transcript.get("firstDifference")
    if first is not None:
        what = f"behind {transcript.get('equalEntries')} equal entries"
        yield _row("transcript", what, _entry(first.get("left")), _entry(first.get("right")))
    if transcript.get("erased") and not transcript.get("same"):
        yield _row("transcript", "entries", "erased", "erased")


def _decision_rows(decisions: Sequence[JsonObject]) -> Iterator[Item]:
    for one in decisions:
        if not one.get("same"):
            sides = one.get("left") or {}, one.get("right") or {}
            texts = [f"{side['result']}: {side['text']}" if side else None for side in sides]
            if texts[0] == texts[1]:
                # The words are the same, what was compared is not.
                compared, other = (side.get("compared") or {} for side in sides)
                differing = [name for name in compared if compared[name] != other.get(name)]
                texts = [
                    ", ".join(f"{name} {side.get(name)}" for name in differing)
                    for side in (compared, other)
                ]
            yield _row("decision", one.get("rule"), *texts)


def _row(part: str, what: object, left: object, right: object) -> Item:
    return {"part": part, "what": what, "left": _value(left), "right": _value(right)}


def _size(part: Item, side: str) -> str | None:
    found = part.get(side)
    return f"{found.get('bytes')} B" if isinstance(found, Mapping) else None


def _entry(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return "the end"
    return f"[{entry.get('sequence')}] {entry.get('kind')} {_value(entry.get('body'))}"


def _print_diff(text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, highlight=False, emoji=False)
    for line in printable_block(text).split("\n"):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        console.print(Text(line, style=style), soft_wrap=True)


def changes_text(operations: Sequence[Item]) -> str:
    """The operations of a patch on one line: what is there now under which name."""
    parts = []
    for one in operations:
        path, value = str(one.get("path")), one.get("value")
        name = path.removeprefix("/") or "all"
        if not path:
            new = value if isinstance(value, Mapping) else {}
            parts += [f"{field}={_value(new[field])}" for field in _NEW_FIELDS if new.get(field)]
            continue
        if one.get("op") == "remove":
            parts.append(f"{name} removed")
        elif value not in (None, [], {}):
            parts.append(f"{name}={_value(value)}")
        elif one.get("op") == "replace":
            parts.append(f"{name} emptied")
    return ", ".join(parts)


def _value(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable_line(text, VALUE_CHARACTERS_MAX)


def _actor_text(actor: object) -> str:
    if not isinstance(actor, Mapping):
        return ""
    return str(actor.get("session") or actor.get("token") or actor.get("kind") or "")
