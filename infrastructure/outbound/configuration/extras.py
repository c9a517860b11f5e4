"""Optional extras of the package, looked up without importing them."""

from importlib.util import find_spec

_INSTALL = (
    "in a clone of spawnlog, run pip install ./client '.[{extra}]' (of a wheel: its file name"
    " followed by [{extra}])"
)
MODEL_MISSING = f"needs the extra `model`: {_INSTALL.format(extra='model')}"
SPANS_MISSING = (
    f"spans cannot be sent without the extra `otel`: {_INSTALL.format(extra='otel')}; or remove"
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
