"""Sends spans by OTLP over HTTP, with the library of OpenTelemetry, which is an extra.

The library is loaded by the first spans, in the one thread that sends them. Its own batches,
threads and globals are not used: what is sent follows from the record and has ids of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING

from application.ports.spans import Span, SpansNotSent

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource

PATH = "/v1/traces"
SEND_SECONDS_MAX = 5.0
"""For a request and its repeats: what is not taken until then is not sent."""


def is_installed() -> bool:
    """Whether what sends spans is there: `spawnlog[otel]`."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
    except ModuleNotFoundError:
        return False


class OtlpReceiver:
    """Implements `SpanReceiver`. `headers` looks secrets up, at the first request."""

    def __init__(
        self, endpoint: str, headers: Callable[[], Mapping[str, str]], identity: Mapping[str, str]
    ) -> None:
        self._url = endpoint + PATH
        self._headers = headers
        self._identity = identity
        self._exporter: OTLPSpanExporter | None = None
        self._resource: Resource | None = None
        self._thread = ThreadPoolExecutor(1, "spans")

    async def send(self, spans: Sequence[Span]) -> None:
        """Send them."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._send, spans)

    async def close(self) -> None:
        """Send no more; what is repeated just now is given up."""
        if self._exporter is not None:
            self._exporter.shutdown()  # type: ignore[no-untyped-call]
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _send(self, spans: Sequence[Span]) -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        from infrastructure.outbound.otlp.readable_spans import readable_span

        if self._exporter is None or self._resource is None:
            self._open()
        assert self._exporter is not None
        assert self._resource is not None
        result = self._exporter.export([readable_span(span, self._resource) for span in spans])
        if result is not SpanExportResult.SUCCESS:
            raise SpansNotSent(
                f"{self._url} did not take {len(spans)} of them; see that it is there, and that"
                " spawnlog.telemetry.headers are what it asks for"
            )

    def _open(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource

        # It says every failure by itself, with what the receiver answered, which may be anything.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._resource = Resource.create(dict(self._identity))
        self._exporter = OTLPSpanExporter(
            endpoint=self._url, headers=dict(self._headers()), timeout=SEND_SECONDS_MAX
        )
