"""Input of a context script about the spawn: arguments, a JSON object, or an HTTP request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from domain.configuration.context_scripts import BODY_METHODS
from domain.values.json_text import compact_json, text_of
from domain.values.text import replace_unstorable

# Linux limits one argument to 131,072 bytes including NUL; the total is well below its limit.
ARGUMENT_BYTES_MAX = 131_071
ARGUMENTS_BYTES_MAX = 1_048_576


class ArgumentsTooLongError(ValueError):
    """The values do not fit on a command line or in a URL. The message names an alternative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnVariables:
    """Variables that `argMap` can use. None means undefined.

    Attributes:
        target_agent_id: The requested agent, before any override.
        task: The task as given.
        cfg: The whole configuration, with secrets replaced.
    """

    target_agent_id: str
    task: str
    requester_agent_id: str
    label: str | None = None
    requester_session_key: str | None = None
    cleanup: Literal["delete", "keep"] | None = None
    cfg: Mapping[str, object] | None = None

    def value_of(self, name: str) -> object:
        """Return the value of a variable by its name in scripts, or None if it is undefined."""
        values: dict[str, object] = {
            "targetAgentId": self.target_agent_id,
            "task": self.task,
            "label": self.label,
            "requesterAgentId": self.requester_agent_id,
            "requesterSessionKey": self.requester_session_key,
            "cleanup": self.cleanup,
            "cfg": None if self.cfg is None else dict(self.cfg),
        }
        return values.get(name)


def argument_pairs(
    arg_map: Mapping[str, str], variables: SpawnVariables
) -> tuple[tuple[str, str], ...]:
    """Return name and text of each mapped variable, in order.

    Undefined variables are empty. Objects are JSON.

    Args:
        arg_map: Argument name to variable name.
        variables: Values of the variables.
    """
    pairs = []
    for name, variable in arg_map.items():
        value = variables.value_of(variable)
        pairs.append(
            (replace_unstorable(name), "" if value is None else replace_unstorable(text_of(value)))
        )
    return tuple(pairs)


def argument_items(arg_map: Mapping[str, str], variables: SpawnVariables) -> tuple[str, ...]:
    """Return one `name=value` argument per mapped variable, unquoted because no shell reads them.

    Raises:
        ArgumentsTooLongError: An argument exceeds 131,071 bytes, or all of them exceed 1 MiB.
    """
    arguments = tuple(f"{name}={text}" for name, text in argument_pairs(arg_map, variables))
    sizes = [len(argument.encode()) for argument in arguments]
    for argument, size in zip(arguments, sizes, strict=True):
        if size > ARGUMENT_BYTES_MAX:
            name = argument.partition("=")[0][:80]
            raise ArgumentsTooLongError(
                f'argument "{name}" has {size} bytes, more than the {ARGUMENT_BYTES_MAX}'
                ' allowed; use format "json" or remove it from argMap'
            )
    if sum(sizes) > ARGUMENTS_BYTES_MAX:
        raise ArgumentsTooLongError(
            f"the arguments have {sum(sizes)} bytes in total, more than the"
            f' {ARGUMENTS_BYTES_MAX} allowed; use format "json"'
        )
    return arguments


def json_input(arg_map: Mapping[str, str], variables: SpawnVariables) -> str:
    """Return the mapped variables as a JSON object, without undefined ones."""
    found = {name: variables.value_of(variable) for name, variable in arg_map.items()}
    return replace_unstorable(
        compact_json({name: value for name, value in found.items() if value is not None})
    )


# HTTP request to a context script at a URL.


URL_BYTES_MAX = 8192
_TOO_LONG = f"the URL would have more than {URL_BYTES_MAX} bytes; use method POST"


def request_url(
    uri: str, method: str, arg_map: Mapping[str, str], variables: SpawnVariables
) -> str:
    """Return the URL to call, without its fragment.

    For a method without a body, each mapped variable is added to the query, percent-encoded;
    undefined variables are empty.

    Args:
        uri: URL of the script.
        method: HTTP method in upper case.
        arg_map: Parameter name to variable name.
        variables: Values of the variables.

    Raises:
        ArgumentsTooLongError: The URL exceeds 8192 bytes.
    """
    url = uri.partition("#")[0]
    pairs = () if method in BODY_METHODS else argument_pairs(arg_map, variables)
    # Encoding never shortens, so skip encoding a whole configuration that cannot fit.
    if sum(len(name) + len(text) for name, text in pairs) > URL_BYTES_MAX:
        raise ArgumentsTooLongError(_TOO_LONG)
    query = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs)
    if query:
        between = "" if url.endswith(("?", "&")) else "&" if "?" in url else "?"
        url = f"{url}{between}{query}"
    if len(url.encode()) > URL_BYTES_MAX:
        raise ArgumentsTooLongError(_TOO_LONG)
    return url


def request_body(method: str, arg_map: Mapping[str, str], variables: SpawnVariables) -> str | None:
    """Return the mapped variables as a JSON body.

    None if the method has no body, or no variable is mapped.
    """
    if method not in BODY_METHODS or not arg_map:
        return None
    return json_input(arg_map, variables)
