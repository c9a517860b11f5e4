"""Send spans by OTLP over HTTP with the OpenTelemetry library, an optional extra.

The library is loaded with the first spans, in the only thread that sends them. Its batching,
threads and globals are not used, because spans are derived from the log and have ids of their own.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from application.ports.spans import Span, SpanExportError

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource

PATH = "/v1/traces"
SEND_SECONDS_MAX = 5.0
"""Timeout of a request including its retries. Spans not accepted until then are dropped."""


class OtlpReceiver:
    """Implementation of `SpanReceiver`. The `headers` are secrets."""

    def __init__(
        self, endpoint: str, headers: Mapping[str, str], identity: Mapping[str, str]
    ) -> None:
        self._url = endpoint + PATH
        self._headers = headers
        self._identity = identity
        self._opened: tuple[OTLPSpanExporter, Resource] | None = None
        self._thread = ThreadPoolExecutor(1, "spans")

    async def send(self, spans: Sequence[Span]) -> None:
        """Send spans. Raise SpansNotSent if the receiver does not accept them."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._send, spans)

    async def close(self) -> None:
        """Stop sending; a retry in progress is abandoned."""
        if self._opened is not None:
            self._opened[0].shutdown()  # type: ignore[no-untyped-call]
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _send(self, spans: Sequence[Span]) -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        from infrastructure.outbound.otlp.readable_spans import readable_span

        if self._opened is None:
            self._opened = self._open()
        exporter, resource = self._opened
        result = exporter.export([readable_span(span, resource) for span in spans])
        if result is not SpanExportResult.SUCCESS:
            raise SpanExportError(
                f"{self._url} did not accept {len(spans)} spans; check that the address is right"
                " and does not redirect, and that spawnlog.telemetry.headers, or the variable"
                " OTEL_EXPORTER_OTLP_HEADERS (NAME=VALUE), have the headers it requires"
            )

    def _open(self) -> "tuple[OTLPSpanExporter, Resource]":
        import requests
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource

        # The library logs each failure with the receiver's answer, and invalid variables with
        # their values, which may be secrets.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        session = requests.Session()
        # By default, a login from `.netrc` would replace our header.
        session.auth = _add_nothing
        session.hooks["response"].append(_refuse_redirect)
        exporter = OTLPSpanExporter(
            endpoint=self._url,
            headers=dict(self._headers),
            timeout=SEND_SECONDS_MAX,
            session=session,
        )
        return exporter, Resource.create(dict(self._identity))


def _add_nothing(request: Any) -> Any:
    return request


def _refuse_redirect(answer: Any, **_: object) -> None:
    """Raise OSError for a redirect: the library does not follow it and counts it as a success."""
    if 300 <= answer.status_code < 400:
        answer.close()
        raise OSError("answered with a redirect")
