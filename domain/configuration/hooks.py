"""The `spawnlog.hooks` section: HTTP hooks called about sub-agents."""

import re
from functools import cached_property
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator

from domain.configuration.problems import pointer_of
from domain.configuration.secrets import SecretReference, SecretText, variables_in
from domain.configuration.sections import Number, OwnSection, Text, Whole, section_error

AnyHook = Literal[
    "prepareSubagentSpawn",
    "subagentSpawning",
    "subagentSpawned",
    "subagentDeliveryTarget",
    "subagentEnded",
    "onSubagentEnded",
]
HOOKS: tuple[AnyHook, ...] = get_args(AnyHook)

URL_CHARACTERS_MAX = 4096
HEADERS_MAX = 50
HEADER_VALUE_CHARACTERS_MAX = 8192
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_SET_BY_SPAWNLOG = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "idempotency-key",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)


def url_problem(url: str) -> str | None:
    """Return the problem with a hook's URL, in words that do not repeat it, or None."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "must be a URL of ASCII characters without blanks"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        is_port = parts.port is None or parts.port > 0
    except ValueError:
        return "must be a URL"
    if parts.scheme not in ("http", "https") or not host or not is_port:
        return "must be a URL with http:// or https:// and a host"
    if parts.username is not None or parts.password is not None:
        return "must not contain a user name or a password; put them into headers"
    if "#" in url:
        return "must not have a fragment"
    return None


def header_problem(value: str) -> str | None:
    """Return the problem with a header value, in words that do not repeat it, or None."""
    if len(value) > HEADER_VALUE_CHARACTERS_MAX:
        return f"must be at most {HEADER_VALUE_CHARACTERS_MAX} characters long"
    if not value.isascii() or not value.isprintable() or value != value.strip():
        return "must be ASCII without control characters or surrounding blanks"
    return None


def check_url(url: str | SecretReference) -> str | SecretReference:
    """Return the URL if it is valid.

    A URL with a reference is accepted here and checked at use.

    Raises:
        PydanticCustomError: The URL is invalid.
    """
    if isinstance(url, SecretReference) or variables_in(url):
        return url
    complaint = url_problem(url)
    if complaint is not None:
        raise section_error("url", complaint)
    if len(url) > URL_CHARACTERS_MAX:
        raise section_error("url", f"must be at most {URL_CHARACTERS_MAX} characters long")
    return url


def check_headers(headers: dict[str, str | SecretReference]) -> dict[str, object]:
    """Return the headers if all can be sent and spawnlog sets none of them itself.

    Values with a reference are checked at use.

    Raises:
        PydanticCustomError: A name or value is invalid, reserved or repeated.
    """
    names: set[str] = set()
    for name, value in headers.items():
        at, plain = pointer_of([name]).removeprefix("/"), name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise section_error("headers", "is not a valid header name", at=at)
        if plain in _SET_BY_SPAWNLOG:
            raise section_error("headers", "is set by spawnlog for each request", at=at)
        if plain in names:
            raise section_error("headers", "is repeated in another case", at=at)
        names.add(plain)
        complaint = None
        if isinstance(value, str) and not variables_in(value):
            complaint = header_problem(value)
        if complaint is not None:
            raise section_error("headers", complaint, at=at)
    return dict(headers)


class Hook(OwnSection):
    """A hook's address and headers.

    Headers are secret, and so is a URL with a query. `timeout_seconds` covers the whole request,
    from connecting to the end of the response.
    """

    url: Annotated[SecretText, AfterValidator(check_url)] = Field(repr=False)
    """Address to call; kept secret if it has a query. Example: `"https://gateway.example/hook"`"""

    headers: Annotated[dict[Text, SecretText], Field(max_length=HEADERS_MAX)] = Field(
        default_factory=dict, repr=False
    )
    """Headers of each request; kept secret. Example: `{ Authorization: "Bearer ${HOOK_TOKEN}" }`"""

    timeout_seconds: Annotated[Number, Field(gt=0, le=60)] = 10
    """Timeout of a request in seconds, from connecting to the end of the response."""

    @field_validator("headers")
    @classmethod
    def _validate_headers(cls, headers: dict[str, str | SecretReference]) -> dict[str, object]:
        return check_headers(headers)


class HooksSection(OwnSection):
    """The `spawnlog.hooks` section. Only configured hooks are called.

    `attempts_max` and `retry_seconds_max` apply to notifications (`subagentSpawned`,
    `subagentEnded`, `onSubagentEnded`): the number of attempts, and the maximum backoff between two
    attempts.
    """

    prepare_subagent_spawn: Hook | None = None
    """Called at the end of each preparation; may refuse the spawn."""

    subagent_spawning: Hook | None = None
    """Called to bind a child to a thread; may refuse the spawn."""

    subagent_spawned: Hook | None = None
    """Called after a child is queued in its lane."""

    subagent_delivery_target: Hook | None = None
    """Called to choose where a result is delivered."""

    subagent_ended: Hook | None = None
    """Called after a run is announced or stopped."""

    on_subagent_ended: Hook | None = None
    """Called at the same time as `subagentEnded`, for a context engine."""

    attempts_max: Annotated[Whole, Field(ge=1, le=20)] = 8
    """Attempts to call `subagentSpawned`, `subagentEnded` or `onSubagentEnded`; then the call is
    parked.
    """

    retry_seconds_max: Annotated[Whole, Field(ge=1, le=3600)] = 300
    """Maximum backoff between two attempts, in seconds."""

    def named(self, name: AnyHook) -> Hook | None:
        """Return the hook with this name, or None if it is not configured."""
        return {
            "prepareSubagentSpawn": self.prepare_subagent_spawn,
            "subagentSpawning": self.subagent_spawning,
            "subagentSpawned": self.subagent_spawned,
            "subagentDeliveryTarget": self.subagent_delivery_target,
            "subagentEnded": self.subagent_ended,
            "onSubagentEnded": self.on_subagent_ended,
        }[name]

    @cached_property
    def configured(self) -> tuple[AnyHook, ...]:
        """Return the names of the configured hooks, in the order of `HOOKS`."""
        return tuple(name for name in HOOKS if self.named(name) is not None)
