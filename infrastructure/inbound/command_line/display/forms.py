"""Forms of values in tables and fields, named by the descriptions of columns."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infrastructure.inbound.command_line.display.event_line import event_facts
from infrastructure.inbound.command_line.display.output import print_fields
from infrastructure.inbound.command_line.display.patches import changes_text
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.run import (
    attachments_summary,
    run_agent,
    run_cost,
    run_depth,
    run_model,
    run_status,
    used_tokens,
)
from infrastructure.inbound.command_line.display.tables import Item, TableColumn
from infrastructure.inbound.command_line.display.times import format_duration, format_instant

SHORT_ID_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a field of one answer: see `application.queries.command`."""

    header: str
    path: str = ""
    form: str | None = None
    empty: str | None = None
    marked: str | None = None
    if_any: bool = False
    narrow: str | None = None
    traits: Mapping[str, Any] = field(default_factory=dict)


def short_id(run_id: object) -> str:
    """Return a prefix of a run id that is long enough to name the run."""
    return str(run_id or "")[:SHORT_ID_CHARACTERS]


def assignments(values: object) -> str | None:
    """Return the names and values of an object on one line."""
    if not isinstance(values, dict) or not values:
        return None
    return " ".join(
        f"{printable_line(name)}={printable_line('null' if value is None else value)}"
        for name, value in values.items()
    )


def dollars(cost: object) -> str | None:
    """Return a cost in US dollars."""
    return None if cost is None else f"${cost}"


def active_children(session: Item) -> str | None:
    """Return the number of active children and its maximum, as far as they are known."""
    active, most = session.get("activeChildren"), session.get("maxChildren")
    if active is None:
        return None
    return f"{active} active" if most is None else f"{active} active, at most {most}"


def _deliveries(deliveries: Sequence[Item]) -> str:
    """Return the delivery state of each webhook."""
    return "; ".join(
        f"{delivery['webhook']}: {delivery['state']}, {delivery['attempts']} attempt(s)"
        + (
            f", next {format_instant(delivery['nextAttemptAt'])}"
            if delivery.get("nextAttemptAt")
            else ""
        )
        for delivery in deliveries
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


FORMS: Mapping[str, Callable[[Any], object]] = {
    "id": short_id,
    "instant": format_instant,
    "second": lambda value: format_instant(value)[:19],
    "minute": lambda value: format_instant(value)[5:16],
    "day second": lambda value: format_instant(value)[5:19],
    "duration": format_duration,
    "yes": lambda value: "yes" if value else "no",
    "words": lambda value: ", ".join(map(str, value or ())),
    "json": lambda value: None if value is None else _json(value),
    "seconds": lambda value: f"{value}s" if value else None,
    "dollars": dollars,
    "assignments": assignments,
    "changes": lambda value: changes_text(value or ()),
    "deliveries": _deliveries,
    "event facts": event_facts,
    "head": lambda item: f"{item.get('position')}:{item.get('chainHash') or ''}",
    "children": active_children,
    "attachments": attachments_summary,
    "tokens": used_tokens,
    "run status": run_status,
    "run agent": run_agent,
    "run depth": run_depth,
    "run model": run_model,
    "run cost": run_cost,
}


def value_at(item: Item, path: str) -> Any:
    """Return the value at a path, or at the first of several (separated by `|`) that has one."""
    if not path:
        return item
    value: Any = None
    for alternative in path.split("|"):
        value = item
        for name in alternative.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value:
            break
    return value


def shown(column: Column, form: str | None) -> Callable[[Item], object]:
    """Return a function that writes the cell of an item."""
    write = FORMS[form] if form else None

    def cell(item: Item) -> object:
        value = value_at(item, column.path)
        text = value if write is None else write(value)
        if column.empty is not None and text in (None, ""):
            text = column.empty
        if column.marked is not None and item.get(column.marked):
            text = f"{text} ({column.marked})"
        return text

    return cell


def table_columns(columns: Iterable[Column], items: Sequence[Item] = ()) -> tuple[TableColumn, ...]:
    """Return the columns of a table of these items."""
    return tuple(
        TableColumn(
            column.header,
            shown(column, column.form),
            narrow=shown(column, column.narrow) if column.narrow else None,
            **column.traits,
        )
        for column in columns
        if not column.if_any or any(value_at(item, column.path) for item in items)
    )


def print_described(item: Item, fields: Iterable[Column]) -> None:
    """Print the fields of an answer, one per line."""
    print_fields({field.header: shown(field, field.form)(item) for field in fields})
