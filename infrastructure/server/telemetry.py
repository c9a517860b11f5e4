"""Telemetry of a server: its prerequisites, and the export of spans."""

import logging
from dataclasses import dataclass

from application.log.envelope import WRITER_VERSION
from application.telemetry.span_export import SpanExport
from application.telemetry.trace_context import TraceContexts
from domain.configuration.problems import ConfigurationError
from domain.configuration.settings import Settings
from domain.configuration.telemetry import TelemetrySection
from infrastructure.contract.errors import UserError
from infrastructure.outbound.configuration.extras import SPANS_MISSING, is_otel_installed
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.log.postgres_log import PostgresLog
from infrastructure.outbound.otlp.receiver import OtlpReceiver
from infrastructure.server.health import holder_name

_log = logging.getLogger("spawnlog")


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Export of spans to an endpoint."""

    traces: TraceContexts
    spans: SpanExport


def usable_telemetry(loaded: LoadedConfiguration, settings: Settings) -> Settings:
    """Return the settings, if their spans can be sent.

    If they cannot be because the file of a kept revision is missing, log a warning and return the
    settings without telemetry.

    Raises:
        UserError: Spans cannot be sent for another reason.
    """
    try:
        _require_usable(loaded, settings)
    except UserError as error:
        if loaded.missing is None:
            raise
        _log.warning("no spans are sent: %s", error)
        return settings.model_copy(update={"telemetry": TelemetrySection()})
    return settings


def _require_usable(loaded: LoadedConfiguration, settings: Settings) -> None:
    if settings.telemetry.otlp_endpoint is None:
        return
    if not is_otel_installed():
        raise UserError(SPANS_MISSING)
    try:
        _headers(loaded, settings)
    except ConfigurationError as error:
        raise UserError(f"spawnlog.telemetry.headers cannot be used: {error}") from error


def start_telemetry(
    loaded: LoadedConfiguration, settings: Settings, log: PostgresLog
) -> Telemetry | None:
    """Start to send spans of new commits. Return None if no endpoint is configured."""
    endpoint = settings.telemetry.otlp_endpoint
    if endpoint is None:
        return None
    identity = {
        "service.name": "spawnlog",
        "service.version": WRITER_VERSION,
        "service.instance.id": holder_name(),
        "spawnlog.log": str(log.log_id),
    }
    traces = TraceContexts(log)
    spans = SpanExport(log, traces, OtlpReceiver(endpoint, _headers(loaded, settings), identity))
    log.on_commit = spans.take
    spans.start()
    return Telemetry(traces, spans)


def _headers(loaded: LoadedConfiguration, settings: Settings) -> dict[str, str]:
    """Return the headers of span requests, with secrets resolved.

    Raises:
        ConfigurationError: A reference cannot be resolved.
    """
    return {name: loaded.resolve(value) for name, value in settings.telemetry.headers.items()}
