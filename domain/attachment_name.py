"""What a file that is attached may be called, and which names a file system may take for one."""

import unicodedata

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
