"""Thread binding of a child: the hook's answer, and the address for its results."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from domain.values import rules
from domain.values.json_text import NotJsonError, compact_json, read_json
from domain.values.refusals import Refusal
from domain.values.text import replace_unstorable

ADDRESS_CHARACTERS_MAX = 1024
INTERNAL_CHANNEL = "webchat"
"""Channel name of the page that shows sessions; results cannot be sent there."""


ThreadMode = Literal["run", "session"]
Origin = Mapping[str, str | int]
"""The known ones of `channel`, `accountId`, `to` and `threadId`."""


_ADDRESSES = ("channel", "accountId", "to")
_TARGETS = ("accountId", "to", "threadId")
_UNAVAILABLE: Mapping[ThreadMode, str] = {
    "session": (
        'sessions_spawn(mode="session") is only available on channels that expose thread bindings'
        " (e.g. Discord threads, Slack threads, Telegram forum topics). This request is not running"
        ' on a channel that can bind a subagent thread. Use mode="run" for one-shot subagent work,'
        " or sessions_send(sessionKey=...) to keep talking to a persistent session without thread"
        " binding."
    ),
    "run": (
        "thread=true is only available on channels that expose thread bindings (e.g. Discord"
        " threads, Slack threads, Telegram forum topics). This request is not running on a channel"
        " that can bind a subagent thread. Retry without thread=true, or re-run sessions_spawn from"
        " a channel that supports threads."
    ),
}
_NOT_PREPARED = "Failed to prepare thread binding for this subagent session."
_NOT_BOUND = (
    "Unable to create or bind a thread for this subagent session. Session mode is unavailable for"
    " this target."
)
ERROR_CHARACTERS_MAX = 2_000
_NOT_READY = (None, False, 0, "")


@dataclass(frozen=True, slots=True)
class BoundThread:
    """A bound thread.

    `origin` has the addresses that the hook returned, which may be incomplete.
    """

    origin: Origin


def unavailable_thread(mode: ThreadMode) -> Refusal:
    """Return the refusal for a request that no hook can bind a thread for."""
    return _binding_refusal(_UNAVAILABLE[mode])


def binding_failure(message: str) -> Refusal:
    """Return the refusal for a hook call whose result is unknown."""
    return _binding_refusal(f"Thread bind failed: {message}")


def read_binding_answer(
    answer: Mapping[str, object] | None, mode: ThreadMode
) -> BoundThread | Refusal:
    """Return the bound thread or the refusal that the hook's answer means.

    Args:
        answer: Decoded answer of the hook; None if it says nothing.
        mode: Mode of the requested session.
    """
    if answer is None:
        return unavailable_thread(mode)
    if answer.get("status") == "error":
        error = answer.get("error")
        text = (
            replace_unstorable(error.strip()[:ERROR_CHARACTERS_MAX])
            if isinstance(error, str)
            else ""
        )
        return _binding_refusal(text or _NOT_PREPARED)
    if answer.get("status") != "ok" or answer.get("threadBindingReady") in _NOT_READY:
        return _binding_refusal(_NOT_BOUND)
    return BoundThread(delivery_origin(answer.get("deliveryOrigin")))


def delivery_origin(value: object) -> Origin:
    """Return the valid addresses in an external value, trimmed; blank and overlong ones are
    dropped.
    """
    if not isinstance(value, Mapping):
        return {}
    origin: dict[str, str | int] = {}
    for name in _ADDRESSES:
        address = _address(value.get(name))
        if address is not None:
            origin[name] = address
    thread = value.get("threadId")
    number = _whole_number(thread)
    found = number if number is not None else _address(thread)
    return origin if found is None else {**origin, "threadId": found}


def merge_origins(over: Origin, under: Origin) -> Origin:
    """Fill in missing addresses of `over` from `under`, unless they name different channels."""
    channels = over.get("channel"), under.get("channel")
    if all(channels) and channels[0] != channels[1]:
        return dict(over)
    names = ("channel", *_TARGETS)
    return {name: {**under, **over}[name] for name in names if name in over or name in under}


def is_routable(origin: Origin) -> bool:
    """Return True if the origin has a channel and a recipient."""
    return bool(origin.get("channel")) and bool(origin.get("to"))


def origin_text(origin: Origin) -> str | None:
    """Return the origin as JSON for storage, or None if it is empty."""
    return compact_json(dict(origin)) if origin else None


def read_origin(text: str | None) -> Origin:
    """Parse a stored origin, ignoring unknown keys. Without a valid text the origin is empty."""
    try:
        return delivery_origin(read_json(text)) if text else {}
    except NotJsonError:
        return {}


def _address(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    text = value.strip()
    return text if 0 < len(text) <= ADDRESS_CHARACTERS_MAX and text.isprintable() else None


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return math.trunc(value) if abs(value) < 2**63 else None


def _binding_refusal(text: str) -> Refusal:
    return rules.THREAD_BINDING.refusal(text)
