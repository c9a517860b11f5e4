"""JSON Patches and values on one line."""

from collections.abc import Mapping, Sequence

from infrastructure.inbound.command_line.display.plain_text import printable_line, text_of
from infrastructure.inbound.command_line.display.tables import Item

VALUE_CHARACTERS_MAX = 60
# Fields that summarize a new object.
_NEW_FIELDS = ("status", "rule", "outcome", "agentId", "role")


def changes_text(operations: Sequence[Item]) -> str:
    """Return the operations of a patch on one line, as names with their new values."""
    parts = []
    for operation in operations:
        path, value = str(operation.get("path")), operation.get("value")
        name = path.removeprefix("/") or "all"
        if not path:
            new = value if isinstance(value, Mapping) else {}
            parts += [
                f"{field}={short_value(new[field])}" for field in _NEW_FIELDS if new.get(field)
            ]
            continue
        if operation.get("op") == "remove":
            parts.append(f"{name} removed")
        elif value not in (None, [], {}):
            parts.append(f"{name}={short_value(value)}")
        elif operation.get("op") == "replace":
            parts.append(f"{name} emptied")
    return ", ".join(parts)


def short_value(value: object) -> str | None:
    """Return a value on one line: a text unchanged, anything else as JSON."""
    if value is None:
        return None
    return printable_line(text_of(value), VALUE_CHARACTERS_MAX)
