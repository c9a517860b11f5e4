"""What `spawnlog spawn --shared` shares with the family of the session that asks."""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from infrastructure.inbound.command_line.client.paging import JsonObject
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.plain_text import printable_line

FILE_BYTES_MAX = 1024 * 1024


"""A server takes 64 KiB of JSON; blanks of a file do not count there."""


FILE_SIGN = "@"


class ShareScope(StrEnum):
    """Who is given what a spawn shares."""

    FAMILY = "family"
    CHILD = "child"


Shared = Annotated[
    list[str] | None,
    typer.Option(
        "--shared",
        metavar="JSON",
        help="Keys of the shared context as a JSON object, or @FILE with one; may be repeated, and"
        " of a key that is given twice the last value counts.",
        show_default=False,
    ),
]
SharedScopeOption = Annotated[
    ShareScope | None,
    typer.Option("--shared-scope", help="For all children of the session, or for this one alone."),
]


def parse_shared_context(given: Sequence[str]) -> JsonObject:
    """The keys of all that was given, in their order. Raises CommandFailed for what is no JSON
    object."""
    shared: JsonObject = {}
    for one in given:
        shared |= _object(*_source(one))
    return shared


def _source(given: str) -> tuple[str, str]:
    """The text, and how to speak of it."""
    if not given.startswith(FILE_SIGN):
        return given, "--shared"
    path = given.removeprefix(FILE_SIGN)
    name = f"the file {printable_line(path)} of --shared"
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandFailed(f"{name} is not UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CommandFailed(f"{name} cannot be read: {reason or 'that is no path'}") from None
    if len(content) > FILE_BYTES_MAX:
        raise CommandFailed(f"{name} has more than {FILE_BYTES_MAX} bytes")
    return text, name


def _object(text: str, name: str) -> JsonObject:
    try:
        value = json.loads(text)
        # What the parser takes beyond JSON, and numbers that are too large for it.
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        raise CommandFailed(f"{name} is not JSON") from None
    if not isinstance(value, dict):
        raise CommandFailed(f'{name} is no JSON object, such as {{"goal": "a web app"}}')
    return value
