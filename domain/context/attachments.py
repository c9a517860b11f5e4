"""Validation of attachments against the configured limits, before anything is written.

Rules apply in this order, and the first that fails decides: attachments are enabled, file count;
then for each file in turn its name, duplicate names, base64, its size, total size so far.
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

# File names: which are valid, and which a file system may treat as the same.


NAME_BYTES_MAX = 255
MANIFEST_NAME = ".manifest.json"
_NOT_NAMES = frozenset(("", ".", ".."))
_SEPARATORS = frozenset("/\\")

# The characters that JavaScript's `trim` removes. Python's `strip` would also remove control
# characters, which must be refused instead.
_SPACES = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def trim_name(name: str) -> str:
    """Return the name without surrounding whitespace: the name under which the file is written."""
    return name.strip(_SPACES)


def is_file_name(name: str) -> bool:
    """Return True if a trimmed name is a single visible file name in a folder.

    Refused are path separators of any system; control, invisible, bidirectional and line-break
    characters; code points that are not characters; `.` and `..`; any spelling of the manifest's
    name; and more than 255 UTF-8 bytes. Homoglyphs and device names are allowed.
    """
    if name in _NOT_NAMES or any(_is_refused(char) for char in name):
        return False
    return len(name.encode()) <= NAME_BYTES_MAX and fold_name(name) != MANIFEST_NAME


def fold_name(name: str) -> str:
    """Return a key that is equal for names a file system may treat as the same.

    Such names differ only in case or Unicode normalization.
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def visible_sign(char: str) -> str:
    """Return the character, or its escape (`\\u202e`) if it is invisible."""
    if not _is_unseen(char):
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def _is_refused(char: str) -> bool:
    return char in _SEPARATORS or _is_unseen(char)


def _is_unseen(char: str) -> bool:
    category = unicodedata.category(char)
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
    """A file as the request gives it.

    `content` is text, or base64 if `encoding` is exactly `base64`.
    """

    name: str
    content: str = field(repr=False)
    encoding: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class AcceptedFile:
    """A validated file.

    Attributes:
        name: A single file name.
        content: The decoded content.
        sha256: Hash of the content, in hexadecimal.
        mime_type: Type given by the request, if printable.
    """

    name: str
    content: bytes = field(repr=False)
    sha256: str
    mime_type: str | None = None


@dataclass(frozen=True, slots=True)
class AcceptedFiles:
    """Validated files in request order, with no two names that a file system may treat as the same.

    Empty if nothing was attached; then no step is needed.
    """

    files: tuple[AcceptedFile, ...] = ()

    @property
    def count(self) -> int:
        return len(self.files)

    @property
    def total_bytes(self) -> int:
        """Return the total size of all contents."""
        return sum(len(file.content) for file in self.files)


@dataclass(frozen=True, slots=True)
class AttachmentRefusal:
    """Reason for refusing the attachments.

    `text` goes to the caller unchanged; names in it are cut and on one line.
    """

    status: RefusalStatus
    text: str


def check_attachments(
    attachments: Sequence[RequestedAttachment], limits: Attachments
) -> AcceptedFiles | AttachmentRefusal:
    """Validate the attachments of a request: return all of them, or the first refusal."""
    if not attachments:
        return AcceptedFiles()
    unread = check_unread_attachments(len(attachments), limits)
    if unread is not None:
        return unread
    judged: list[AcceptedFile] = []
    taken: set[str] = set()
    total_bytes = 0
    for attachment in attachments:
        name = trim_name(attachment.name)
        refused = _name_refusal(name, taken)
        if refused is not None:
            return refused
        taken.add(fold_name(name))
        content = _content(attachment, name, limits.max_file_bytes)
        if isinstance(content, AttachmentRefusal):
            return content
        total_bytes += len(content)
        if total_bytes > limits.max_total_bytes:
            return _refusal(
                f"attachments_total_bytes_exceeded (totalBytes={total_bytes} "
                f"maxTotalBytes={limits.max_total_bytes})"
            )
        judged.append(accept_file(name, content, attachment.mime_type))
    return AcceptedFiles(tuple(judged))


def check_unread_attachments(count: int, limits: Attachments) -> AttachmentRefusal | None:
    """Apply the rules of `check_attachments` that need no content: enabled, and file count."""
    if count and not limits.enabled:
        return AttachmentRefusal("forbidden", _DISABLED)
    if count > limits.max_files:
        return _refusal(f"attachments_file_count_exceeded (maxFiles={limits.max_files})")
    return None


def accept_file(name: str, content: bytes, mime_type: str | None = None) -> AcceptedFile:
    """Return the file, given a valid name. An unprintable or overlong MIME type is dropped."""
    return AcceptedFile(
        name, content, hashlib.sha256(content).hexdigest(), _printable_type(mime_type)
    )


def write_failed_refusal(reason: str) -> AttachmentRefusal:
    """Return the refusal for accepted files that could not be written.

    Args:
        reason: Reason in words for the caller.
    """
    shown = single_line(reason, characters_max=SHOWN_REASON_CHARACTERS_MAX)
    return _refusal(f"attachments_materialization_failed ({shown})")


def mount_path_hint(text: str | None) -> str | None:
    """Return the mount path to show the child, or None if it is empty or not allowed.

    Allowed are letters, digits and `._-/:`, at most 255 characters.
    """
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


def _content(
    attachment: RequestedAttachment, name: str, bytes_max: int
) -> bytes | AttachmentRefusal:
    if attachment.encoding == "base64":
        decoded = decode_strict_base64(attachment.content, bytes_max)
        if decoded is None:
            return _refusal("attachments_invalid_base64_or_too_large")
        return decoded
    try:
        if len(attachment.content) > bytes_max:
            return _too_large(name, _encoded_length(attachment.content), bytes_max)
        content = attachment.content.encode()
    except UnicodeEncodeError:
        # A lone surrogate. Replacing it would write a file other than the one that was sent.
        return _refusal(f"attachments_invalid_utf8 ({_printable_name(name)})")
    return content if len(content) <= bytes_max else _too_large(name, len(content), bytes_max)


def _encoded_length(text: str) -> int:
    """Return the UTF-8 length, counted in pieces to bound memory for concurrent large texts."""
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
    # Escape only the part that is shown: names may be long.
    visible = "".join(visible_sign(char) for char in name[: SHOWN_NAME_CHARACTERS_MAX + 1])
    return single_line(
        visible + name[SHOWN_NAME_CHARACTERS_MAX + 1 :], characters_max=SHOWN_NAME_CHARACTERS_MAX
    )


def _length_text(name: str) -> str:
    # A lone surrogate, refused separately, is counted as its replacement character.
    size = len(replace_unstorable(name).encode())
    if size <= NAME_BYTES_MAX:
        return ""
    return f"; {size} bytes of UTF-8, at most {NAME_BYTES_MAX} allowed"


def _printable_type(mime_type: str | None) -> str | None:
    shown = (mime_type or "").strip(" ")
    if len(shown) > MIME_TYPE_CHARACTERS_MAX or not _MIME_TYPE.fullmatch(shown):
        return None
    return shown
