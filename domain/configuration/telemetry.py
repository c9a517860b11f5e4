"""The `spawnlog.telemetry` section: export of spans."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator

from domain.configuration.hooks import (
    HEADERS_MAX,
    URL_CHARACTERS_MAX,
    check_headers,
    url_problem,
)
from domain.configuration.secrets import SecretReference, SecretText
from domain.configuration.sections import OwnSection, Text, section_error


def _endpoint(url: str) -> str:
    complaint = url_problem(url)
    if complaint is None and urlsplit(url).query:
        complaint = "must not have a query; put secrets into headers"
    if complaint is not None:
        raise section_error("otlp_endpoint", complaint)
    return url.rstrip("/")


class TelemetrySection(OwnSection):
    """The `spawnlog.telemetry` section.

    If an endpoint is set, spans are sent to its path `/v1/traces` by OTLP over HTTP. Headers are
    secret.
    """

    otlp_endpoint: (
        Annotated[Text, Field(max_length=URL_CHARACTERS_MAX), AfterValidator(_endpoint)] | None
    ) = None
    """Address of an OpenTelemetry collector; spans go to `/v1/traces` below it. Unset: none are
    sent. Example: `"http://127.0.0.1:4318"`
    """

    headers: Annotated[dict[Text, SecretText], Field(max_length=HEADERS_MAX)] = Field(
        default_factory=dict, repr=False
    )
    """Headers of each request; kept secret. Example: `{ Authorization: "Bearer ${OTLP_TOKEN}" }`"""

    @field_validator("headers")
    @classmethod
    def _validate_headers(cls, headers: dict[str, str | SecretReference]) -> dict[str, object]:
        return check_headers(headers)
