"""References in a configuration file: environment variables and secrets.

`${NAME}` is an environment variable, `$${NAME}` the literal text `${NAME}`, `{"file": "path"}` the
first line of a file, and `{"$secret": "/pointer"}` a value of the file that a revision was read
from. Only spawnlog writes the last, into the revisions that it keeps.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag

_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class SecretReference(BaseModel):
    """The place of a secret in the file that a kept revision was read from."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True
    )

    pointer: str = Field(alias="$secret")


def variable_named_by(text: str) -> str | None:
    """Return NAME if the whole text is `${NAME}`, else None."""
    match = _VARIABLE.fullmatch(text)
    return match[2] if match and not match[1] else None


def variables_in(text: str) -> tuple[str, ...]:
    """Return every NAME that the text refers to as `${NAME}`, in order."""
    return tuple(name for escape, name in _VARIABLE.findall(text) if not escape)


def without_references(text: str) -> str:
    """Return the text without its `${NAME}` references."""
    return _VARIABLE.sub(lambda match: match[0] if match[1] else "", text)


def with_variables(text: str, values: dict[str, str]) -> str:
    """Replace each `${NAME}` once and unescape each `$${NAME}`.

    Raises:
        KeyError: a name has no value.
    """
    return _VARIABLE.sub(lambda match: match[0][1:] if match[1] else values[match[2]], text)


def _kind(value: Any) -> str | None:
    if isinstance(value, str):
        return "text"
    is_reference = isinstance(value, SecretReference) or (
        isinstance(value, dict) and set(value) == {"$secret"}
    )
    return "reference" if is_reference else None


SecretText = Annotated[
    Annotated[str, Strict(), Tag("text")] | Annotated[SecretReference, Tag("reference")],
    Discriminator(_kind, custom_error_type="secret_text", custom_error_message="must be a string"),
]
"""A text that may be secret: as the file has it, or a reference in a revision read back."""


# Which names announce a secret.


_ENDINGS = (
    "key",
    "keys",
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "authorization",
    "credential",
    "credentials",
    "cookie",
    "cookies",
    "databaseurl",
    "connectionstring",
    "webhookurl",
)
_WHOLE = frozenset({"pass", "pwd", "bearer", "dsn", "webhook"})
_HARMLESS = frozenset(
    {
        # of the sections that spawnlog reads
        "mainkey",
        "returnkey",
        "errorkey",
        "agentidoverridekey",
        # of the sections that other programs read: names of sessions, and halves meant for all
        "sessionkey",
        "defaultsessionkey",
        "publickey",
    }
)

# In the query of a URL these are credentials, elsewhere they are words like others.
_PARAMETER_ENDINGS = (
    "signature",
    "sig",
    "auth",
    "authcode",
    "authorizationcode",
    "sessionid",
    "jwt",
    "hmac",
)
_PARAMETERS = frozenset({"code", "otp", "pin", "sid", "assertion"})

# So many of them, where the value is a number.
_COUNTED = ("tokens", "keys")
_SIGNS = re.compile(r"[^a-z0-9]|[0-9]+$")


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is taken for a secret: `apiKey`, `X-Auth-Token`, `cookie`."""
    plain = _SIGNS.sub("", name.lower())
    return (plain in _WHOLE or plain.endswith(_ENDINGS)) and plain not in _HARMLESS


def is_secret_parameter(name: str) -> bool:
    """Whether a value of this name in the query of a URL is taken for a secret: `sig`, `code`."""
    plain = _SIGNS.sub("", name.lower())
    return is_secret_name(name) or plain in _PARAMETERS or plain.endswith(_PARAMETER_ENDINGS)


def is_count_name(name: str) -> bool:
    """Whether a number of this name says how many: `maxTokens`, not `token`."""
    return _SIGNS.sub("", name.lower()).endswith(_COUNTED)


def is_secret_mapping(name: str) -> bool:
    """Whether every text below a mapping of this name is taken for a secret."""
    plain = name.lower()
    return plain in ("env", "environment") or plain.endswith("headers")


# Which arguments of a program show themselves as secrets: `--token=…`, `Authorization: Bearer …`,
# `API_KEY=…`, and what follows `--api-key`.


_OPTION = re.compile(r"(?:^|[\s'\"])--?([A-Za-z][\w.-]*)(?:=|\s+)[\"']?([^\s\"']+)")
_BARE_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)")
_ASSIGNMENT = re.compile(r"(?:^|[\s'\"=])([A-Z_][A-Z0-9_]*)=[\"']?([^\s\"']+)")
_HEADER = re.compile(
    r"(^|[\s'\"=]|-H)([A-Za-z][\w-]*):\s*(?:(?:Bearer|Basic|Digest|Token|ApiKey)\s+)?[\"']?([^\s\"']+)",
    re.IGNORECASE,
)
_HEADERS_OF_ONE_WORD = frozenset({"authorization", "cookie"})

# In a program for a shell these stand for what is read when it runs.
_READ_BY_SHELL = re.compile(r"\$(?:[A-Za-z_]\w*|\([^()]*\))|`[^`]*`")
_PLACEHOLDER = "{prompt}"

# Options that are a decision, and take nothing.
_DECISION = re.compile(r"(?:no|with|without|use|require|skip|show|print)[-_]", re.IGNORECASE)
_DECIDED = frozenset({"true", "false", "yes", "no", "on", "off", "none", "null"})

# By a key one sorts, too.
_KEY = ("key", "keys")
_KEY_TO_SOMETHING = re.compile(
    r"(?:^|access|account|api|app|auth|client|consumer|deploy|encryption|license|master|private"
    r"|secret|service|shared|signing|ssh|storage|subscription)[-_.]?keys?$",
    re.IGNORECASE,
)
_FILES_TOO = ("cookie", "cookies", "credential", "credentials")
_FILE = re.compile(r"\.{0,2}/|~")
_NUMBER = re.compile(r"[0-9.,:_-]+")


def secret_arguments(arguments: Sequence[object]) -> frozenset[int]:
    """The indexes of the arguments that hold a secret. What is wholly `${NAME}` is none, nor is
    `$NAME` or `$(…)` in an argument with blanks, which may be a program for a shell."""
    found: set[int] = set()
    before: object = None
    for index, argument in enumerate(arguments):
        if isinstance(argument, str) and (
            _follows_secret_option(argument, before) or _shows_secret(argument)
        ):
            found.add(index)
        before = argument
    return frozenset(found)


def _follows_secret_option(argument: str, before: object) -> bool:
    option = _BARE_OPTION.fullmatch(before) if isinstance(before, str) else None
    if option is None or argument.startswith("-") or _DECISION.match(option[1]):
        return False
    return _is_secret(option[1], argument)


def _shows_secret(argument: str) -> bool:
    may_be_program = len(argument.split()) > 1
    text = _READ_BY_SHELL.sub("${READ}", argument) if may_be_program else argument
    return any(_is_secret(name, value) for name, value in _named_values(text))


def _named_values(text: str) -> Iterator[tuple[str, str]]:
    for option in _OPTION.finditer(text):
        is_decision = "=" not in option[0] and _DECISION.match(option[1])
        if not is_decision and not option[2].startswith("-"):
            yield option[1], option[2]
    for assignment in _ASSIGNMENT.finditer(text):
        yield assignment[1], assignment[2]
    for header in _HEADER.finditer(text):
        # Anywhere else a word before a colon is more likely a part of a program, or of a sentence.
        is_whole = not header[1] and header.start() == 0
        if is_whole or "-" in header[2] or header[2].lower() in _HEADERS_OF_ONE_WORD:
            yield header[2], header[3]


def _is_secret(name: str, value: str) -> bool:
    if not is_secret_name(name) or not without_references(value):
        return False
    if value == _PLACEHOLDER or value.lower() in _DECIDED:
        return False
    if name.lower().endswith(_KEY):
        if not _KEY_TO_SOMETHING.search(name) or _FILE.match(value):
            return False
        return not (_NUMBER.fullmatch(value) and (name.lower() == "key" or is_count_name(name)))
    if name.lower().endswith(_FILES_TOO) and _FILE.match(value):
        return False
    return not (_NUMBER.fullmatch(value) and is_count_name(name))


# Secrets that stand in a URL: whether there are any, and the URL without them.


MASK = "[secret]"
_ENCODINGS_MAX = 3

# What comes before the first letter is gone over once: from every letter of a long word on, the
# search would go over the rest of it again.
_SCHEME = re.compile(r"(?<![A-Za-z0-9+.-])[0-9+.-]*+[A-Za-z][A-Za-z0-9+.-]*+://")
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
