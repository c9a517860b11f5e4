"""What a context script is told about the spawn: as arguments, or as one JSON object."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from domain.configuration.context_scripts import BODY_METHODS
from domain.values.json_text import compact_json, text_of
from domain.values.text import replace_unstorable

# What Linux takes as one argument, its end sign included, and well under what it takes in all.
ARGUMENT_BYTES_MAX = 131_071
ARGUMENTS_BYTES_MAX = 1_048_576


class ArgumentsTooLong(ValueError):
    """The values do not fit on a command line; the message names the way out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnVariables:
    """What can be mapped by `argMap`. None is undefined.

    `target_agent_id` is the requested agent, before any override; `task` the task as it was given;
    `cfg` the whole configuration, secrets replaced.
    """

    target_agent_id: str
    task: str
    requester_agent_id: str
    label: str | None = None
    requester_session_key: str | None = None
    cleanup: Literal["delete", "keep"] | None = None
    cfg: Mapping[str, object] | None = None

    def value_of(self, name: str) -> object:
        """The value of the variable `name` as scripts know it; None when it is undefined."""
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
    """Name and text of every mapped variable, in order; undefined is empty, objects are JSON."""
    pairs = []
    for name, variable in arg_map.items():
        value = variables.value_of(variable)
        pairs.append(
            (replace_unstorable(name), "" if value is None else replace_unstorable(text_of(value)))
        )
    return tuple(pairs)


def argument_items(arg_map: Mapping[str, str], variables: SpawnVariables) -> tuple[str, ...]:
    """One item `name=value` for each mapped variable, without quotes: no shell reads them.

    `ArgumentsTooLong` when an item is over 131 071 bytes or all are over 1 MiB.
    """
    items = tuple(f"{name}={text}" for name, text in argument_pairs(arg_map, variables))
    sizes = [len(item.encode()) for item in items]
    for item, size in zip(items, sizes, strict=True):
        if size > ARGUMENT_BYTES_MAX:
            name = item.partition("=")[0][:80]
            raise ArgumentsTooLong(
                f'argument "{name}" has {size} bytes and an argument may have at most '
                f'{ARGUMENT_BYTES_MAX}; use format "json" or leave it out of argMap'
            )
    if sum(sizes) > ARGUMENTS_BYTES_MAX:
        raise ArgumentsTooLong(
            f"the arguments have {sum(sizes)} bytes in all and may have at most "
            f'{ARGUMENTS_BYTES_MAX}; use format "json"'
        )
    return items


def json_input(arg_map: Mapping[str, str], variables: SpawnVariables) -> str:
    """The JSON object of the mapped variables; undefined ones are absent."""
    found = {name: variables.value_of(variable) for name, variable in arg_map.items()}
    return replace_unstorable(
        compact_json({name: value for name, value in found.items() if value is not None})
    )


# The request that a context script at a URL is called with.


URL_BYTES_MAX = 8192
_TOO_LONG = f"the URL would have more than {URL_BYTES_MAX} bytes; use method POST"


def request_url(
    uri: str, method: str, arg_map: Mapping[str, str], variables: SpawnVariables
) -> str:
    """The URL that is called: without a fragment, and for a method without a body with each mapped
    variable in its query, percent-encoded; undefined is empty. `ArgumentsTooLong` when it is over
    8192 bytes."""
    url = uri.partition("#")[0]
    pairs = () if method in BODY_METHODS else argument_pairs(arg_map, variables)
    # Encoding makes nothing shorter, and need not be done to a whole configuration in vain.
    if sum(len(name) + len(text) for name, text in pairs) > URL_BYTES_MAX:
        raise ArgumentsTooLong(_TOO_LONG)
    query = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs)
    if query:
        between = "" if url.endswith(("?", "&")) else "&" if "?" in url else "?"
        url = f"{url}{between}{query}"
    if len(url.encode()) > URL_BYTES_MAX:
        raise ArgumentsTooLong(_TOO_LONG)
    return url


def request_body(method: str, arg_map: Mapping[str, str], variables: SpawnVariables) -> str | None:
    """The JSON object of the mapped variables for a method with a body; None for another, and
    where none is mapped."""
    if method not in BODY_METHODS or not arg_map:
        return None
    return json_input(arg_map, variables)
