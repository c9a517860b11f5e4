"""Arguments that are read before a request is sent: texts, durations, JSON, files, sessions."""

import base64
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO
from weakref import WeakKeyDictionary

import typer

from domain.values.moments import parse_duration
from infrastructure.contract.json_values import DuplicateKeyError, require_distinct_keys
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output import JsonObject
from infrastructure.inbound.command_line.display.plain_text import printable_line

SHARED_BYTES_MAX = 1024 * 1024
"""Larger than the 64 KiB of JSON that a server accepts: blanks do not count there."""
REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""Maximum size of a request. Files are larger in it: base64 adds a third, JSON escapes add more."""


FILE_SIGN = "@"
STANDARD_INPUT = "-"
_READ_FOR: WeakKeyDictionary[TextIO, str] = WeakKeyDictionary()
"""The argument that has read a standard input."""


_REQUEST = '{"task": "Count the words"}'
_SHARED = '{"goal": "a web app"}'
ME = "me"
SESSION_VARIABLE = "SPAWNLOG_SESSION_KEY"


def session_named(requester: str) -> str:
    """Return a requester's session key. `me` means the session in the environment of a child."""
    return os.environ.get(SESSION_VARIABLE, "main") if requester == ME else requester


def read_text_argument(argument: str, subject: str) -> str:
    """Return the argument, or standard input for `-`. Raise CommandError if it is too long."""
    if argument != STANDARD_INPUT:
        return argument
    return _read_standard_input(subject, REQUEST_BYTES_MAX)


def _read_standard_input(subject: str, bytes_max: int) -> str:
    """Return standard input.

    Raises:
        CommandError: Another argument has read it, or it is too long.
    """
    if sys.stdin in _READ_FOR:
        raise CommandError(
            f"standard input is the {_READ_FOR[sys.stdin]}, so the {subject} cannot be -"
        )
    _READ_FOR[sys.stdin] = subject
    text = sys.stdin.read(bytes_max + 1)
    _require_size(len(text.encode(errors="replace")), bytes_max, "standard input")
    return text


def _require_size(size: int, bytes_max: int, name: str) -> None:
    if size > bytes_max:
        raise CommandError(f"{name} is larger than {bytes_max} bytes")


def duration_seconds(text: str) -> int:
    """Return the seconds of a duration. Raise BadParameter if it is invalid or has fractions."""
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if length.microseconds:
        raise typer.BadParameter("a timeout is a whole number of seconds")
    return length.days * 86_400 + length.seconds


def read_request(path: Path) -> JsonObject:
    """Return the request in a JSON file. Raise CommandError if it holds no JSON object."""
    name = f"the file {printable_line(path)} of --file"
    if str(path) == STANDARD_INPUT:
        return _object(
            _read_standard_input("request", REQUEST_BYTES_MAX), "standard input", _REQUEST
        )
    return _object(_file_text(path, name, REQUEST_BYTES_MAX), name, _REQUEST)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: The text is not JSON.
        DuplicateKeyError: An object has a key twice.
    """
    try:
        value = json.loads(text)
        # The parser accepts NaN, and numbers that JSON cannot hold.
        json.dumps(value, allow_nan=False)
    except RecursionError:
        raise ValueError("it is too deep") from None
    require_distinct_keys(text, subject="the JSON")
    return value


def parse_shared_context(given: Sequence[str]) -> JsonObject:
    """Merge the JSON objects of several arguments; the last value of a key counts.

    Raises CommandError if one is not a JSON object.
    """
    shared: JsonObject = {}
    for argument in given:
        shared |= _object(*_source(argument), _SHARED)
    return shared


def _source(given: str) -> tuple[str, str]:
    """Return the text, and the name that errors give it."""
    if given == STANDARD_INPUT:
        return _read_standard_input("shared context", SHARED_BYTES_MAX), "standard input"
    if not given.startswith(FILE_SIGN):
        return given, "--shared"
    path = given.removeprefix(FILE_SIGN)
    name = f"the file {printable_line(path)} of --shared"
    return _file_text(path, name, SHARED_BYTES_MAX), name


def _file_text(path: Path | str, name: str, bytes_max: int) -> str:
    """Read a UTF-8 file. Errors call it `name`."""
    try:
        with open(path, "rb") as file:
            content = file.read(bytes_max + 1)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandError(f"{name} is not UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CommandError(f"{name} cannot be read: {reason or 'invalid path'}") from None
    _require_size(len(content), bytes_max, name)
    return text


def _object(text: str, name: str, example: str) -> JsonObject:
    if not text.strip():
        raise CommandError(f"{name} is empty: it must be a JSON object, such as {example}")
    try:
        value = parse_json(text)
    except DuplicateKeyError as error:
        raise CommandError(f"{name}: {error}") from None
    except ValueError:
        raise CommandError(f"{name} is not JSON") from None
    if not isinstance(value, dict):
        raise CommandError(f"{name} is not a JSON object, such as {example}")
    return value


ATTACHED_BYTES_MAX = 12 * 1024 * 1024
"""Maximum size of all files together as they are read."""


def read_attachments(paths: Sequence[Path]) -> list[JsonObject]:
    """Return files in the form of a request: as text if they are UTF-8, else base64.

    Raises:
        CommandError: A file cannot be read, its name is not UTF-8, or all files are too large.
    """
    files: list[JsonObject] = []
    left = ATTACHED_BYTES_MAX
    for path in paths:
        content = _read_content(path, left)
        left -= len(content)
        files.append({"name": _name(path), **_encode_content(content)})
    size = len(json.dumps(files))
    if size > REQUEST_BYTES_MAX:
        raise CommandError(
            f"the attached files are too large: encoded they have {size} bytes, and a server"
            f" accepts {REQUEST_BYTES_MAX}; attach fewer, or one archive"
        )
    return files


def _read_content(path: Path, bytes_max: int) -> bytes:
    content = bytearray()
    try:
        with open(path, "rb", buffering=0) as file:
            # One byte more than allowed, to detect a file that is too large.
            while more := file.read(bytes_max + 1 - len(content)):
                content += more
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CommandError(
            f"cannot attach {printable_line(path)}: {reason or 'invalid path'}"
        ) from None
    if len(content) > bytes_max:
        raise CommandError(
            f"cannot attach {printable_line(path)}: all attached files together may have at most "
            f"{ATTACHED_BYTES_MAX} bytes"
        )
    return bytes(content)


def _name(path: Path) -> str:
    name = os.path.basename(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise CommandError(
            f"cannot attach {printable_line(path)}: its name is not UTF-8; attach a "
            "copy with another name"
        ) from None
    return name


def _encode_content(content: bytes) -> JsonObject:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    # Texts in a request may not contain NUL.
    if text is not None and "\0" not in text:
        return {"content": text, "encoding": "utf8"}
    return {"content": base64.b64encode(content).decode("ascii"), "encoding": "base64"}
