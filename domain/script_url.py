"""The request that a context script at a URL is called with."""

from collections.abc import Mapping
from urllib.parse import quote

from domain.configuration.context_scripts import BODY_METHODS
from domain.context.script_request import (
    ArgumentsTooLong,
    SpawnVariables,
    argument_pairs,
    json_input,
)

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
