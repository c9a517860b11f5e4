"""The `spawnlog.hooks` section: who is asked and told over HTTP about sub-agents."""

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
    """What is wrong with the address of a hook, in words that do not repeat it; None for a good
    one."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "must be a URL of ASCII characters without blanks"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        is_port = parts.port is None or parts.port > 0
    except ValueError:
        return "must be a URL"
    if parts.scheme not in ("http", "https") or not host or not is_port:
        return "must be a URL that begins with http:// or https:// and names a host"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user name or a password; put them into headers"
    if "#" in url:
        return "must not have a fragment"
    return None


def header_problem(value: str) -> str | None:
    """What is wrong with the value of a header, in words that do not repeat it."""
    if len(value) > HEADER_VALUE_CHARACTERS_MAX:
        return f"must be at most {HEADER_VALUE_CHARACTERS_MAX} characters long"
    if not value.isascii() or not value.isprintable() or value != value.strip():
        return "must be ASCII without control characters, and without blanks around it"
    return None


def check_url(url: str | SecretReference) -> str | SecretReference:
    """The address itself, when it can be called."""
    # With a reference in it, it is looked at when it is used.
    if isinstance(url, SecretReference) or variables_in(url):
        return url
    complaint = url_problem(url)
    if complaint is not None:
        raise section_error("url", complaint)
    if len(url) > URL_CHARACTERS_MAX:
        raise section_error("url", f"must be at most {URL_CHARACTERS_MAX} characters long")
    return url


def check_headers(headers: dict[str, str | SecretReference]) -> dict[str, object]:
    """The headers themselves, when all of them can be sent and none is set by spawnlog."""
    names: set[str] = set()
    for name, value in headers.items():
        at, plain = pointer_of([name]).removeprefix("/"), name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise section_error("headers", "is not the name of a header", at=at)
        if plain in _SET_BY_SPAWNLOG:
            raise section_error("headers", "is set by spawnlog for each request", at=at)
        if plain in names:
            raise section_error("headers", "stands here twice, in another case", at=at)
        names.add(plain)
        complaint = None
        if isinstance(value, str) and not variables_in(value):
            complaint = header_problem(value)
        if complaint is not None:
            raise section_error("headers", complaint, at=at)
    return dict(headers)


class Hook(OwnSection):
    """One address. `headers` are secrets, and so is an address with a query. `timeout_seconds` is
    for all of a request, from connecting to the end of the answer."""

    url: Annotated[SecretText, AfterValidator(check_url)] = Field(repr=False)
    headers: Annotated[dict[Text, SecretText], Field(max_length=HEADERS_MAX)] = Field(
        default_factory=dict, repr=False
    )
    timeout_seconds: Annotated[Number, Field(gt=0, le=60)] = 10

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, str | SecretReference]) -> dict[str, object]:
        return check_headers(headers)


class HooksSection(OwnSection):
    """Each hook is asked or told when it is configured, and only then.

    `attempts_max` and `retry_seconds_max` are for those that are told something
    (`subagentSpawned`, `subagentEnded`, `onSubagentEnded`): so often it is tried, with so many
    seconds between two attempts at most.
    """

    prepare_subagent_spawn: Hook | None = None
    subagent_spawning: Hook | None = None
    subagent_spawned: Hook | None = None
    subagent_delivery_target: Hook | None = None
    subagent_ended: Hook | None = None
    on_subagent_ended: Hook | None = None
    attempts_max: Annotated[Whole, Field(ge=1, le=20)] = 8
    retry_seconds_max: Annotated[Whole, Field(ge=1, le=3600)] = 300

    def named(self, name: AnyHook) -> Hook | None:
        """The hook of this name, if it is configured."""
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
        """The names of those that are configured, in the order above."""
        return tuple(name for name in HOOKS if self.named(name) is not None)
