"""The `spawnlog` section: server settings, which variables and flags can override."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator

from domain.configuration.context_scripts import SCRIPT_TIMEOUT_SECONDS
from domain.configuration.hooks import HooksSection
from domain.configuration.problems import ConfigurationError, ConfigurationProblem, render_error
from domain.configuration.secrets import SecretReference, variable_named_by
from domain.configuration.sections import Flag, NameText, Number, OwnSection, Whole, section_error
from domain.configuration.telemetry import TelemetrySection
from domain.configuration.webhooks import AnnounceSection
from domain.values.session_key import fold_part

# API tokens: scopes and sessions of each.


TokenScope = Literal["spawn", "read", "content", "control", "worker", "admin"]
_ADVICE = 'write "${NAME}" for an environment variable or {"file": "path"} for a file'


def _pattern(text: str) -> str:
    if len(text.encode()) > 512:
        raise section_error("sessions", "must be at most 512 bytes")
    return ":".join(fold_part(part) for part in text.split(":"))


class TokenSource(OwnSection):
    """Source of a token's text.

    Exactly one of: an environment variable, a file, or (in a revision that was read back) the
    configuration file itself.
    """

    variable: NameText | None = None
    """An environment variable."""

    file: NameText | None = None
    """A file with the token. Example: `"/etc/spawnlog/ci.token"`"""

    secret: SecretReference | None = None
    """The file that a stored revision was read from."""


def _source(value: Any) -> Any:
    if isinstance(value, TokenSource):
        return value
    if isinstance(value, str):
        name = variable_named_by(value)
        if name is None:
            raise section_error("token", f"a token must not be written in the file; {_ADVICE}")
        return {"variable": name}
    if isinstance(value, dict) and set(value) == {"file"}:
        return value
    if isinstance(value, dict) and set(value) == {"$secret"}:
        return {"secret": value}
    raise section_error("token", f"must be a reference; {_ADVICE}")


class Token(OwnSection):
    """An API token. `sessions` are patterns of session keys in which `*` matches any text."""

    id: Annotated[NameText, Field(max_length=64)]
    """Name of the token, recorded with each request. Example: `"ci"`"""

    token: Annotated[TokenSource, BeforeValidator(_source)]
    """Where the token is: `"${NAME}"` or `{ file: "path" }`, never the token itself. Example: `{
    file: "ci.token" }`
    """

    scopes: Annotated[tuple[TokenScope, ...], Field(min_length=1)]
    """What the token may do. Example: `["read"]`"""

    sessions: Annotated[
        tuple[Annotated[NameText, AfterValidator(_pattern)], ...], Field(min_length=1)
    ]
    """Sessions that it may act for: patterns of session keys, in which `*` matches any text.
    Example: `["agent:main:*"]`"""


VARIABLES: Mapping[str, str] = {
    "database_url": "SPAWNLOG_DATABASE_URL",
    "data_dir": "SPAWNLOG_DATA_DIR",
    "host": "SPAWNLOG_HOST",
    "port": "SPAWNLOG_PORT",
    "no_auth": "SPAWNLOG_NO_AUTH",
    "no_page": "SPAWNLOG_NO_PAGE",
    "lease_seconds": "SPAWNLOG_LEASE_SECONDS",
    "drain_seconds": "SPAWNLOG_DRAIN_SECONDS",
}
OTLP_ENDPOINT_VARIABLE = "SPAWNLOG_OTLP_ENDPOINT"
"""Not in `VARIABLES`, because it overrides a value within a section."""

_FLAGS = ("no_auth", "no_page")
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


def _drop_secret_reference(value: object) -> object:
    return None if isinstance(value, dict) and set(value) == {"$secret"} else value


def _check_host(value: str) -> str:
    if any(char in value for char in " /@?#"):
        raise section_error("host", "must be a host name or an address, without a scheme or a path")
    return value


class Settings(OwnSection):
    """The `spawnlog` section."""

    database_url: Annotated[NameText | None, BeforeValidator(_drop_secret_reference)] = Field(
        default=None, repr=False
    )
    """Address of a PostgreSQL database; may contain `${NAME}`. Unset: the embedded server. Example:
    `"postgresql://spawnlog@db.example/spawnlog"`
    """

    data_dir: NameText | None = None
    """Data directory. Unset: a `spawnlog` folder where this system keeps a user's data. Example:
    `"/var/lib/spawnlog"`
    """

    host: Annotated[NameText, Field(max_length=253)] = "127.0.0.1"
    """Address to listen on. Example: `"0.0.0.0"`"""

    port: Annotated[Whole, Field(ge=0, le=65_535)] = 8700
    """Port to listen on. 0: any free port."""

    no_auth: Flag = False
    """If true, requests need no token. Allowed on a loopback address only."""

    no_page: Flag = False
    """If true, the web page is not served."""

    lease_seconds: Annotated[Number, Field(ge=1, le=3600)] = 15
    """Seconds without a heartbeat after which another server takes over the work of this one."""

    drain_seconds: Annotated[Number, Field(ge=0, le=3600)] = 10
    """Seconds that a stopping server waits for its runs; then they end as `error`."""

    external_claim_seconds: Annotated[Number, Field(ge=1, le=604_800)] = 3600
    """Seconds that an external run waits for an executor; then it ends as `error`."""

    tokens: tuple[Token, ...] = ()
    """Tokens in addition to the admin token."""

    script_timeout_seconds: Annotated[Number, Field(gt=0, le=600)] = SCRIPT_TIMEOUT_SECONDS
    """Timeout of a context script that sets none, in seconds."""

    scripts_total_seconds: Annotated[Number, Field(gt=0, le=3600)] = 30
    """Timeout of all context scripts of one spawn together, in seconds."""

    script_output_bytes_max: Annotated[Whole, Field(ge=1, le=16_777_216)] = 1_048_576
    """Maximum bytes of a context script's output; beyond it the script fails."""

    allowed_hosts: tuple[Annotated[NameText, Field(max_length=253)], ...] = ()
    """Host names, in addition to its own, under which the server may be addressed. Example:
    `["spawnlog.example"]`
    """

    workspace_roots: Annotated[tuple[NameText, ...], Field(max_length=100)] = ()
    """Folders, in addition to the agents' workspaces, below which a request may place its
    requester's workspace. Example: `["/srv"]`
    """

    hooks: HooksSection = Field(default_factory=HooksSection)
    """HTTP hooks that are called about children."""

    announce: AnnounceSection = Field(default_factory=AnnounceSection)
    """Webhooks that receive announcements."""

    telemetry: TelemetrySection = Field(default_factory=TelemetrySection)
    """Export of OpenTelemetry spans."""

    @field_validator("host")
    @classmethod
    def _require_plain_host(cls, host: str) -> str:
        return _check_host(host)

    @field_validator("tokens")
    @classmethod
    def _require_distinct_ids(cls, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        ids: set[str] = set()
        for index, token in enumerate(tokens):
            if token.id in ids:
                raise section_error(
                    "token", f'there is another token "{token.id}"', at=f"{index}/id"
                )
            ids.add(token.id)
        return tokens

    @property
    def is_loopback(self) -> bool:
        """Return True if only programs on this machine can reach the server."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def effective_settings(
    file: Settings, variables: Mapping[str, str], flags: Mapping[str, object]
) -> Settings:
    """Merge settings: a flag overrides a variable, and a variable overrides the file.

    Args:
        file: Settings of the file.
        variables: Environment variables; an empty value counts as unset.
        flags: Command-line flags by field name (`database_url`); None means not given.

    Raises:
        ConfigurationError: A value is invalid. The error names the variable or flag.
        ValueError: A flag is not a known setting.
    """
    values: dict[str, Any] = dict(file)
    sources: dict[str, str] = {}
    for field, variable in VARIABLES.items():
        if text := variables.get(variable, "").strip():
            values[field], sources[field] = _typed(field, text), variable
    if endpoint := variables.get(OTLP_ENDPOINT_VARIABLE, "").strip():
        values["telemetry"] = {**dict(file.telemetry), "otlp_endpoint": endpoint}
        sources["telemetry"] = OTLP_ENDPOINT_VARIABLE
    for field, value in flags.items():
        if field not in VARIABLES:
            raise ValueError(f"no such setting: {field}")
        if value is not None and not (field in _FLAGS and value is False):
            values[field], sources[field] = value, "--" + field.replace("_", "-")
    try:
        settings = Settings.model_validate(values)
    except ValidationError as failure:
        raise ConfigurationError(
            ConfigurationProblem(
                render_error(error)[0], source=sources.get(str(error["loc"][0]), "settings")
            )
            for error in failure.errors(include_url=False)
        ) from None
    if settings.no_auth and not settings.is_loopback:
        message = (
            f"serving without authentication needs a loopback host such as 127.0.0.1, "
            f"not {settings.host}"
        )
        source = sources.get("no_auth") or sources.get("host") or "spawnlog.noAuth"
        raise ConfigurationError([ConfigurationProblem(message, source=source)])
    return settings


def _typed(field: str, text: str) -> object:
    """Convert a variable's text to the field's type.

    Text that does not fit is returned unchanged, and validation rejects it.
    """
    if field in _FLAGS:
        return True if text.lower() in _YES else False if text.lower() in _NO else text
    if field not in ("port", "lease_seconds", "drain_seconds"):
        return text
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
