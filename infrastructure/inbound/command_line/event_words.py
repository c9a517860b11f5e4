"""The words of which the short facts of events are made."""

from collections.abc import Mapping


def join_facts(*parts: object) -> str:
    """The parts that say something, with commas between them."""
    return ", ".join(str(part) for part in parts if part not in (None, "", ()))


def format_named(name: str, value: object) -> str:
    """A name and its value; nothing without a value."""
    return "" if value in (None, "") else f"{name} {value}"


def format_text_bytes(reference: object) -> str:
    """The size of a text that an event refers to."""
    return format_size(reference.get("bytes")) if isinstance(reference, Mapping) else ""


def format_size(size: object) -> str:
    """A number of bytes."""
    return f"{size} B" if isinstance(size, int) else ""


def format_file_count(count: object) -> str:
    """A number of files."""
    return f"{count} file(s)" if isinstance(count, int) else ""
