"""Secrets that stand in a URL: whether there are any, and the URL without them."""

import re
from urllib.parse import unquote

from domain.configuration.secret_names import is_secret_parameter
from domain.configuration.secrets import without_references

MASK = "[secret]"
_ENCODINGS_MAX = 3

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_USERINFO = re.compile(r"(?<=://)[^\s/?#]*(?=@)")
# What follows a colon and is no port belongs to a password with a slash or the like in it.
_NO_PORT = re.compile(r"(?<=://)[^\s/?#@:\[]+:(?!\d*(?:[/?#,]|$)|\$\{)")
_PARAMETER = re.compile(r"([?&;#])([^\s?&;#=]+)=([^\s&;#]+)")
_WORD = re.compile(r"\S+")
# Whoever clones is this user: it tells nothing.
_EVERYBODY = "git"


def has_secret_url(text: str) -> bool:
    """Whether a URL anywhere in the text holds a user name, a password, or a query parameter
    named like a secret. What is wholly `${NAME}` is a reference and none."""
    return any(_mask_word(word) != word for word in _WORD.findall(text))


def without_url_secrets(text: str) -> str:
    """The text with `[secret]` in the place of each user name, password and such parameter."""
    return _WORD.sub(lambda match: _mask_word(match[0]), text)


def _mask_word(word: str) -> str:
    """The word without secrets. A URL may stand in the query of another one, where its signs are
    written `%40`: such a word is not taken apart."""
    masked = _as_written(word)
    plain = masked
    for _ in range(_ENCODINGS_MAX):
        if "%" not in plain:
            break
        plain = unquote(plain)
        if _as_written(plain) != plain:
            return MASK
    return masked


def _as_written(word: str) -> str:
    if not word.startswith("/") and not _SCHEME.search(word):
        return word
    masked = _USERINFO.sub(_userinfo, word)
    wrong = _NO_PORT.search(masked)
    if wrong and "@" in masked[wrong.end() :]:
        masked = f"{masked[: wrong.start()]}{MASK}{masked[masked.rindex('@') :]}"
    return _PARAMETER.sub(_parameter, masked)


def _userinfo(match: re.Match[str]) -> str:
    written = match[0]
    is_known = written == _EVERYBODY or not without_references(written).strip(":")
    return written if is_known else MASK


def _parameter(match: re.Match[str]) -> str:
    before, name, value = match.groups()
    if not is_secret_parameter(unquote(name)) or not without_references(value):
        return match[0]
    return f"{before}{name}={MASK}"
