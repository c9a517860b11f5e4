"""Warnings about a configuration that is valid but probably not as intended."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from domain.configuration.agents import (
    ANY_AGENT,
    RUN_TIMEOUT_SECONDS_MAX,
    AgentSubagents,
    SubagentDefaults,
)
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import BODY_METHODS, ContextScript
from domain.configuration.models import ModelChoice
from domain.configuration.problems import nearest_word, pointer_of
from domain.configuration.runtimes import SERVED_RUNTIMES, provides_sandbox
from domain.configuration.secrets import variables_in
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.session_key import GLOBAL, InvalidSessionKeyError
from domain.values.thinking_level import THINKING_LEVELS, normalise_thinking

ValuePath = tuple[str | int, ...]
_DEFAULTS: ValuePath = ("agents", "defaults", "subagents")
_DEFAULT_MODE: ValuePath = ("agents", "defaults", "sandbox", "mode")
_DEFAULT_RUNTIME: ValuePath = ("agents", "defaults", "runtime")
_NO_RUNTIME = (
    "has {runtime}, so every spawn of this agent is refused; give it a runtime of type "
    + " or ".join(SERVED_RUNTIMES)
)
_NO_PRIMARY = "are ignored because no primary model is set"
_NO_SANDBOX = (
    'must run in a sandbox (sandbox.mode "{mode}"), but its runtime does not set'
    " providesSandbox, so every spawn of this agent is refused"
)


@dataclass(frozen=True, slots=True)
class ConfigurationWarning:
    """A warning.

    Attributes:
        pointer: JSON pointer of the value.
        message: Description of the problem.
        nearest: Value that was probably meant.
    """

    pointer: str
    message: str
    nearest: str | None = None


def configuration_warnings(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    """Yield warnings about suspicious settings.

    Checked are: allowed agents that do not exist, invalid thinking levels, sandboxes that no
    runtime provides, token patterns that match no session, duplicate model aliases, fallbacks
    without a primary, agents without a served runtime, and a run timeout that is capped.
    """
    yield from _check_allowed_agents(configuration)
    yield from _check_thinking(configuration)
    yield from _check_sandboxes(configuration)
    yield from _check_tokens(configuration)
    yield from _check_aliases(configuration)
    yield from _check_fallbacks(configuration)
    yield from _check_runtimes(configuration)
    if configuration.subagent_defaults.run_timeout_seconds > RUN_TIMEOUT_SECONDS_MAX:
        message = f"is reduced to {RUN_TIMEOUT_SECONDS_MAX}, the maximum; 0 means no limit"
        yield _warning_at((*_DEFAULTS, "runTimeoutSeconds"), message)


def _warning_at(path: ValuePath, message: str, meant: str | None = None) -> ConfigurationWarning:
    return ConfigurationWarning(pointer_of(path), message, meant)


def _check_allowed_agents(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    for path, section in _subagent_sections(configuration):
        yield from _check_names(configuration, section.allow_agents, path)


def _subagent_sections(
    configuration: Configuration,
) -> Iterator[tuple[ValuePath, SubagentDefaults | AgentSubagents]]:
    """Yield the `subagents` section of the defaults, then of each agent, with its path."""
    yield _DEFAULTS, configuration.subagent_defaults
    for path, agent in configuration.agents.placed:
        yield (*path, "subagents"), agent.subagents


def _check_names(
    configuration: Configuration, names: Iterable[str] | None, path: ValuePath
) -> Iterator[ConfigurationWarning]:
    known = configuration.agent_ids()
    for index, name in enumerate(names or ()):
        here = (*path, "allowAgents", index)
        text = name.strip()
        agent_id = normalise_agent_id(text)
        if text == ANY_AGENT:
            continue
        if not text:
            yield _warning_at(here, "is blank and ignored")
        elif not is_valid_agent_id(agent_id):
            yield _warning_at(
                here, "is not a valid agent id, so no spawn can name it", nearest_word(text, known)
            )
        elif configuration.agent(agent_id) is None and not _may_be_replaced(
            configuration, agent_id
        ):
            means = f'means "{agent_id}", which ' if agent_id != text.lower() else ""
            message = f"{means}is not configured, so a spawn that names it is refused"
            yield _warning_at(here, message, nearest_word(agent_id, known))


def _may_be_replaced(configuration: Configuration, agent_id: str) -> bool:
    """Return True if a context script may substitute another agent for this one."""
    scripts = configuration.effective_agent(agent_id).context_scripts
    return any(script.agent_id_override_key for script in scripts)


def _check_thinking(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    for path, section in _subagent_sections(configuration):
        raw = section.thinking
        if raw and raw.strip() and normalise_thinking(raw) is None:
            message = (
                f"is not a thinking level ({', '.join(THINKING_LEVELS)}), so a spawn that uses it"
                " is refused"
            )
            yield _warning_at((*path, "thinking"), message, nearest_word(raw, THINKING_LEVELS))


def _agents(configuration: Configuration, unlisted: ValuePath) -> list[tuple[ValuePath, str]]:
    """Return every agent with its path.

    Args:
        configuration: The configuration.
        unlisted: Path to use for the only agent of an empty roster.
    """
    agents = [(path, agent.id) for path, agent in configuration.agents.placed]
    return agents or [(unlisted, configuration.default_agent_id)]


def _check_runtimes(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    for path, agent_id in _agents(configuration, _DEFAULT_RUNTIME):
        runtime = configuration.effective_agent(agent_id).runtime
        if runtime is None:
            yield _warning_at(path, _NO_RUNTIME.format(runtime="no runtime"))
        elif runtime.type not in SERVED_RUNTIMES:
            kind = f'a runtime of type "{runtime.type}", which is not supported'
            yield _warning_at(path, _NO_RUNTIME.format(runtime=kind))


def _check_aliases(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    targets = configuration.model_aliases()
    for name, entry in configuration.defaults.models.items():
        if entry.alias_word and targets[entry.alias_word] != name:
            message = f'is already the alias of "{targets[entry.alias_word]}" and keeps'
            path = ("agents", "defaults", "models", name, "alias")
            yield _warning_at(path, f"{message} that meaning")


def _check_fallbacks(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    defaults: ValuePath = ("agents", "defaults")
    chosen: list[tuple[ValuePath, ModelChoice | None]] = [
        (defaults, configuration.defaults.model),
        (_DEFAULTS, configuration.subagent_defaults.model),
    ]
    for own, agent in configuration.agents.placed:
        chosen += [(own, agent.model), ((*own, "subagents"), agent.subagents.model)]
    for path, choice in chosen:
        if choice is not None and choice.fallbacks and choice.name is None:
            yield _warning_at((*path, "model", "fallbacks"), _NO_PRIMARY)


def _check_sandboxes(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    for path, agent_id in _agents(configuration, _DEFAULT_MODE):
        agent = configuration.effective_agent(agent_id)
        mode = agent.sandbox_mode
        if mode != "off" and not provides_sandbox(agent.runtime):
            yield _warning_at(path, _NO_SANDBOX.format(mode=mode))


def _check_tokens(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    for index, token in enumerate(configuration.spawnlog.tokens):
        for place, pattern in enumerate(token.sessions):
            message = _why_no_session_matches(configuration, pattern)
            if message is not None:
                yield _warning_at(("spawnlog", "tokens", index, "sessions", place), message)


def _why_no_session_matches(configuration: Configuration, pattern: str) -> str | None:
    """Return the reason why no session key can match the pattern, or None if one can."""
    if "*" not in pattern:
        try:
            configuration.canonical_key(pattern)
        except InvalidSessionKeyError as error:
            return f"matches no session: {error.message}"
        return None
    if pattern.strip() != "*" and pattern.strip(" :") == "*":
        return "matches no session: no key has an empty part; write * alone for every session"
    start = ":".join(part.strip() for part in pattern.split("*")[0].split(":") if part.strip())
    keys = ("agent:", GLOBAL) if configuration.session.scope == "global" else ("agent:",)
    if any(start.startswith(key) or key.startswith(start) for key in keys):
        return None
    return "matches no session: every key begins with agent:, as in agent:main:*"


# Warnings about context scripts.


_NO_EFFECT = "has no effect for a URL with {method}: the variables are sent as a JSON body"
_LARGE = "maps cfg, the whole configuration, which may not fit; use {instead}"
PLAIN_HTTP = (
    "is plain http to another machine: anyone on the path can read and change requests and"
    " answers; use https"
)


def script_warnings(configuration: Configuration) -> Iterator[ConfigurationWarning]:
    """Yield warnings about context scripts.

    Checked are: a format without effect, the whole configuration as an argument or in a URL, and
    plain HTTP to another machine.
    """
    for path, section in _subagent_sections(configuration):
        yield from _check_scripts(section.context_scripts.run, (*path, "contextScripts", "run"))


def is_unprotected(url: str) -> bool:
    """Return True if a request to the URL leaves this machine unencrypted."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if parts.scheme.lower() != "http" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return True


def _check_scripts(
    scripts: Sequence[ContextScript], path: ValuePath
) -> Iterator[ConfigurationWarning]:
    for index, script in enumerate(scripts):
        here = (*path, index)
        has_body = script.is_remote and script.method in BODY_METHODS
        if has_body and script.format == "arguments" and "format" in script.model_fields_set:
            yield _warning_at((*here, "format"), _NO_EFFECT.format(method=script.method))
        if "cfg" in script.arg_map.values():
            yield from _check_size(script, has_body, (*here, "argMap"))
        if (
            script.is_remote
            and not variables_in(script.uri.split("/")[2])
            and is_unprotected(script.uri)
        ):
            yield _warning_at((*here, "uri"), PLAIN_HTTP)


def _check_size(
    script: ContextScript, has_body: bool, here: ValuePath
) -> Iterator[ConfigurationWarning]:
    if script.is_remote and not has_body:
        yield _warning_at(here, _LARGE.format(instead="method POST"))
    if not script.is_remote and script.format == "arguments":
        yield _warning_at(here, _LARGE.format(instead='format "json"'))
