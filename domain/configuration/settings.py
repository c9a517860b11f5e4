"""The `spawnlog` section: how the server itself runs, and where each value may come from."""

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

# Tokens that a file gives out: who holds one, what it may do, and for which sessions.


TokenScope = Literal["spawn", "read", "content", "control", "worker", "admin"]
_ADVICE = 'write "${NAME}" for an environment variable or {"file": "path"} for a file'


def _pattern(text: str) -> str:
    if len(text.encode()) > 512:
        raise section_error("sessions", "must be at most 512 bytes")
    return ":".join(fold_part(part) for part in text.split(":"))


class TokenSource(OwnSection):
    """Where the token's text comes from: exactly one of an environment variable, a file, and (in
    a revision read back) the file the revision was read from."""

    variable: NameText | None = None
    file: NameText | None = None
    secret: SecretReference | None = None


def _source(value: Any) -> Any:
    if isinstance(value, TokenSource):
        return value
    if isinstance(value, str):
        name = variable_named_by(value)
        if name is None:
            raise section_error("token", f"a token must not stand in the file; {_ADVICE}")
        return {"variable": name}
    if isinstance(value, dict) and set(value) == {"file"}:
        return value
    if isinstance(value, dict) and set(value) == {"$secret"}:
        return {"secret": value}
    raise section_error("token", f"must be a reference; {_ADVICE}")


class Token(OwnSection):
    """One token. `sessions` are patterns of session keys in which `*` stands for anything."""

    id: Annotated[NameText, Field(max_length=64)]
    token: Annotated[TokenSource, BeforeValidator(_source)]
    scopes: Annotated[tuple[TokenScope, ...], Field(min_length=1)]
    sessions: Annotated[
        tuple[Annotated[NameText, AfterValidator(_pattern)], ...], Field(min_length=1)
    ]


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
"""It stands for a value within a section, unlike the others."""

_FLAGS = ("no_auth", "no_page")
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


def _absent_when_referred_to(value: object) -> object:
    return None if isinstance(value, dict) and set(value) == {"$secret"} else value


def _host(value: str) -> str:
    if any(sign in value for sign in " /@?#"):
        raise section_error("host", "must be a host name or an address, without a scheme or a path")
    return value


class Settings(OwnSection):
    """The `spawnlog` section.

    `database_url` (None: the embedded server) may hold `${NAME}`; it is None in a revision read
    back, for it is the server's own. `port` 0 picks a free one. `external_claim_seconds` is how
    long a run that is executed outside waits to be claimed. `script_timeout_seconds` is for
    scripts that do not say, `scripts_total_seconds` for all scripts of one spawn. `allowed_hosts`
    are names by which the server may be addressed besides its own. `workspace_roots` are folders
    in which a request may name its requester's workspace, besides the agents' own.
    """

    database_url: Annotated[NameText | None, BeforeValidator(_absent_when_referred_to)] = Field(
        default=None, repr=False
    )
    data_dir: NameText | None = None
    host: Annotated[NameText, Field(max_length=253)] = "127.0.0.1"
    port: Annotated[Whole, Field(ge=0, le=65_535)] = 8700
    no_auth: Flag = False
    no_page: Flag = False
    lease_seconds: Annotated[Number, Field(ge=1, le=3600)] = 15
    drain_seconds: Annotated[Number, Field(ge=0, le=3600)] = 10
    external_claim_seconds: Annotated[Number, Field(ge=1, le=604_800)] = 3600
    tokens: tuple[Token, ...] = ()
    script_timeout_seconds: Annotated[Number, Field(gt=0, le=600)] = SCRIPT_TIMEOUT_SECONDS
    scripts_total_seconds: Annotated[Number, Field(gt=0, le=3600)] = 30
    script_output_bytes_max: Annotated[Whole, Field(ge=1, le=16_777_216)] = 1_048_576
    allowed_hosts: tuple[Annotated[NameText, Field(max_length=253)], ...] = ()
    workspace_roots: Annotated[tuple[NameText, ...], Field(max_length=100)] = ()
    hooks: HooksSection = Field(default_factory=HooksSection)
    announce: AnnounceSection = Field(default_factory=AnnounceSection)
    telemetry: TelemetrySection = Field(default_factory=TelemetrySection)

    @field_validator("host")
    @classmethod
    def _plain_host(cls, host: str) -> str:
        return _host(host)

    @field_validator("tokens")
    @classmethod
    def _each_id_once(cls, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
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
        """Whether only programs on this machine can reach the server."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def effective_settings(
    file: Settings, variables: Mapping[str, str], flags: Mapping[str, object]
) -> Settings:
    """The settings to run with: a flag beats a variable, a variable beats the file.

    `variables` is the environment (an empty value counts as not set), `flags` what was typed, by
    field name (`database_url`; None is not given). Raises ConfigurationError that names the
    variable or flag at fault.
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
    """A variable's text as the field's type; what does not fit stays text and is refused."""
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
