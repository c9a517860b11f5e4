"""What a configuration may say and can hardly mean: it can be used, and somebody should look."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from domain.admission import ANY_AGENT
from domain.agent_id import is_valid_agent_id
from domain.configuration.configuration import Configuration
from domain.configuration.problems import pointer_of
from domain.configuration.wording import nearest
from domain.session_key import GLOBAL, InvalidSessionKey, SessionKey, canonical
from domain.thinking import LEVEL_LABELS, normalise_thinking

Path = tuple[str | int, ...]

_DEFAULTS: Path = ("agents", "defaults", "subagents")
_DEFAULT_MODE: Path = ("agents", "defaults", "sandbox", "mode")
_NO_SANDBOX = (
    'is to run in a sandbox (sandbox.mode "{mode}"), and its runtime does not say'
    " providesSandbox: a spawn of it is refused"
)


@dataclass(frozen=True, slots=True)
class Doubt:
    """`pointer` is the JSON pointer of the value, `nearest` what was probably meant."""

    pointer: str
    message: str
    nearest: str | None = None


def doubts(configuration: Configuration) -> Iterator[Doubt]:
    """Everything that is doubtful: patterns of tokens that fit no session, thinking levels that
    are none, agents that may be named and are not there, sandboxes that nothing provides."""
    yield from _about_allowed_agents(configuration)
    yield from _about_thinking(configuration)
    yield from _about_sandboxes(configuration)
    yield from _about_tokens(configuration)


def main_session_of(configuration: Configuration) -> SessionKey:
    """The session that `main` stands for."""
    session = configuration.session
    return canonical(
        "main",
        main_key=session.main_key,
        scope=session.scope,
        default_agent_id=configuration.default_agent_id,
    )


def _at(path: Path, message: str, meant: str | None = None) -> Doubt:
    return Doubt(pointer_of(path), message, meant)


def _about_allowed_agents(configuration: Configuration) -> Iterator[Doubt]:
    yield from _about_names(configuration, configuration.subagent_defaults.allow_agents, _DEFAULTS)
    for index, agent in enumerate(configuration.agents.list):
        path = ("agents", "list", index, "subagents")
        yield from _about_names(configuration, agent.subagents.allow_agents, path)


def _about_names(
    configuration: Configuration, names: Iterable[str] | None, path: Path
) -> Iterator[Doubt]:
    known = configuration.agent_ids()
    for index, name in enumerate(names or ()):
        here = (*path, "allowAgents", index)
        text = name.strip()
        if text == ANY_AGENT:
            continue
        if not is_valid_agent_id(text):
            yield _at(here, "is no agent id: no spawn can name it", nearest(text, known))
        elif configuration.agent(text) is None and not _may_be_replaced(configuration, text):
            message = "is not configured: a spawn that names it is refused"
            yield _at(here, message, nearest(text, known))


def _may_be_replaced(configuration: Configuration, agent_id: str) -> bool:
    """Whether a context script may name another agent for this one."""
    scripts = configuration.context_scripts_for(agent_id)
    return any(script.agent_id_override_key for script in scripts)


def _about_thinking(configuration: Configuration) -> Iterator[Doubt]:
    said: list[tuple[Path, str | None]] = [(_DEFAULTS, configuration.subagent_defaults.thinking)]
    for index, agent in enumerate(configuration.agents.list):
        said.append((("agents", "list", index, "subagents"), agent.subagents.thinking))
    for path, raw in said:
        if raw and raw.strip() and normalise_thinking(raw) is None:
            message = f"is no level ({', '.join(LEVEL_LABELS)}): a spawn that uses it is refused"
            yield _at((*path, "thinking"), message, nearest(raw, LEVEL_LABELS))


def _about_sandboxes(configuration: Configuration) -> Iterator[Doubt]:
    agents: list[tuple[Path, str]] = [
        (("agents", "list", index), agent.id)
        for index, agent in enumerate(configuration.agents.list)
    ]
    # Without a list there is one agent all the same, and it is what the defaults say.
    for path, agent_id in agents or [(_DEFAULT_MODE, configuration.default_agent_id)]:
        mode = configuration.sandbox_mode_for(agent_id)
        if mode != "off" and not configuration.provides_sandbox(agent_id):
            yield _at(path, _NO_SANDBOX.format(mode=mode))


def _about_tokens(configuration: Configuration) -> Iterator[Doubt]:
    for index, token in enumerate(configuration.spawnlog.tokens):
        for place, pattern in enumerate(token.sessions):
            message = _fits_nothing(configuration, pattern)
            if message is not None:
                yield _at(("spawnlog", "tokens", index, "sessions", place), message)


def _fits_nothing(configuration: Configuration, pattern: str) -> str | None:
    """Why no session has a key that fits the pattern; None when one may."""
    session = configuration.session
    if "*" not in pattern:
        try:
            canonical(
                pattern,
                main_key=session.main_key,
                scope=session.scope,
                default_agent_id=configuration.default_agent_id,
            )
        except InvalidSessionKey as error:
            return f"fits no session: {error.message}"
        return None
    if pattern.strip() != "*" and pattern.strip(" :") == "*":
        return "fits no session: no key has an empty part; write * alone for every session"
    start = ":".join(part.strip() for part in pattern.split("*")[0].split(":") if part.strip())
    keys = ("agent:", GLOBAL) if session.scope == "global" else ("agent:",)
    if any(start.startswith(key) or key.startswith(start) for key in keys):
        return None
    return "fits no session: every key begins with agent:, as in agent:main:*"
