"""Context scripts: programs or URLs called before a spawn, their order, and how output is read."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal, get_args
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from domain.configuration.secrets import has_secret_url, is_secret_name, variables_in
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
"""Maximum number of scripts for one spawn."""
SCRIPT_TIMEOUT_SECONDS = 10
"""Timeout of a script if neither the script nor the server sets one."""
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
QUERY_METHODS = frozenset({"GET", "DELETE", "HEAD"})

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_url(uri: str) -> bool:
    """Return True if a script is called over HTTP. Anything else is a local program."""
    return uri.lower().startswith(("http://", "https://"))


def why_no_script_path(uri: str) -> str | None:
    """Return why the `uri` of a local script, its variables replaced, is not a path; else None.

    A URL must not be taken for a path, since errors show paths, and a URL may contain secrets.
    """
    if not is_url(uri) and not has_secret_url(uri):
        return None
    return (
        "is a URL only after its variables are replaced, so it is taken for a file; write http://"
        " or https:// in uri"
    )


def _usable_uri(uri: str) -> str:
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return uri
    if not is_url(uri):
        raise section_error(
            "uri", f"{scheme.group(1)}:// is not supported; use a file path or an HTTP(S) URL"
        )
    try:
        parts = urlsplit(uri)
        host, port, password = parts.hostname, parts.port, parts.password
    except ValueError:
        raise section_error("uri", "is not a valid URL") from None
    if not host or port == 0:
        raise section_error("uri", "is not a valid URL: the host is missing or the port is invalid")
    if password and not variables_in(password):
        raise section_error("uri", "must not contain a password; write ${NAME} in its place")
    for name, value in parse_qsl(parts.query):
        if is_secret_name(name) and not variables_in(value):
            raise section_error(
                "uri", "must not contain a secret in its query; write ${NAME} in its place"
            )
    return uri


def _usable_method(method: str) -> str:
    if method.upper() not in QUERY_METHODS | BODY_METHODS:
        raise section_error("method", "must be GET, DELETE or HEAD, or POST, PUT or PATCH")
    return method.upper()


def _log_level(value: object) -> object:
    # Literal[True, False] would accept 1 and 0, which compare equal.
    if isinstance(value, bool) or value == "verbose":
        return value
    raise section_error("log", 'must be false, true or "verbose"')


ScriptLogLevel = Annotated[Literal[False, True, "verbose"], BeforeValidator(_log_level)]


class ContextScript(OwnSection):
    """A context script. `uri` may contain `${NAME}`, which the caller expands at use."""

    id: NameText
    """Name of the script, unique in its list. Example: `"identity"`"""

    uri: Annotated[NameText, AfterValidator(_usable_uri)]
    """Path of a program, or HTTP URL. A relative path starts at the configuration file; `~` is the
    home of the server's user. `${NAME}` is replaced at each use. Example: `"scripts/identity.sh"`
    """

    format: Literal["arguments", "json"] = "arguments"
    """How a program gets the variables of `argMap`: as `name=value` arguments, or as a JSON object
    on standard input.
    """

    method: Annotated[NameText, AfterValidator(_usable_method)] = "GET"
    """Method of a URL. GET, DELETE and HEAD send the variables in the query; POST, PUT and PATCH
    in a JSON body.
    """

    priority: Number = 0
    """Scripts with a higher number run first; ties keep their order."""

    position: Literal["prepend", "append"] = "append"
    """Where the script's text goes: before the task, or after it."""

    log: ScriptLogLevel = False
    """`true`: one log line per call. `"verbose"`: also arguments, output and winner. Failures are
    always logged.
    """

    error_handling: Literal["continue", "stop"] = "continue"
    """`stop`: after a failure of this script, no later script runs."""

    return_key: NameText | None = None
    """Key of the JSON output that holds the text. Unset: `message`, `content`, `text` or `result`,
    else the whole output. Example: `"message"`"""

    error_key: NameText | None = None
    """Key of the JSON output that holds an error message; if present, the script has failed.
    Example: `"error"`"""

    agent_id_override_key: NameText | None = None
    """Key of the JSON output that holds the id of another agent to run. Example: `"targetAgentId"`
    """

    arg_map: dict[NameText, SpawnVariable] = Field(default_factory=dict)
    """Variables that the script gets: its name for each, and the variable of the spawn. Example:
    `{ agent: "targetAgentId" }`
    """

    timeout_seconds: Annotated[Number, Field(gt=0, le=600)] = SCRIPT_TIMEOUT_SECONDS
    """Timeout of the script in seconds. Unset: `spawnlog.scriptTimeoutSeconds`."""

    @property
    def is_remote(self) -> bool:
        """Return True if the script is called over HTTP."""
        return is_url(self.uri)


ScriptList = Annotated[tuple[ContextScript, ...], Field(max_length=SCRIPTS_MAX)]


class DefaultContextScripts(OwnSection):
    """Scripts that run for every agent."""

    run: ScriptList = ()
    """Scripts for spawns of every agent, at most 50."""


class ContextScripts(OwnSection):
    """An agent's own scripts, and the ids of default scripts to skip."""

    run: ScriptList = ()
    """Scripts for spawns of this agent, at most 50 with the defaults. One with the `id` of a
    default script replaces that.
    """

    ignore: tuple[NameText, ...] = ()
    """Ids of default scripts that do not run for this agent. Example: `["identity"]`"""


def resolve_scripts(
    defaults: Iterable[ContextScript], own: Iterable[ContextScript], ignore: Iterable[str]
) -> tuple[ContextScript, ...]:
    """Return the scripts that apply, in execution order.

    Default scripts that are not ignored come first, then the agent's own. If an id occurs again,
    the later script replaces the earlier one in place. The result is sorted by priority, highest
    first; ties keep their order.
    """
    ignored = frozenset(ignore)
    by_id: dict[str, ContextScript] = {}
    for script in defaults:
        if script.id not in ignored:
            by_id[script.id] = script
    for script in own:
        by_id[script.id] = script
    return tuple(sorted(by_id.values(), key=lambda script: -script.priority))
