"""The runtime `model`: an endpoint of the OpenAI protocol, with limits for its runs."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from domain.configuration.hooks import HEADERS_MAX, check_headers, check_url
from domain.configuration.models import ServedModels, is_model_name
from domain.configuration.problems import pointer_of
from domain.configuration.secrets import SecretReference, SecretText
from domain.configuration.sections import (
    Flag,
    NameText,
    OwnSection,
    SharedSection,
    Text,
    Whole,
    section_error,
)

MCP_SERVERS_MAX = 20
_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,31}")

EndpointUrl = Annotated[SecretText, AfterValidator(check_url)]


_RESERVED_NAMES = frozenset({"agents", "runs", "session", "sessions", "shared", "subagents"})


TransportName = Literal["http", "streamable-http", "streamableHttp", "streamable_http"]
TimeoutMs = Annotated[Whole, Field(ge=1_000, le=86_400_000)]


class McpServer(OwnSection):
    """An MCP server of tools over HTTP, in the format of MCP clients."""

    url: EndpointUrl = Field(repr=False)
    """Address of the MCP server. Example: `"http://127.0.0.1:9000/mcp"`"""

    headers: Annotated[dict[Text, SecretText], Field(max_length=HEADERS_MAX)] = Field(
        default_factory=dict, repr=False
    )
    """Headers of each request; kept secret. Example: `{ Authorization: "Bearer ${MCP_TOKEN}" }`"""

    type: TransportName | None = None
    """Transport; all these names mean streamable HTTP, the only one supported."""

    transport: TransportName | None = None
    """Another name of `type`."""

    disabled: Flag = False
    """If true, the model gets no tools of this server."""

    enabled: Flag = True
    """If false, the model gets no tools of this server."""

    timeout: TimeoutMs | None = None
    """Timeout of a tool call in milliseconds. Unset: `toolTimeoutSeconds` of the runtime.
    Example: `60000`
    """

    request_timeout_ms: TimeoutMs | None = None
    """Another name of `timeout`."""

    env: dict[Text, SecretText] = Field(default_factory=dict, repr=False)
    """No effect; a server that is reached by URL has no environment."""

    @property
    def is_used(self) -> bool:
        """Return False if the file disables the server."""
        return self.enabled and not self.disabled

    @property
    def call_timeout_seconds(self) -> float | None:
        """Return the timeout of one call in seconds, or None if the runtime's limit applies."""
        given = self.timeout or self.request_timeout_ms
        return None if given is None else given / 1000

    @field_validator("type", "transport", mode="before")
    @classmethod
    def _require_http(cls, name: object) -> object:
        if name in ("sse", "stdio"):
            message = (
                f'is "{name}", but only streamable HTTP is supported; give that URL and write'
                ' "http"'
            )
            raise section_error("mcp_servers", message)
        return name

    @field_validator("timeout", "request_timeout_ms", mode="before")
    @classmethod
    def _require_milliseconds(cls, given: object) -> object:
        if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 1_000:
            message = f"is in milliseconds, at least 1000; for {given} s write {given}000"
            raise section_error("mcp_servers", message)
        return given

    @model_validator(mode="after")
    def _require_one_timeout(self) -> Self:
        if self.timeout is not None and self.request_timeout_ms is not None:
            message = "has the same meaning as timeout; keep one of the two"
            raise section_error("mcp_servers", message, at="requestTimeoutMs")
        return self

    @field_validator("headers")
    @classmethod
    def _validate_headers(cls, headers: dict[str, str | SecretReference]) -> dict[str, object]:
        return check_headers(headers)


def _model_name(text: str) -> str:
    if not is_model_name(text):
        raise section_error("model", 'must be a model name, or "provider/model"')
    return text


class ModelRuntime(SharedSection):
    """A conversation with a model, run by the server itself.

    Stored revisions that predate this runtime may lack `base_url` and have other keys. A file with
    either is rejected.
    """

    type: Literal["model"]
    """Holds a conversation with a model, inside the server."""

    base_url: EndpointUrl | None = Field(default=None, repr=False)
    """Address of an endpoint of the OpenAI protocol, without `/chat/completions`. Required in a
    file. Example: `"https://api.openai.com/v1"`
    """

    api_key: SecretText | None = Field(default=None, repr=False)
    """Key of the endpoint, sent as a bearer token. Example: `"${OPENAI_API_KEY}"`"""

    model: Annotated[NameText, AfterValidator(_model_name)] | None = None
    """Model to call if neither the spawn nor an agent names one. Example: `"gpt-5"`"""

    models: ServedModels | None = None
    """Models that the endpoint serves; others are skipped, with a warning. Unset: any. Example:
    `["openai/*"]`
    """

    mcp_servers: Annotated[dict[Text, McpServer], Field(max_length=MCP_SERVERS_MAX)] = Field(
        default_factory=dict
    )
    """MCP servers whose tools the model may call, by name. Example: `{ search: { url:
    "http://127.0.0.1:9000/mcp" } }`
    """

    requests_max: Annotated[Whole, Field(ge=1, le=1_000)] = 50
    """Maximum requests to the model in one run; beyond it the run ends as `error`."""

    tool_calls_max: Annotated[Whole, Field(ge=0, le=10_000)] = 200
    """Maximum successful tool calls in one run; beyond it the run ends as `error`."""

    tokens_max: Annotated[Whole, Field(ge=1, le=1_000_000_000)] = 2_000_000
    """Maximum input and output tokens of one run, if the endpoint counts them; beyond it the run
    ends as `error`.
    """

    attempts_max: Annotated[Whole, Field(ge=1, le=10)] = 3
    """Attempts for one answer; then the next fallback model is called."""

    answer_within_seconds: Annotated[Whole, Field(ge=1, le=3_600)] = 600
    """Seconds within which an answer must begin, all attempts and pauses included."""

    timeout_seconds: Annotated[Whole, Field(ge=1, le=3_600)] = 300
    """Seconds without data from the endpoint after which an attempt fails."""

    tool_timeout_seconds: Annotated[Whole, Field(ge=1, le=86_400)] = 600
    """Timeout of a tool call in seconds."""

    @field_validator("base_url")
    @classmethod
    def _refuse_query(cls, url: str | SecretReference) -> str | SecretReference:
        if isinstance(url, str) and "?" in url:
            raise section_error("base_url", "must not have a query, because paths are appended")
        return url

    @field_validator("mcp_servers")
    @classmethod
    def _require_valid_names(cls, servers: dict[str, McpServer]) -> dict[str, McpServer]:
        seen: set[str] = set()
        for name in servers:
            at = pointer_of([name]).removeprefix("/")
            if not _SERVER_NAME.fullmatch(name):
                message = (
                    "must be 1 to 32 letters, digits and hyphens, because it is the prefix of"
                    " tool names"
                )
                raise section_error("mcp_servers", message, at=at)
            if name.lower() in _RESERVED_NAMES:
                message = "is reserved for spawnlog's own tools; rename the server"
                raise section_error("mcp_servers", message, at=at)
            if name.lower() in seen:
                raise section_error("mcp_servers", "is repeated in another case", at=at)
            seen.add(name.lower())
        return servers

    def written_values(self) -> Iterator[tuple[tuple[str, ...], str | SecretReference, bool]]:
        """Yield the addresses and secrets of the endpoint and its MCP servers.

        Each item is the path within the runtime, the value, and whether the value is an address.
        """
        if self.base_url is not None:
            yield ("baseUrl",), self.base_url, True
        if self.api_key is not None:
            yield ("apiKey",), self.api_key, False
        for name, server in self.mcp_servers.items():
            if not server.is_used:
                continue
            yield ("mcpServers", name, "url"), server.url, True
            for header, value in server.headers.items():
                yield ("mcpServers", name, "headers", header), value, False

    def values(self) -> dict[str, str | SecretReference]:
        """Return the values of `written_values` by dotted path."""
        return {".".join(path): value for path, value, _ in self.written_values()}


def mcp_url_name(server: str) -> str:
    """Return the dotted path of an MCP server's address in the runtime's values."""
    return f"mcpServers.{server}.url"


def mcp_header_name(server: str, header: str) -> str:
    """Return the dotted path of an MCP server's header in the runtime's values."""
    return f"mcpServers.{server}.headers.{header}"
