"""What a spawn attaches: judged before anything is written, by the limits that are configured.

The rules are judged in this order and the first that fails speaks: attachments are enabled, count;
then for each file in turn its name, a name given twice, base64, its size, the size of all so far.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.configuration.tools import Attachments
from domain.values.base64 import decode_strict_base64
from domain.values.rules import RefusalStatus
from domain.values.text import replace_unstorable, single_line

# What a file that is attached may be called, and which names a file system may take for one.


NAME_BYTES_MAX = 255
MANIFEST_NAME = ".manifest.json"
_NOT_NAMES = frozenset(("", ".", ".."))
_SEPARATORS = frozenset("/\\")

# What an agent that is written in JavaScript trims. Python's `strip` would also take away control
# characters, and so let pass what is refused.
_SPACES = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def trim_name(name: str) -> str:
    """The name without white space around it, which is how the file will be called."""
    return name.strip(_SPACES)


def is_file_name(name: str) -> bool:
    """Whether a trimmed name is that of one file in a folder and shows what it is.

    Refused are separators of any system, control and invisible characters (those that reorder what
    is read included), line ends, what is no character, the names of folders, any spelling of the
    manifest's name, and more than 255 bytes of UTF-8. Letters that look alike and names of devices
    are names like others.
    """
    if name in _NOT_NAMES or any(_is_refused(sign) for sign in name):
        return False
    return len(name.encode()) <= NAME_BYTES_MAX and fold_name(name) != MANIFEST_NAME


def fold_name(name: str) -> str:
    """Equal for names that a file system may take for one: those that differ in case or in the
    normal form of Unicode alone."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def visible_sign(sign: str) -> str:
    """The sign, or its number (`\\u202e`) when it is one of those that are not seen."""
    if not _is_unseen(sign):
        return sign
    return f"\\u{ord(sign):04x}" if ord(sign) <= 0xFFFF else f"\\U{ord(sign):08x}"


def _is_refused(sign: str) -> bool:
    return sign in _SEPARATORS or _is_unseen(sign)


def _is_unseen(sign: str) -> bool:
    category = unicodedata.category(sign)
    return category.startswith("C") or category in ("Zl", "Zp")


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
class RequestedAttachment:
    """A file as a request gives it: `content` is text, or base64 when `encoding` is just that
    word."""

    name: str
    content: str = field(repr=False)
    encoding: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class AcceptedFile:
    """A file that may be written. `name` is that of one file in a folder, `sha256` that of the
    content in hexadecimal, `mime_type` what the request says of it."""

    name: str
    content: bytes = field(repr=False)
    sha256: str
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class AcceptedFiles:
    """Files that may be written together, in the order of the request. No two of their names are
    one to a file system. None at all: nothing was attached, and there is nothing to make."""

    files: tuple[AcceptedFile, ...] = ()

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


def check_attachments(
    attachments: Sequence[RequestedAttachment], limits: Attachments
) -> AcceptedFiles | AttachmentRefusal:
    """The files of a request, all of them or the first reason against them."""
    if not attachments:
        return AcceptedFiles()
    unread = check_unread_attachments(len(attachments), limits)
    if unread is not None:
        return unread
    judged: list[AcceptedFile] = []
    taken: set[str] = set()
    total_bytes = 0
    for one in attachments:
        name = trim_name(one.name)
        refused = _name_refusal(name, taken)
        if refused is not None:
            return refused
        taken.add(fold_name(name))
        content = _content(one, name, limits.max_file_bytes)
        if isinstance(content, AttachmentRefusal):
            return content
        total_bytes += len(content)
        if total_bytes > limits.max_total_bytes:
            return _refusal(
                f"attachments_total_bytes_exceeded (totalBytes={total_bytes} "
                f"maxTotalBytes={limits.max_total_bytes})"
            )
        judged.append(accept_file(name, content, one.mime_type))
    return AcceptedFiles(tuple(judged))


def check_unread_attachments(count: int, limits: Attachments) -> AttachmentRefusal | None:
    """What speaks against so many files of a request whatever they hold, by the first rules of
    `check_attachments`; costs nothing."""
    if count and not limits.enabled:
        return AttachmentRefusal("forbidden", _DISABLED)
    if count > limits.max_files:
        return _refusal(f"attachments_file_count_exceeded (maxFiles={limits.max_files})")
    return None


def accept_file(name: str, content: bytes, mime_type: str | None = None) -> AcceptedFile:
    """A file whose name was judged; a type that is nothing to show is left out."""
    return AcceptedFile(
        name, content, hashlib.sha256(content).hexdigest(), _printable_type(mime_type)
    )


def write_failed_refusal(reason: str) -> AttachmentRefusal:
    """Files that were permitted could not be written; `reason` is in words for the caller."""
    shown = single_line(reason, characters_max=SHOWN_REASON_CHARACTERS_MAX)
    return _refusal(f"attachments_materialization_failed ({shown})")


def mount_path_hint(text: str | None) -> str | None:
    """Where the caller would like the files to be; None when there is nothing to tell the child, or
    nothing that it may be told: anything but letters, digits and `._-/:`, at most 255 of them."""
    hint = trim_name(text or "")
    if len(hint) > MOUNT_PATH_CHARACTERS_MAX:
        return None
    return hint if _MOUNT_PATH.fullmatch(hint) else None


def _name_refusal(name: str, taken: set[str]) -> AttachmentRefusal | None:
    if not name:
        return _refusal("attachments_invalid_name (empty)")
    if not is_file_name(name):
        return _refusal(f"attachments_invalid_name ({_printable_name(name)}{_length_text(name)})")
    if fold_name(name) in taken:
        return _refusal(f"attachments_duplicate_name ({_printable_name(name)})")
    return None


def _content(one: RequestedAttachment, name: str, bytes_max: int) -> bytes | AttachmentRefusal:
    if one.encoding == "base64":
        decoded = decode_strict_base64(one.content, bytes_max)
        if decoded is None:
            return _refusal("attachments_invalid_base64_or_too_large")
        return decoded
    try:
        if len(one.content) > bytes_max:
            return _too_large(name, _encoded_length(one.content), bytes_max)
        content = one.content.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair. Written otherwise it would not be the file that was sent.
        return _refusal(f"attachments_invalid_utf8 ({_printable_name(name)})")
    return content if len(content) <= bytes_max else _too_large(name, len(content), bytes_max)


def _encoded_length(text: str) -> int:
    """In pieces: many texts that are too large may be counted at once."""
    starts = range(0, len(text), PIECE_CHARACTERS)
    return sum(len(text[start : start + PIECE_CHARACTERS].encode()) for start in starts)


def _too_large(name: str, length: int, bytes_max: int) -> AttachmentRefusal:
    return _refusal(
        f"attachments_file_bytes_exceeded (name={_printable_name(name)} bytes={length} "
        f"maxFileBytes={bytes_max})"
    )


def _refusal(text: str) -> AttachmentRefusal:
    return AttachmentRefusal("error", text)


def _printable_name(name: str) -> str:
    # Those behind the limit are not shown, and a name may be long.
    visible = "".join(visible_sign(sign) for sign in name[: SHOWN_NAME_CHARACTERS_MAX + 1])
    return single_line(
        visible + name[SHOWN_NAME_CHARACTERS_MAX + 1 :], characters_max=SHOWN_NAME_CHARACTERS_MAX
    )


def _length_text(name: str) -> str:
    # Half of a surrogate pair, which is refused for itself, counts as the sign that replaces it.
    size = len(replace_unstorable(name).encode())
    if size <= NAME_BYTES_MAX:
        return ""
    return f"; {size} bytes of UTF-8, and {NAME_BYTES_MAX} are the most"


def _printable_type(mime_type: str | None) -> str | None:
    shown = (mime_type or "").strip(" ")
    if len(shown) > MIME_TYPE_CHARACTERS_MAX or not _MIME_TYPE.fullmatch(shown):
        return None
    return shown
