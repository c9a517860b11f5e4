"""Real receiver of spans by OTLP over HTTP, which keeps them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.waiting import wait_for


@dataclass(frozen=True, slots=True)
class TakenSpan:
    """A span as it came; ids are in hexadecimal, `parent` is empty for the first of a trace."""

    trace: str
    id: str
    parent: str
    name: str
    seconds: float
    attributes: dict[str, Any]
    resource: dict[str, Any]
    events: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    is_error: bool = False


@dataclass
class SpanServer:
    """Receiver of spans, to be used in a `with` statement. `status` is the status of its
    answers.
    """

    status: int = 200
    spans: list[TakenSpan] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    asked: int = 0

    def __post_init__(self) -> None:
        taker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                taker.asked += 1
                taker.headers = dict(self.headers)
                if self.path == "/v1/traces" and taker.status == 200:
                    taker.spans += _spans_of(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(taker.status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def of_run(self, run_id: str, name: str = "invoke_agent") -> TakenSpan:
        """Return the span of a run whose name has this prefix, once it has come."""
        return self.find(
            f"a span {name} of {run_id}",
            lambda span: (
                span.name.startswith(name) and span.attributes.get("spawnlog.run.id") == run_id
            ),
        )

    def find(self, subject: str, fits: Callable[[TakenSpan], bool]) -> TakenSpan:
        """Return the first span that matches, once it has come."""
        return wait_for(
            subject, lambda: next((span for span in list(self.spans) if fits(span)), None)
        )


def _spans_of(body: bytes) -> list[TakenSpan]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        TakenSpan(
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            name=span.name,
            seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
            attributes=_plain(span.attributes),
            resource=_plain(of_resource.resource.attributes),
            events=tuple(event.name for event in span.events),
            links=tuple(link.span_id.hex() for link in span.links),
            is_error=span.status.code == 2,
        )
        for of_resource in request.resource_spans
        for scope in of_resource.scope_spans
        for span in scope.spans
    ]


def _plain(attributes: Any) -> dict[str, Any]:
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in attributes
    }
