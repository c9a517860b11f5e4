"""What a script printed, kept byte by byte, so that it can be read again."""

import base64

from domain.run.facts import OutputEncoding
from domain.values.text import replace_unstorable


def decode_printed_text(raw: bytes) -> str:
    """The text of an output: without the blanks around it and a byte order mark in front, what is
    no text replaced by U+FFFD."""
    return replace_unstorable(raw.decode("utf-8-sig", errors="replace").strip())


def encode_output(raw: bytes) -> tuple[str, OutputEncoding]:
    """The text by which an output is kept, and how it is written: as it is where it is UTF-8
    without NUL, else in base64."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return base64.b64encode(raw).decode(), "base64"
    return text, "utf-8"
