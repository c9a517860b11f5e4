"""Arguments that are read before they are sent: texts, durations, JSON, files, sessions."""

import base64
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from domain.values.moments import parse_duration
from infrastructure.contract.json_values import RepeatedKey, require_distinct_keys
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import JsonObject
from infrastructure.inbound.command_line.display.plain_text import printable_line

FILE_BYTES_MAX = 1024 * 1024
"""A server takes 64 KiB of JSON; blanks of a file do not count there."""


FILE_SIGN = "@"


TEXT_CHARACTERS_MAX = 16 * 1024 * 1024
_REQUEST = '{"task": "Count the words"}'
_SHARED = '{"goal": "a web app"}'
ME = "me"
SESSION_VARIABLE = "SPAWNLOG_SESSION_KEY"


def session_named(requester: str) -> str:
    """Return the key of the session that is meant: for `me` the one that a child finds in its
    environment."""
    return os.environ.get(SESSION_VARIABLE, "main") if requester == ME else requester


def read_text_argument(argument: str, what: str) -> str:
    """The argument, or standard input for `-`. CommandFailed for one that is too long."""
    if argument != "-":
        return argument
    text = sys.stdin.read(TEXT_CHARACTERS_MAX + 1)
    if len(text) > TEXT_CHARACTERS_MAX:
        raise CommandFailed(f"a {what} has at most {TEXT_CHARACTERS_MAX} characters")
    return text


def duration_seconds(text: str) -> int:
    """Return the seconds of a duration. BadParameter for no duration, and for parts of a second."""
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if length.microseconds:
        raise typer.BadParameter("a timeout is a whole number of seconds")
    return length.days * 86_400 + length.seconds


def read_request(path: Path) -> JsonObject:
    """A whole request from a file. Raises CommandFailed for what is no JSON object."""
    name = f"the file {printable_line(path)} of --file"
    if str(path) == "-":
        return _object(sys.stdin.read(REQUEST_BYTES_MAX + 1), "standard input", _REQUEST)
    return _object(_file_text(path, name, REQUEST_BYTES_MAX), name, _REQUEST)


def parse_json(text: str) -> Any:
    """The value of a JSON text. ValueError for what is none, `RepeatedKey` for a key that an
    object has twice."""
    try:
        value = json.loads(text)
        # What the parser takes beyond JSON, and numbers that are too large for it.
        json.dumps(value, allow_nan=False)
    except RecursionError:
        raise ValueError("it is too deep") from None
    require_distinct_keys(text, what="the JSON")
    return value


def parse_shared_context(given: Sequence[str]) -> JsonObject:
    """The keys of all that was given, in their order. Raises CommandFailed for what is no JSON
    object."""
    shared: JsonObject = {}
    for one in given:
        shared |= _object(*_source(one), _SHARED)
    return shared


def _source(given: str) -> tuple[str, str]:
    """The text, and how to speak of it."""
    if not given.startswith(FILE_SIGN):
        return given, "--shared"
    path = given.removeprefix(FILE_SIGN)
    name = f"the file {printable_line(path)} of --shared"
    return _file_text(path, name, FILE_BYTES_MAX), name


def _file_text(path: Path | str, name: str, bytes_max: int) -> str:
    """What is in a file, which errors call by this name."""
    try:
        with open(path, "rb") as file:
            content = file.read(bytes_max + 1)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandFailed(f"{name} is not UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CommandFailed(f"{name} cannot be read: {reason or 'that is no path'}") from None
    if len(content) > bytes_max:
        raise CommandFailed(f"{name} has more than {bytes_max} bytes")
    return text


def _object(text: str, name: str, example: str) -> JsonObject:
    if not text.strip():
        raise CommandFailed(f"{name} is empty: it must be a JSON object, such as {example}")
    try:
        value = parse_json(text)
    except RepeatedKey as error:
        raise CommandFailed(f"{name}: {error}") from None
    except ValueError:
        raise CommandFailed(f"{name} is not JSON") from None
    if not isinstance(value, dict):
        raise CommandFailed(f"{name} is no JSON object, such as {example}")
    return value


ATTACHED_BYTES_MAX = 12 * 1024 * 1024
"""All files together as they are read."""


REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""What a server takes as one request, in which a file is longer than it is: base64 by a third, and
text by what JSON writes in another way."""


def read_attachments(paths: Sequence[Path]) -> list[JsonObject]:
    """The files as a request holds them: text when they are UTF-8, else base64.

    Raises CommandFailed for one that cannot be read or named, and when all are too large.
    """
    files: list[JsonObject] = []
    left = ATTACHED_BYTES_MAX
    for path in paths:
        content = _read_content(path, left)
        left -= len(content)
        files.append({"name": _name(path), **_encode_content(content)})
    size = len(json.dumps(files))
    if size > REQUEST_BYTES_MAX:
        raise CommandFailed(
            f"cannot attach so much: as a request holds them the files are {size} bytes, and a"
            f" server takes {REQUEST_BYTES_MAX}; attach less, or one archive"
        )
    return files


def _read_content(path: Path, bytes_max: int) -> bytes:
    content = bytearray()
    try:
        with open(path, "rb", buffering=0) as file:
            # One byte more than may be, to know that there is more.
            while more := file.read(bytes_max + 1 - len(content)):
                content += more
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CommandFailed(
            f"cannot attach {printable_line(path)}: {reason or 'that is no path'}"
        ) from None
    if len(content) > bytes_max:
        raise CommandFailed(
            f"cannot attach {printable_line(path)}: all attached files together may have "
            f"{ATTACHED_BYTES_MAX} bytes"
        )
    return bytes(content)


def _name(path: Path) -> str:
    name = os.path.basename(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise CommandFailed(
            f"cannot attach {printable_line(path)}: its name is not UTF-8; attach a "
            "copy with another"
        ) from None
    return name


def _encode_content(content: bytes) -> JsonObject:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    # No text of a request may hold NUL.
    if text is not None and "\0" not in text:
        return {"content": text, "encoding": "utf8"}
    return {"content": base64.b64encode(content).decode("ascii"), "encoding": "base64"}
