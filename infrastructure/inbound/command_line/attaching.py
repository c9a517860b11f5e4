"""The files that `spawnlog spawn --attach` sends along."""

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from infrastructure.inbound.command_line.client.paging import JsonObject
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.plain_text import printable_line

ATTACHED_BYTES_MAX = 12 * 1024 * 1024
"""All files together as they are read."""
REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""What a server takes as one request, in which a file is longer than it is: base64 by a third, and
text by what JSON writes in another way."""

_STATES = {
    "removing": "being removed from",
    "removed": "removed from",
    "left_in_place": "left in place in",
}

Attach = Annotated[
    list[Path] | None,
    typer.Option(
        "--attach",
        metavar="FILE",
        help="A file to put into the child's workspace, under its own name; may be repeated.",
        show_default=False,
    ),
]
AttachAs = Annotated[
    str | None,
    typer.Option(
        metavar="PATH", help="Where the files are wanted: the child is told, they are not moved."
    ),
]
LightContext = Annotated[
    bool,
    typer.Option("--light-context", help="Leave AGENTS.md and TOOLS.md out of the prompt."),
]


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


def attachments_summary(receipt: object) -> str | None:
    """The receipt of an answer or a run in words; None when nothing was attached."""
    if not isinstance(receipt, dict):
        return None
    count, size = receipt.get("count"), receipt.get("totalBytes")
    where = f"{receipt.get('relDir')} of the workspace"
    state = _STATES.get(str(receipt.get("state")), "in")
    return f"{count} file(s), {size} bytes, {state} {where}"


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
