"""What a configuration may say of context scripts and can hardly mean."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import BODY_METHODS, ContextScript
from domain.configuration.problems import pointer_of
from domain.configuration.secrets import variables_in
from domain.configuration.warnings import ConfigurationWarning

_NO_EFFECT = (
    "has no effect at a URL that is called with {method}: what is mapped goes as a JSON body"
)
_LARGE = "maps cfg, the whole configuration, which has hardly room there; use {instead}"
_PLAIN = (
    "is plain http to another machine: whoever is between can read and change what the script is"
    " told and answers; use https"
)


def script_warnings(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    """A format that counts for nothing, a configuration that is an argument or in a URL, plain
    http to another machine."""
    at = ("agents", "defaults", "subagents", "contextScripts", "run")
    yield from _check_scripts(configuration.subagent_defaults.context_scripts.run, at)
    for index, agent in enumerate(configuration.agents.list):
        own = ("agents", "list", index, "subagents", "contextScripts", "run")
        yield from _check_scripts(agent.subagents.context_scripts.run, own)


def is_unprotected(url: str) -> bool:
    """Whether what is sent to the URL leaves this machine without protection."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if parts.scheme.lower() != "http" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return True


def _check_scripts(
    scripts: Sequence[ContextScript], path: tuple[str | int, ...]
) -> Iterator[ConfigurationWarning]:
    for index, script in enumerate(scripts):
        here = (*path, index)
        has_body = script.is_remote and script.method in BODY_METHODS
        if has_body and script.format == "arguments" and "format" in script.model_fields_set:
            yield ConfigurationWarning(
                pointer_of((*here, "format")), _NO_EFFECT.format(method=script.method)
            )
        if "cfg" in script.arg_map.values():
            yield from _check_size(script, has_body, (*here, "argMap"))
        if (
            script.is_remote
            and not variables_in(script.uri.split("/")[2])
            and is_unprotected(script.uri)
        ):
            yield ConfigurationWarning(pointer_of((*here, "uri")), _PLAIN)


def _check_size(
    script: ContextScript, has_body: bool, here: tuple[str | int, ...]
) -> Iterator[ConfigurationWarning]:
    if script.is_remote and not has_body:
        yield ConfigurationWarning(pointer_of(here), _LARGE.format(instead="method POST"))
    if not script.is_remote and script.format == "arguments":
        yield ConfigurationWarning(pointer_of(here), _LARGE.format(instead='format "json"'))
