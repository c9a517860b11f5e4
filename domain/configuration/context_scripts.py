"""Context scripts: what runs before a spawn, in which order, and how its output is read."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal, get_args
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from domain.configuration.secrets import is_secret_name, variables_in
from domain.configuration.sections import NameText, Number, OwnSection, section_error

SpawnVariable = Literal[
    "targetAgentId",
    "task",
    "label",
    "requesterAgentId",
    "requesterSessionKey",
    "cleanup",
    "cfg",
]
SPAWN_VARIABLES: tuple[str, ...] = get_args(SpawnVariable)

SCRIPTS_MAX = 50
"""So many run for one spawn."""
SCRIPT_TIMEOUT_SECONDS = 10
"""For a script that does not say, where the server does not say either."""
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
QUERY_METHODS = frozenset({"GET", "DELETE", "HEAD"})

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_url(uri: str) -> bool:
    """Whether a script is called over HTTP; anything else is a program on this machine."""
    return uri.lower().startswith(("http://", "https://"))


def _usable_uri(uri: str) -> str:
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return uri
    if not is_url(uri):
        raise section_error(
            "uri", f"{scheme.group(1)}:// is not served; use a file path or an HTTP(S) URL"
        )
    try:
        parts = urlsplit(uri)
        host, port, password = parts.hostname, parts.port, parts.password
    except ValueError:
        raise section_error("uri", "is not a valid URL") from None
    if not host or port == 0:
        raise section_error("uri", "is not a valid URL: it names no host or port")
    if password and not variables_in(password):
        raise section_error("uri", "must not hold a password; write ${NAME} in its place")
    for name, value in parse_qsl(parts.query):
        if is_secret_name(name) and not variables_in(value):
            raise section_error(
                "uri", "must not hold a secret in its query; write ${NAME} in its place"
            )
    return uri


def _usable_method(method: str) -> str:
    if method.upper() not in QUERY_METHODS | BODY_METHODS:
        raise section_error("method", "must be GET, DELETE or HEAD, or POST, PUT or PATCH")
    return method.upper()


def _log_level(value: object) -> object:
    # 1 equals True and 0 equals False, which a list of allowed values does not tell apart.
    if isinstance(value, bool) or value == "verbose":
        return value
    raise section_error("log", 'must be false, true or "verbose"')


ScriptLogLevel = Annotated[Literal[False, True, "verbose"], BeforeValidator(_log_level)]


class ContextScript(OwnSection):
    """One script. `uri` may hold `${NAME}`, replaced by the caller when it is used."""

    id: NameText
    uri: Annotated[NameText, AfterValidator(_usable_uri)]
    format: Literal["arguments", "json"] = "arguments"
    method: Annotated[NameText, AfterValidator(_usable_method)] = "GET"
    priority: Number = 0
    position: Literal["prepend", "append"] = "append"
    log: ScriptLogLevel = False
    error_handling: Literal["continue", "stop"] = "continue"
    return_key: NameText | None = None
    error_key: NameText | None = None
    agent_id_override_key: NameText | None = None
    arg_map: dict[NameText, SpawnVariable] = Field(default_factory=dict)
    timeout_seconds: Annotated[Number, Field(gt=0, le=600)] = SCRIPT_TIMEOUT_SECONDS

    @property
    def is_remote(self) -> bool:
        """Whether it is called over HTTP."""
        return is_url(self.uri)


ScriptList = Annotated[tuple[ContextScript, ...], Field(max_length=SCRIPTS_MAX)]


class DefaultContextScripts(OwnSection):
    """The scripts that run for every agent."""

    run: ScriptList = ()


class ContextScripts(OwnSection):
    """One agent's own scripts, and the ids of default scripts that it leaves out."""

    run: ScriptList = ()
    ignore: tuple[NameText, ...] = ()


def resolve_scripts(
    defaults: Iterable[ContextScript], own: Iterable[ContextScript], ignore: Iterable[str]
) -> tuple[ContextScript, ...]:
    """The scripts that apply, in the order they run.

    The defaults that are not ignored, then the agent's own; of entries with one id the last one
    counts and takes the place of the first; then by priority, highest first, equals as they stood.
    """
    ignored = frozenset(ignore)
    by_id: dict[str, ContextScript] = {}
    for script in defaults:
        if script.id not in ignored:
            by_id[script.id] = script
    for script in own:
        by_id[script.id] = script
    return tuple(sorted(by_id.values(), key=lambda script: -script.priority))
