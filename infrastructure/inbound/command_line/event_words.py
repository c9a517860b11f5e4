"""The words of which the short facts of events are made."""

from collections.abc import Mapping


def joined(*parts: object) -> str:
    """The parts that say something, with commas between them."""
    return ", ".join(str(part) for part in parts if part not in (None, "", ()))


def named(name: str, value: object) -> str:
    """A name and its value; nothing without a value."""
    return "" if value in (None, "") else f"{name} {value}"


def bytes_of(reference: object) -> str:
    """The size of a text that an event refers to."""
    return size_of(reference.get("bytes")) if isinstance(reference, Mapping) else ""


def size_of(size: object) -> str:
    """A number of bytes."""
    return f"{size} B" if isinstance(size, int) else ""


def files_of(count: object) -> str:
    """A number of files."""
    return f"{count} file(s)" if isinstance(count, int) else ""
