"""What a spawn attaches: judged before anything is written, by the limits that are configured.

The rules are judged in this order and the first that fails speaks: attachments are enabled, count;
then for each file in turn its name, a name given twice, base64, its size, the size of all so far.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.attachment_name import (
    NAME_BYTES_MAX,
    folded_name,
    is_file_name,
    seen_sign,
    trimmed_name,
)
from domain.bounded_text import single_line, storable
from domain.configuration.tools import Attachments
from domain.run.facts import RefusalStatus
from domain.strict_base64 import decode_strict_base64

SHOWN_NAME_CHARACTERS_MAX = 200
SHOWN_REASON_CHARACTERS_MAX = 300
MOUNT_PATH_CHARACTERS_MAX = 255
MIME_TYPE_CHARACTERS_MAX = 255
PIECE_CHARACTERS = 64 * 1024

_MOUNT_PATH = re.compile(r"[A-Za-z0-9._\-/:]+")
_MIME_TYPE = re.compile(r"[\x20-\x7e]+")
_DISABLED = (
    "attachments are disabled for sessions_spawn (enable tools.sessions_spawn.attachments.enabled)"
)


@dataclass(frozen=True, slots=True)
class AttachmentAsked:
    """A file as a request gives it: `content` is text, or base64 when `encoding` is just that
    word."""

    name: str
    content: str = field(repr=False)
    encoding: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """A file that may be written. `name` is that of one file in a folder, `sha256` that of the
    content in hexadecimal, `mime_type` what the request says of it."""

    name: str
    content: bytes = field(repr=False)
    sha256: str
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedFiles:
    """Files that may be written together, in the order of the request. No two of their names are
    one to a file system. None at all: nothing was attached, and there is nothing to make."""

    files: tuple[JudgedFile, ...] = ()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.files)

    @property
    def total_bytes(self) -> int:
        """The bytes of all contents."""
        return sum(len(file.content) for file in self.files)


@dataclass(frozen=True, slots=True)
class AttachmentRefusal:
    """Why nothing is attached. `text` is told as it is; a name in it is on one line and cut."""

    status: RefusalStatus
    text: str


def judge(asked: Sequence[AttachmentAsked], limits: Attachments) -> JudgedFiles | AttachmentRefusal:
    """The files of a request, all of them or the first reason against them."""
    if not asked:
        return JudgedFiles()
    unread = judge_unread(asked, limits)
    if unread is not None:
        return unread
    judged: list[JudgedFile] = []
    taken: set[str] = set()
    total_bytes = 0
    for one in asked:
        name = trimmed_name(one.name)
        refused = _name_refused(name, taken)
        if refused is not None:
            return refused
        taken.add(folded_name(name))
        content = _content(one, name, limits.max_file_bytes)
        if isinstance(content, AttachmentRefusal):
            return content
        total_bytes += len(content)
        if total_bytes > limits.max_total_bytes:
            return _error(
                f"attachments_total_bytes_exceeded (totalBytes={total_bytes} "
                f"maxTotalBytes={limits.max_total_bytes})"
            )
        judged.append(judged_file(name, content, one.mime_type))
    return JudgedFiles(tuple(judged))


def judge_unread(asked: Sequence[AttachmentAsked], limits: Attachments) -> AttachmentRefusal | None:
    """What speaks against the files of a request whatever they hold, by the first rules of
    `judge`; costs nothing."""
    if asked and not limits.enabled:
        return AttachmentRefusal("forbidden", _DISABLED)
    if len(asked) > limits.max_files:
        return _error(f"attachments_file_count_exceeded (maxFiles={limits.max_files})")
    return None


def judged_file(name: str, content: bytes, mime_type: str | None = None) -> JudgedFile:
    """A file whose name was judged; a type that is nothing to show is left out."""
    return JudgedFile(name, content, hashlib.sha256(content).hexdigest(), _shown_type(mime_type))


def not_written(reason: str) -> AttachmentRefusal:
    """Files that were permitted could not be written; `reason` is in words for the caller."""
    shown = single_line(reason, characters_max=SHOWN_REASON_CHARACTERS_MAX)
    return _error(f"attachments_materialization_failed ({shown})")


def mount_path_hint(text: str | None) -> str | None:
    """Where the caller would like the files to be; None when there is nothing to tell the child, or
    nothing that it may be told: anything but letters, digits and `._-/:`, at most 255 of them."""
    hint = trimmed_name(text or "")
    if len(hint) > MOUNT_PATH_CHARACTERS_MAX:
        return None
    return hint if _MOUNT_PATH.fullmatch(hint) else None


def _name_refused(name: str, taken: set[str]) -> AttachmentRefusal | None:
    if not name:
        return _error("attachments_invalid_name (empty)")
    if not is_file_name(name):
        return _error(f"attachments_invalid_name ({_shown(name)}{_told_length(name)})")
    if folded_name(name) in taken:
        return _error(f"attachments_duplicate_name ({_shown(name)})")
    return None


def _content(one: AttachmentAsked, name: str, bytes_max: int) -> bytes | AttachmentRefusal:
    if one.encoding == "base64":
        decoded = decode_strict_base64(one.content, bytes_max)
        if decoded is None:
            return _error("attachments_invalid_base64_or_too_large")
        return decoded
    try:
        if len(one.content) > bytes_max:
            return _too_large(name, _encoded_length(one.content), bytes_max)
        content = one.content.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair. Written otherwise it would not be the file that was sent.
        return _error(f"attachments_invalid_utf8 ({_shown(name)})")
    return content if len(content) <= bytes_max else _too_large(name, len(content), bytes_max)


def _encoded_length(text: str) -> int:
    """In pieces: many texts that are too large may be counted at once."""
    starts = range(0, len(text), PIECE_CHARACTERS)
    return sum(len(text[start : start + PIECE_CHARACTERS].encode()) for start in starts)


def _too_large(name: str, length: int, bytes_max: int) -> AttachmentRefusal:
    return _error(
        f"attachments_file_bytes_exceeded (name={_shown(name)} bytes={length} "
        f"maxFileBytes={bytes_max})"
    )


def _error(text: str) -> AttachmentRefusal:
    return AttachmentRefusal("error", text)


def _shown(name: str) -> str:
    # Those behind the limit are not shown, and a name may be long.
    seen = "".join(seen_sign(sign) for sign in name[: SHOWN_NAME_CHARACTERS_MAX + 1])
    return single_line(
        seen + name[SHOWN_NAME_CHARACTERS_MAX + 1 :], characters_max=SHOWN_NAME_CHARACTERS_MAX
    )


def _told_length(name: str) -> str:
    # Half of a surrogate pair, which is refused for itself, counts as the sign that replaces it.
    size = len(storable(name).encode())
    if size <= NAME_BYTES_MAX:
        return ""
    return f"; {size} bytes of UTF-8, and {NAME_BYTES_MAX} are the most"


def _shown_type(mime_type: str | None) -> str | None:
    shown = (mime_type or "").strip(" ")
    if len(shown) > MIME_TYPE_CHARACTERS_MAX or not _MIME_TYPE.fullmatch(shown):
        return None
    return shown
