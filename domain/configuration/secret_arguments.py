"""Which arguments of a program show themselves as secrets: `--token=…`, `Authorization: Bearer …`,
`API_KEY=…`, and what follows `--api-key`."""

import re
from collections.abc import Iterator, Sequence

from domain.configuration.secret_names import is_count_name, is_secret_name
from domain.configuration.secrets import without_references

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
