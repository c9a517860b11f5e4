"""Sender of spans, with a real receiver."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from application.ports.spans import Span, SpanExportError
from infrastructure.outbound.otlp.receiver import OtlpReceiver
from tests.support.servers.span_server import SpanServer

AT = datetime(2026, 11, 20, tzinfo=UTC)
SPAN = Span(1, 2, None, False, "invoke_agent main", AT, AT, {"spawnlog.run.id": "a"})
SECRET = "canary-of-a-variable"


@pytest.fixture
def server() -> Iterator[SpanServer]:
    with SpanServer() as server:
        yield server


async def sent(server: SpanServer, **headers: str) -> None:
    """Send a span."""
    receiver = OtlpReceiver(server.url, headers, {"service.name": "spawnlog"})
    try:
        await receiver.send([SPAN])
    finally:
        await receiver.close()


async def test_span_is_sent(server: SpanServer) -> None:
    await sent(server)
    assert [span.name for span in server.spans] == ["invoke_agent main"]


@pytest.mark.parametrize("status", [301, 308, 400])
async def test_refusing_receiver_took_nothing(server: SpanServer, status: int) -> None:
    server.status = status
    with pytest.raises(SpanExportError, match="did not accept 1 spans"):
        await sent(server)
    assert server.asked == 1


async def test_malformed_headers_are_in_no_log(
    server: SpanServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"Authorization: Bearer {SECRET}")
    with caplog.at_level(logging.INFO):
        await sent(server)
    assert SECRET not in caplog.text


async def test_headers_of_environment_and_file_are_sent(
    server: SpanServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-there=of%20both,x-of-all=machine")
    await sent(server, **{"x-there": "file", "x-scope": "tides"})
    names = ("x-there", "x-of-all", "x-scope")
    assert [server.headers.get(name) for name in names] == ["file", "machine", "tides"]


async def test_login_of_the_machine_replaces_no_header(
    server: SpanServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password of-the-machine\n", "utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    await sent(server, Authorization="Bearer of-the-file")
    logins = [value for name, value in server.headers.items() if name.lower() == "authorization"]
    assert logins == ["Bearer of-the-file"]
