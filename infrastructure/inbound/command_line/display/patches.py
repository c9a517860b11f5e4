"""Patches and values of documents on one line."""

from collections.abc import Mapping, Sequence

from infrastructure.inbound.command_line.display.plain_text import printable_line, text_of
from infrastructure.inbound.command_line.display.tables import Item

VALUE_CHARACTERS_MAX = 60
# What a line about something new says of it.
_NEW_FIELDS = ("status", "rule", "outcome", "agentId", "role")


def changes_text(operations: Sequence[Item]) -> str:
    """The operations of a patch on one line: what is there now under which name."""
    parts = []
    for one in operations:
        path, value = str(one.get("path")), one.get("value")
        name = path.removeprefix("/") or "all"
        if not path:
            new = value if isinstance(value, Mapping) else {}
            parts += [
                f"{field}={short_value(new[field])}" for field in _NEW_FIELDS if new.get(field)
            ]
            continue
        if one.get("op") == "remove":
            parts.append(f"{name} removed")
        elif value not in (None, [], {}):
            parts.append(f"{name}={short_value(value)}")
        elif one.get("op") == "replace":
            parts.append(f"{name} emptied")
    return ", ".join(parts)


def short_value(value: object) -> str | None:
    """Return a value on one line, JSON unless it is a text."""
    if value is None:
        return None
    return printable_line(text_of(value), VALUE_CHARACTERS_MAX)
