"""The `session` section: how the main session of an agent is called, and what may be bound to
threads."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from domain.configuration.sections import SharedSection, Text, section_error
from domain.configuration.thread_bindings import ThreadBindings
from domain.values.agent_id import AGENT_ID_CHARACTERS_MAX
from domain.values.session_key import MAIN, InvalidSessionKey, canonical_session_key, shape_of

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
