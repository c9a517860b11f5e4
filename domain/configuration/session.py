"""The `session` section: the main session's key, scope, and thread bindings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from domain.configuration.sections import Flag, Number, SharedSection, Text, section_error
from domain.values.agent_id import AGENT_ID_CHARACTERS_MAX
from domain.values.session_key import MAIN, InvalidSessionKeyError, canonical_session_key, shape_of

# Thread bindings of sub-agents: `session.threadBindings`, and overrides per channel and account.


ThreadContextMode = Literal["isolated", "fork"]
HOURS_MAX = 876_000
"""Maximum number of hours, a hundred years, so that every deadline is a valid date."""
Hours = Annotated[Number, Field(ge=0, le=HOURS_MAX)]
_DEFAULT_ACCOUNT = "default"


class ThreadBindings(SharedSection):
    """`session.threadBindings`.

    A persistent session is archived `idle_hours` after its last announcement, or `max_age_hours`
    after its start. 0 or null means never.
    """

    enabled: Flag = True
    """If false, a spawn with `thread` is refused."""

    spawn_sessions: Flag = True
    """If false, a spawn with `thread` is refused, too. `threadBindings` of a channel, or of its
    account, overrides both.
    """

    default_spawn_context: ThreadContextMode = "fork"
    """Default context of a child in a thread: the requester's conversation (`fork`) or none."""

    idle_hours: Hours | None = None
    """Hours from the last announcement until a persistent session is archived. Unset or 0: never.
    Example: `24`
    """

    max_age_hours: Hours | None = None
    """Hours from its start until a persistent session is archived. Unset or 0: never. Example:
    `168`
    """


@dataclass(frozen=True, slots=True)
class ThreadPolicy:
    """Thread binding settings of one channel and account.

    Sub-agents are bound to threads only if both `enabled` and `spawn_sessions` are True.
    """

    enabled: bool = True
    spawn_sessions: bool = True
    default_spawn_context: ThreadContextMode = "fork"

    @property
    def binds(self) -> bool:
        """Return True if sub-agents may be bound to threads."""
        return self.enabled and self.spawn_sessions


def thread_policy(
    bindings: ThreadBindings,
    extra: Mapping[str, Any],
    *,
    channel: str | None,
    account_id: str | None,
) -> ThreadPolicy:
    """Resolve the settings: the account overrides the channel, which overrides the session section.

    Args:
        bindings: The session section's settings.
        extra: Sections of other programs (`Configuration.extra`). Values of an unexpected shape are
            ignored.
        channel: Name of the channel, in any case.
        account_id: Account of the channel; `default` if not given.
    """
    own = bindings.model_dump(by_alias=True)
    places = [*_channel_bindings(extra, channel, account_id), own]
    context = _first(places, "defaultSpawnContext", ("isolated", "fork"))
    return ThreadPolicy(
        enabled=_first(places, "enabled", (True, False)) is not False,
        spawn_sessions=_first(places, "spawnSessions", (True, False)) is not False,
        default_spawn_context="isolated" if context == "isolated" else "fork",
    )


def _channel_bindings(
    extra: Mapping[str, Any], channel: str | None, account_id: str | None
) -> Iterator[Mapping[str, Any]]:
    section = _entry(_mapping(extra.get("channels")), channel)
    account = _entry(_mapping(section.get("accounts")), account_id or _DEFAULT_ACCOUNT)
    for place in (account, section):
        yield _mapping(place.get("threadBindings"))


def _entry(places: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """Return the section with this name, ignoring case."""
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
        # Compare identity, because 1 == True.
        if any(
            value is choice or (isinstance(choice, str) and value == choice) for choice in allowed
        ):
            return value
    return None


# The longest possible agent id: a main key that fits after it fits after any id.
_LONGEST_PREFIX = f"agent:{'a' * AGENT_ID_CHARACTERS_MAX}:"


def _main_key(text: str) -> str:
    if not text.isprintable():
        raise section_error("main_key", "must not contain control characters")
    if not text.replace(":", "").strip():
        return MAIN
    try:
        key = canonical_session_key(_LONGEST_PREFIX + text).removeprefix(_LONGEST_PREFIX)
    except InvalidSessionKeyError as error:
        message = f"is not valid in a session key: {error.message}"
        raise section_error("main_key", message) from None
    if any(shape_of(spelling) in ("agent", "malformed_agent") for spelling in (text, key)):
        message = "must be only the part of a session key after agent:<agentId>:"
        raise section_error("main_key", message)
    return key


class SessionSection(SharedSection):
    """The `session` section.

    `main_key` is in the canonical form of the last part of a session key. Blank means `main`.
    """

    main_key: Annotated[Text, AfterValidator(_main_key), Field(max_length=128)] = MAIN
    """Last part of the key of an agent's main session, which `main` means. After a change the
    former session keeps its children.
    """

    scope: Literal["per-sender", "global"] = "per-sender"
    """`global`: all agents share one main session."""

    thread_bindings: ThreadBindings = Field(default_factory=ThreadBindings)
    """Whether children may be bound to threads."""
