"""The `session` section: how the main session of an agent is called, and what may be bound to
threads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from domain.configuration.sections import Flag, Number, SharedSection, Text, section_error
from domain.values.agent_id import AGENT_ID_CHARACTERS_MAX
from domain.values.session_key import MAIN, InvalidSessionKey, canonical_session_key, shape_of

# Threads of channels that sub-agents may be bound to: `session.threadBindings`, and the same below
# a channel and an account.


ThreadContextMode = Literal["isolated", "fork"]
HOURS_MAX = 876_000
"""A hundred years: a date follows from every number of hours."""
Hours = Annotated[Number, Field(ge=0, le=HOURS_MAX)]
_ACCOUNT_OF_NONE = "default"


class ThreadBindings(SharedSection):
    """`session.threadBindings`. A session that stays open is put away so many hours after its last
    run was announced, and after it began; 0, or none, is never."""

    enabled: Flag = True
    spawn_sessions: Flag = True
    default_spawn_context: ThreadContextMode = "fork"
    idle_hours: Hours | None = None
    max_age_hours: Hours | None = None


@dataclass(frozen=True, slots=True)
class ThreadPolicy:
    """What holds for one channel and account. Without `enabled` or `spawn_sessions` no sub-agent
    is bound to a thread there."""

    enabled: bool = True
    spawn_sessions: bool = True
    default_spawn_context: ThreadContextMode = "fork"

    @property
    def binds(self) -> bool:
        """Whether a sub-agent may be bound to a thread."""
        return self.enabled and self.spawn_sessions


def thread_policy(
    bindings: ThreadBindings,
    extra: Mapping[str, Any],
    *,
    channel: str | None,
    account_id: str | None,
) -> ThreadPolicy:
    """The account's own word before the channel's before that of the session section.

    `extra` are the sections that other programs read (`Configuration.extra`): what has another
    shape there than is expected says nothing.
    """
    own = bindings.model_dump(by_alias=True)
    places = [*_below_channels(extra, channel, account_id), own]
    context = _first(places, "defaultSpawnContext", ("isolated", "fork"))
    return ThreadPolicy(
        enabled=_first(places, "enabled", (True, False)) is not False,
        spawn_sessions=_first(places, "spawnSessions", (True, False)) is not False,
        default_spawn_context="isolated" if context == "isolated" else "fork",
    )


def _below_channels(
    extra: Mapping[str, Any], channel: str | None, account_id: str | None
) -> Iterator[Mapping[str, Any]]:
    section = _entry(_mapping(extra.get("channels")), channel)
    account = _entry(_mapping(section.get("accounts")), account_id or _ACCOUNT_OF_NONE)
    for place in (account, section):
        yield _mapping(place.get("threadBindings"))


def _entry(places: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """The section of this name, in any case."""
    if name is None:
        return {}
    normalised = name.strip().lower()
    found = (value for key, value in places.items() if key.strip().lower() == normalised)
    return _mapping(next(found, None))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(places: list[Mapping[str, Any]], key: str, allowed: tuple[object, ...]) -> object:
    for place in places:
        value = place.get(key)
        # 1 is equal to true and is none.
        if any(value is one or (isinstance(one, str) and value == one) for one in allowed):
            return value
    return None


# The longest agent id there is: what stands behind it fits behind every other.
_BEGINNING = f"agent:{'a' * AGENT_ID_CHARACTERS_MAX}:"


def _main_key(text: str) -> str:
    if not text.isprintable():
        raise section_error("main_key", "must not contain control characters")
    if not text.replace(":", "").strip():
        return MAIN
    try:
        key = canonical_session_key(_BEGINNING + text).removeprefix(_BEGINNING)
    except InvalidSessionKey as error:
        message = f"cannot stand in a session's key: {error.message}"
        raise section_error("main_key", message) from None
    if any(shape_of(one) in ("agent", "malformed_agent") for one in (text, key)):
        message = "must be what stands behind agent:<agentId>: in a session's key, and no more"
        raise section_error("main_key", message)
    return key


class SessionSection(SharedSection):
    """`main_key` is in the form that the end of a session's key has; blank means `main`."""

    main_key: Annotated[Text, AfterValidator(_main_key), Field(max_length=128)] = MAIN
    scope: Literal["per-sender", "global"] = "per-sender"
    thread_bindings: ThreadBindings = Field(default_factory=ThreadBindings)
