"""What is only there where its extra was installed; each is looked for without importing it."""

from importlib.util import find_spec

MODEL_MISSING = (
    'needs what calls models, and that is not installed here: pip install "spawnlog[model]"'
)
SPANS_MISSING = (
    "spans cannot be sent: the library for it is not installed; install spawnlog[otel], or"
    " remove spawnlog.telemetry.otlpEndpoint and SPAWNLOG_OTLP_ENDPOINT"
)


def is_model_installed() -> bool:
    """Whether what calls models is there."""
    return all(find_spec(name) is not None for name in ("pydantic_ai", "openai", "fastmcp"))


def is_otel_installed() -> bool:
    """Whether what sends spans is there."""
    try:
        return all(
            find_spec(name) is not None
            for name in ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "requests")
        )
    except ModuleNotFoundError:
        return False
