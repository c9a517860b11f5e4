"""Redact the secrets of a configuration for storage, and resolve them at the time of use."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domain.configuration.context_scripts import SPAWN_VARIABLES
from domain.configuration.problems import (
    ConfigurationError,
    ConfigurationProblem,
    parts_of,
    pointer_of,
)
from domain.configuration.secrets import (
    has_secret_url,
    is_count_name,
    is_secret_mapping,
    is_secret_name,
    secret_arguments,
    variable_named_by,
    variables_in,
    with_variables,
)

SECRET_FILE_BYTES_MAX = 64 * 1024

_REFERENCE = "$secret"
# The keys below these are free names and say nothing about their values.
_NAMES_BELOW = frozenset({"/models/providers", "/agents/defaults/models"})
_NO_SECRETS = frozenset({"/spawnlog/tokens"})
_ADDRESS_OF_HOOK = re.compile(r"/spawnlog/(?:hooks/[^/]*|announce/webhooks/[0-9]+)/url")
_REFERENCE_SHAPES = (frozenset({"file"}), frozenset({"source", "provider", "id"}))
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


def redact(values: Any) -> tuple[Any, tuple[str, ...]]:
    """Replace each secret by `{"$secret": pointer}`.

    Secrets are:

    - each text and number under a name such as `apiKey` or `token`, and below `env` and `headers`,
      except numbers that are counts (`tokensMax`)
    - each text that is evidently a secret: a private key, or a URL with a user name, a password or
      a query parameter such as `sig`
    - an item of a list such as `--token=…`
    - the address of a hook or webhook, if it has a query

    A text that is entirely `${NAME}` is already a reference and stays.

    Returns:
        A copy of the values, and the pointers of the secrets in order.
    """
    pointers: list[str] = []
    return _redact_value(values, "", False, pointers), tuple(pointers)


def _redact_value(value: Any, pointer: str, is_secret: bool, pointers: list[str]) -> Any:
    if isinstance(value, list):
        arguments = secret_arguments(value)
        return [
            _redact_value(item, f"{pointer}/{index}", is_secret or index in arguments, pointers)
            for index, item in enumerate(value)
        ]
    if not isinstance(value, dict):
        is_address = _ADDRESS_OF_HOOK.fullmatch(pointer) is not None and "?" in str(value)
        if not _is_secret_value(value, is_secret or is_address):
            return value
        pointers.append(pointer)
        return {_REFERENCE: pointer}
    if set(value) == {_REFERENCE} or (is_secret and frozenset(value) in _REFERENCE_SHAPES):
        return dict(value)
    stored = {}
    for key, member in value.items():
        inner = pointer + pointer_of([key])
        is_plain = _is_number(member) and is_count_name(key)
        if is_plain or (pointer.endswith("/argMap") and member in SPAWN_VARIABLES):
            stored[key] = member
        else:
            announced = is_secret or _names_a_secret(key, inner, pointer)
            stored[key] = _redact_value(member, inner, announced, pointers)
    return stored


def _is_secret_value(value: Any, is_secret: bool) -> bool:
    if isinstance(value, str):
        if not value or variable_named_by(value) is not None:
            return False
        return is_secret or is_evident_secret(value)
    return is_secret and _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _names_a_secret(key: str, pointer: str, parent: str) -> bool:
    if parent in _NAMES_BELOW or pointer in _NO_SECRETS:
        return False
    return is_secret_name(key) or is_secret_mapping(key)


def is_evident_secret(text: str) -> bool:
    """Return True if a text is a secret by its form: a private key, or a URL that contains one."""
    return _PRIVATE_KEY.search(text) is not None or has_secret_url(text)


def misplaced_secret_text(pointer: str) -> str:
    """Return the message for a secret in a section of spawnlog that has no place for one."""
    *above, last = ("", *parts_of(pointer))
    if above[-1] == "command":
        return (
            "holds a secret, but arguments are visible to every user of this machine and stored"
            ' with each revision; put it into the env of the runtime as NAME: "${NAME}" and read'
            " it there"
        )
    if last == "uri":
        return (
            "must not hold a user name, a password or a secret in its query; write ${NAME}"
            " instead, which is replaced from the environment when the script runs"
        )
    return (
        "holds a secret, but this text is stored with each revision; "
        "put it into the env of the runtime"
    )


def secret_at(values: Any, pointer: str) -> str:
    """Return the text at a pointer of the file.

    Raises:
        ConfigurationError: There is no text at the pointer.
    """
    here = values
    for part in parts_of(pointer):
        if isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        elif isinstance(here, dict) and part in here:
            here = here[part]
        else:
            here = None
    if isinstance(here, str):
        return here
    message = "the active revision needs a text here; this server was started with a different file"
    raise ConfigurationError([ConfigurationProblem(message, pointer=pointer)])


def expand_environment(text: str, variables: Mapping[str, str] | None = None) -> str:
    """Replace each `${NAME}` in a text.

    Args:
        text: The text.
        variables: Variables by name. Default: the environment of this process.

    Raises:
        ConfigurationError: Some variables are not set; it names them.
    """
    known = os.environ if variables is None else variables
    names = variables_in(text)
    missing = [name for name in dict.fromkeys(names) if name not in known]
    if missing:
        raise ConfigurationError(
            ConfigurationProblem("is not set, but the configuration refers to it", source=name)
            for name in missing
        )
    return with_variables(text, {name: known[name] for name in names})


def secret_in_file(path: Path) -> str:
    """Return the text of a file that holds one secret, stripped.

    Raises:
        ConfigurationError: The file cannot be read, is too large, or does not hold one printable
            line.
    """
    source = str(path)
    try:
        if not path.is_file():
            message = "is not a file; a secret must be in a regular file"
            raise ConfigurationError([ConfigurationProblem(message, source)])
        with path.open("rb") as file:
            content = file.read(SECRET_FILE_BYTES_MAX + 1)
        text = content.decode("utf-8").strip()
    except OSError as failure:
        raise ConfigurationError(
            [ConfigurationProblem(f"cannot be read: {failure.strerror}", source)]
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError([ConfigurationProblem("is not UTF-8", source)]) from None
    if len(content) > SECRET_FILE_BYTES_MAX:
        message = f"is larger than {SECRET_FILE_BYTES_MAX // 1024} KiB"
        raise ConfigurationError([ConfigurationProblem(message, source)])
    if not text or not text.isprintable():
        raise ConfigurationError(
            [ConfigurationProblem("must hold one line with the secret", source)]
        )
    return text
