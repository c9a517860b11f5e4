"""Environment variables in the texts of a configuration file.

OpenClaw replaces `${NAME}` in every text when it reads its file. spawnlog does the same in the
sections that it shares with OpenClaw. Texts that may hold a secret keep the reference; it is
resolved at the time of use (`LoadedConfiguration.resolve`).
"""

import os
import re
from collections import ChainMap
from collections.abc import Container, Iterator, Mapping
from typing import Any

from domain.configuration.problems import pointer_of
from domain.configuration.secrets import (
    is_secret_mapping,
    is_secret_name,
    variables_in,
    with_variables,
)
from domain.configuration.warnings import ConfigurationWarning, ValuePath

SECTIONS = ("agents", "tools", "models", "session")
_RESOLVED_AT_USE = frozenset({"workspace", "agentDir", "uri"})
_OF_A_RUNTIME = frozenset({"model", "models"})
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_UNSET = "${{{name}}} is not set or empty, so it is not replaced"
_UNSET_AT_USE = "{names} {verb} not set in this environment, so what needs this text will fail"
_LOWER_CASE = "${{{name}}} is not replaced: the name of a variable has only capitals, digits and _"
_NOT_EXPANDED = (
    "${{{name}}} is not replaced: it is named like a secret or an address, and this text is"
    " stored with each revision; rename the variable if it holds neither"
)
_NESTED = "${{{name}}} holds ${{{inner}}}, which is not set or empty, so it is not replaced"
# Words of a variable name that mark a secret, or an address that may contain one.
# fmt: off
_SECRET_WORDS = frozenset({
    "APIKEY", "AUTH", "AUTHORIZATION", "BEARER", "CERT", "COOKIE", "CRED", "CREDENTIAL",
    "CREDENTIALS", "CREDS", "DSN", "HMAC", "HOOK", "JWT", "KEY", "KEYS", "OTP", "PASS",
    "PASSPHRASE", "PASSWD", "PASSWORD", "PAT", "PIN", "PRIVATE", "PWD", "SALT", "SECRET",
    "SECRETS", "SESSION", "SIG", "SIGNATURE", "TOKEN", "TOKENS", "URI", "URL", "WEBHOOK",
})
# fmt: on


def file_variables(values: Any, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables set in the `env` section of a file, by name.

    A value may refer to variables of `environment`. They are replaced if all of them are set.

    Args:
        values: Values of the file.
        environment: Environment variables. Default: those of this process.
    """
    known = os.environ if environment is None else environment
    section = values.get("env") if isinstance(values, dict) else None
    if not isinstance(section, dict):
        return {}
    inner = section.get("vars")
    named = {**section, **inner} if isinstance(inner, dict) else section
    return {
        name: with_variables(text, dict(known))
        if all(known.get(variable) for variable in variables_in(text))
        else text
        for name, text in named.items()
        if isinstance(text, str)
    }


def known_variables(
    in_file: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Return the variables of `environment` (default: this process), then those of the file."""
    return ChainMap(os.environ if environment is None else dict(environment), dict(in_file))


def resolve_variables(
    values: dict[str, Any], variables: Mapping[str, str]
) -> tuple[dict[str, Any], tuple[ConfigurationWarning, ...]]:
    """Replace `${NAME}` in texts that hold no secret, and unescape `$${NAME}`.

    Returns:
        A copy of the values, and a warning for each reference that could not be replaced.
    """
    warnings: list[ConfigurationWarning] = []
    resolved = dict(values)
    for section in SECTIONS:
        if section in values:
            resolved[section] = _resolve(values[section], (section,), variables, warnings)
    return resolved, tuple(warnings)


def unset_warnings(
    values: Any, variables: Mapping[str, str], warned: Container[str]
) -> Iterator[ConfigurationWarning]:
    """Yield a warning for each text that refers to a variable that is not set.

    Only for texts whose value has no check of its own: the environment of a runtime, the URI of a
    script, and some settings of the server. They are resolved at their use, which may be long after
    the start.

    Args:
        values: Values of the file, after `resolve_variables`.
        variables: Known variables.
        warned: Pointers of texts with a warning already.
    """
    for section in ("agents", "spawnlog"):
        for path, text in _texts(values.get(section), (section,)):
            missing = [name for name in dict.fromkeys(variables_in(text)) if name not in variables]
            if missing and _is_unchecked(path) and pointer_of(path) not in warned:
                names = ", ".join(f"${{{name}}}" for name in missing)
                message = _UNSET_AT_USE.format(
                    names=names, verb="is" if len(missing) == 1 else "are"
                )
                yield ConfigurationWarning(pointer_of(path), message)


def _is_unchecked(path: ValuePath) -> bool:
    if path[0] == "agents":
        return path[-3:-1] == ("runtime", "env") or path[-1] == "uri"
    return path[1] in ("dataDir", "databaseUrl") or path[1:-1] == ("telemetry", "headers")


def _texts(value: Any, path: ValuePath) -> Iterator[tuple[ValuePath, str]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _texts(member, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, (*path, at))
    elif isinstance(value, str) and "${" in value:
        yield path, value


def _resolve(
    value: Any,
    path: ValuePath,
    variables: Mapping[str, str],
    warnings: list[ConfigurationWarning],
) -> Any:
    if isinstance(value, dict):
        return {
            key: member
            if _is_resolved_at_use(key, path)
            else _resolve(member, (*path, key), variables, warnings)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [_resolve(item, (*path, at), variables, warnings) for at, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    complaints = list(_complaints(value, variables))
    if complaints:
        warnings.append(ConfigurationWarning(pointer_of(path), complaints[0]))
        return value
    return with_variables(value, {name: variables[name] for name in variables_in(value)})


def _is_resolved_at_use(key: str, parent: ValuePath) -> bool:
    if parent[-1] == "runtime":
        return key not in _OF_A_RUNTIME
    return key in _RESOLVED_AT_USE or is_secret_name(key) or is_secret_mapping(key)


def _complaints(text: str, variables: Mapping[str, str]) -> Iterator[str]:
    for name in variables_in(text):
        if not _NAME.fullmatch(name):
            yield _LOWER_CASE.format(name=name)
        elif is_secret_name(name) or not _SECRET_WORDS.isdisjoint(name.split("_")):
            yield _NOT_EXPANDED.format(name=name)
        elif not (value := variables.get(name)):
            yield _UNSET.format(name=name)
        elif inner := variables_in(value):
            yield _NESTED.format(name=name, inner=inner[0])
