"""References and secrets in a configuration file.

`${NAME}` refers to an environment variable, and `$${NAME}` is the literal text `${NAME}`. `{"file":
"path"}` refers to the first line of a file. `{"$secret": "/pointer"}` refers to a value in the file
that a revision was read from; only spawnlog writes it, into stored revisions.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag

_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class SecretReference(BaseModel):
    """Location of a secret in the file from which a stored revision was read."""

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
        KeyError: A name has no value.
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
"""Text that may be secret: as in the file, or a reference in a revision that was read back."""


# Names that indicate a secret.


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
_WHOLE_NAMES = frozenset({"pass", "pwd", "bearer", "dsn", "webhook"})
_NOT_SECRET = frozenset(
    {
        # In sections that spawnlog reads.
        "mainkey",
        "returnkey",
        "errorkey",
        "agentidoverridekey",
        # In sections of other programs: session names, and public halves of key pairs.
        "sessionkey",
        "defaultsessionkey",
        "publickey",
    }
)

# These are credentials in the query of a URL, and ordinary words elsewhere.
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

# Names that count something if the value is a number.
_COUNTED = ("tokens", "keys")
_SEPARATORS = re.compile(r"[^a-z0-9]|[0-9]+$")


def is_secret_name(name: str) -> bool:
    """Return True if a value of this name is treated as secret: `apiKey`, `X-Auth-Token`,
    `cookie`.
    """
    plain = _SEPARATORS.sub("", name.lower())
    return (plain in _WHOLE_NAMES or plain.endswith(_ENDINGS)) and plain not in _NOT_SECRET


def is_secret_parameter(name: str) -> bool:
    """Return True if a URL query parameter of this name is treated as secret: `sig`, `code`."""
    plain = _SEPARATORS.sub("", name.lower())
    return is_secret_name(name) or plain in _PARAMETERS or plain.endswith(_PARAMETER_ENDINGS)


def is_count_name(name: str) -> bool:
    """Return True if a number of this name is a count: `maxTokens`, not `token`."""
    return _SEPARATORS.sub("", name.lower()).endswith(_COUNTED)


def is_secret_mapping(name: str) -> bool:
    """Return True if all texts below a mapping of this name are treated as secret."""
    plain = name.lower()
    return plain in ("env", "environment") or plain.endswith("headers")


# Secrets in program arguments: `--token=…`, `Authorization: Bearer …`, `API_KEY=…`, and the
# argument after `--api-key`.


_OPTION = re.compile(r"(?:^|[\s'\"])--?([A-Za-z][\w.-]*)(?:=|\s+)[\"']?([^\s\"']+)")
_BARE_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)")
_ASSIGNMENT = re.compile(r"(?:^|[\s'\"=])([A-Z_][A-Z0-9_]*)=[\"']?([^\s\"']+)")
_HEADER = re.compile(
    r"(^|[\s'\"=]|-H)([A-Za-z][\w-]*):\s*(?:(?:Bearer|Basic|Digest|Token|ApiKey)\s+)?[\"']?([^\s\"']+)",
    re.IGNORECASE,
)
_HEADERS_OF_ONE_WORD = frozenset({"authorization", "cookie"})

# Shell expressions, which are evaluated when the program runs.
_READ_BY_SHELL = re.compile(r"\$(?:[A-Za-z_]\w*|\([^()]*\))|`[^`]*`")
_PLACEHOLDER = "{prompt}"

# Boolean options, which take no value.
_BOOLEAN_OPTION = re.compile(r"(?:no|with|without|use|require|skip|show|print)[-_]", re.IGNORECASE)
_BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "none", "null"})

# "Key" alone may also be a sort key.
_KEY = ("key", "keys")
_KEY_TO_SOMETHING = re.compile(
    r"(?:^|access|account|api|app|auth|client|consumer|deploy|encryption|license|master|private"
    r"|secret|service|shared|signing|ssh|storage|subscription)[-_.]?keys?$",
    re.IGNORECASE,
)
_MAYBE_FILES = ("cookie", "cookies", "credential", "credentials")
_FILE = re.compile(r"\.{0,2}/|~")
_NUMBER = re.compile(r"[0-9.,:_-]+")


def secret_arguments(arguments: Sequence[object]) -> frozenset[int]:
    """Return the indexes of the arguments that contain a secret.

    `${NAME}` alone is not a secret. Neither is `$NAME` or `$(…)` in an argument with spaces, which
    may be a shell program.
    """
    found: set[int] = set()
    before: object = None
    for index, argument in enumerate(arguments):
        if isinstance(argument, str) and (
            _follows_secret_option(argument, before) or _contains_secret(argument)
        ):
            found.add(index)
        before = argument
    return frozenset(found)


def _follows_secret_option(argument: str, before: object) -> bool:
    option = _BARE_OPTION.fullmatch(before) if isinstance(before, str) else None
    if option is None or argument.startswith("-") or _BOOLEAN_OPTION.match(option[1]):
        return False
    return _is_secret(option[1], argument)


def _contains_secret(argument: str) -> bool:
    may_be_program = len(argument.split()) > 1
    text = _READ_BY_SHELL.sub("${READ}", argument) if may_be_program else argument
    return any(_is_secret(name, value) for name, value in _named_values(text))


def _named_values(text: str) -> Iterator[tuple[str, str]]:
    for option in _OPTION.finditer(text):
        is_boolean = "=" not in option[0] and _BOOLEAN_OPTION.match(option[1])
        if not is_boolean and not option[2].startswith("-"):
            yield option[1], option[2]
    for assignment in _ASSIGNMENT.finditer(text):
        yield assignment[1], assignment[2]
    for header in _HEADER.finditer(text):
        # Elsewhere a word before a colon is more likely part of a program or a sentence.
        is_whole = not header[1] and header.start() == 0
        if is_whole or "-" in header[2] or header[2].lower() in _HEADERS_OF_ONE_WORD:
            yield header[2], header[3]


def _is_secret(name: str, value: str) -> bool:
    if not is_secret_name(name) or not without_references(value):
        return False
    if value == _PLACEHOLDER or value.lower() in _BOOLEANS:
        return False
    if name.lower().endswith(_KEY):
        if not _KEY_TO_SOMETHING.search(name) or _FILE.match(value):
            return False
        return not (_NUMBER.fullmatch(value) and (name.lower() == "key" or is_count_name(name)))
    if name.lower().endswith(_MAYBE_FILES) and _FILE.match(value):
        return False
    return not (_NUMBER.fullmatch(value) and is_count_name(name))


# Secrets in URLs: detection and masking.


MASK = "[secret]"
_ENCODINGS_MAX = 3

# Possessive quantifiers and the lookbehind keep the search linear on long words; otherwise it would
# rescan the rest of the word from each letter.
_SCHEME = re.compile(r"(?<![A-Za-z0-9+.-])[0-9+.-]*+[A-Za-z][A-Za-z0-9+.-]*+://")
_USERINFO = re.compile(r"(?<=://)[^\s/?#]*(?=@)")

# A colon that is not followed by a port starts a password that contains a slash or similar.
_NO_PORT = re.compile(r"(?<=://)[^\s/?#@:\[]+:(?!\d*(?:[/?#,]|$)|\$\{)")
_PARAMETER = re.compile(r"([?&;#])([^\s?&;#=]+)=([^\s&;#]+)")
_WORD = re.compile(r"\S+")

# The common user name of git over SSH, which is not a secret.
_GIT_USER = "git"


def has_secret_url(text: str) -> bool:
    """Return True if a URL in the text contains a user name, a password or a secret query
    parameter.

    A part that is `${NAME}` alone is a reference, not a secret.
    """
    return any(_mask_word(word) != word for word in _WORD.findall(text))


def without_url_secrets(text: str) -> str:
    """Replace each user name, password and secret query parameter of URLs with `[secret]`."""
    return _WORD.sub(lambda match: _mask_word(match[0]), text)


def _mask_word(word: str) -> str:
    """Return the word without secrets.

    If a percent-encoded URL inside the word contains a secret, the whole word is masked.
    """
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
    no_port = _NO_PORT.search(masked)
    if no_port and "@" in masked[no_port.end() :]:
        masked = f"{masked[: no_port.start()]}{MASK}{masked[masked.rindex('@') :]}"
    return _PARAMETER.sub(_parameter, masked)


def _userinfo(match: re.Match[str]) -> str:
    written = match[0]
    is_known = written == _GIT_USER or not without_references(written).strip(":")
    return written if is_known else MASK


def _parameter(match: re.Match[str]) -> str:
    before, name, value = match.groups()
    if not is_secret_parameter(unquote(name)) or not without_references(value):
        return match[0]
    return f"{before}{name}={MASK}"
