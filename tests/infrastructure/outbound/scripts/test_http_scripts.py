"""Context scripts at URLs: their requests, and forbidden responses."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from application.ports.scripts import ScriptFinished
from infrastructure.outbound.scripts import http
from infrastructure.outbound.scripts.http import HttpScripts
from tests.support.builders.scripts import script_run, source_in
from tests.support.servers.cut_answers import BODIES, answering
from tests.support.servers.script_server import Asked, ScriptServer, answer, redirect
from tests.support.waiting import until

TLS = Path(__file__).parents[3] / "tls"
"""Certificate authority of these tests, and a certificate with its key for `right.test`."""

BROKEN_OFF = "Script closed the connection"
ELSEWHERE = "Script redirects to another host; give that address as its uri"


@pytest.fixture
async def server() -> AsyncIterator[ScriptServer]:
    async with ScriptServer() as server:
        yield server


async def call(uri: str, *, replace: Callable[[str], str] = str, **request: Any) -> ScriptFinished:
    scripts = HttpScripts(source_in(Path("/"), replace))
    return await scripts.run(script_run(uri, **request))


# Requests.


async def test_get_has_variables_in_query(server: ScriptServer) -> None:
    uri = server.at("/p", answer(b" text \n"))
    finished = await call(
        f"{uri}?x=1#there",
        argMap={"k": "task", "tag": "label", "c": "cfg"},
        variables={"task": "a&b= é/", "cfg": {"a": 1}},
        facts={"SPAWNLOG_RUN_ID": "the-run", "SPAWNLOG_ATTEMPT": "2"},
    )
    assert (finished.output, finished.error, finished.status_code) == ("text", None, 200)
    assert finished.exit_code is None
    (request,) = server.asked
    assert request.method == "GET"
    assert request.target == "/p?x=1&k=a%26b%3D%20%C3%A9%2F&tag=&c=%7B%22a%22%3A1%7D"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["idempotency-key"] == "the-run:script:s"
    assert request.headers["spawnlog-attempt"] == "2"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["accept"].startswith("application/json")
    assert not {"content-type", "authorization"} & set(request.headers)


@pytest.mark.parametrize("method", ["post", "PUT", "patch"])
async def test_post_has_variables_in_json_body(server: ScriptServer, method: str) -> None:
    uri = server.at("/p", answer(b"text"))
    await call(uri, method=method, argMap={"k": "task", "tag": "label"}, variables={"task": "é"})
    (request,) = server.asked
    assert (request.method, request.target) == (method.upper(), "/p")
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.body) == {"k": "é"}


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_call_without_variables_has_no_query_or_body(
    server: ScriptServer, method: str
) -> None:
    await call(server.at("/p", answer(b"text")), method=method)
    (request,) = server.asked
    assert (request.target, request.body) == ("/p", b"")
    assert "content-type" not in request.headers


async def test_user_and_password_of_uri_become_header(server: ScriptServer) -> None:
    uri = server.at("/p", answer(b"text")).replace("://", "://${WHO}@")
    finished = await call(uri, replace=lambda text: text.replace("${WHO}", "me:pa%40ss"))
    assert finished.error is None
    assert server.asked[0].headers["authorization"] == "Basic bWU6cGFAc3M="
    assert server.asked[0].headers["host"] == f"127.0.0.1:{server.port}"


async def test_proxy_and_password_file_are_not_used(
    server: ScriptServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    finished = await call(server.at("/p", answer(b"text")))
    assert finished.error is None
    assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize(("level", "is_kept"), [("verbose", True), (True, False)])
async def test_verbose_log_has_call_without_secrets(
    server: ScriptServer, level: object, is_kept: bool
) -> None:
    there = server.at("/p", answer(b"text"))

    def replaced(text: str) -> str:
        return text.replace("${A}", "me:s3cret@").replace("${B}", "s3cret")

    uri = there.replace("://", "://${A}") + "?token=${B}&x=1"
    finished = await call(uri, replace=replaced, method="POST", argMap={"t": "task"}, log=level)
    assert server.asked[0].target == "/p?token=s3cret&x=1"
    called = ("POST", f"{there}?token=[secret]&x=1"), ("body:", '{"t":"Review it."}')
    assert finished.called == (called if is_kept else ())


async def test_long_query_is_refused_with_remedy(server: ScriptServer) -> None:
    uri = server.at("/p", answer())
    for task in ("x" * 8192, "é" * 3000):
        finished = await call(uri, argMap={"k": "task"}, variables={"task": task})
        assert finished.error == (
            "Script was not called: the URL would have more than 8192 bytes; use method POST"
        )
    assert server.asked == []


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("http://127.0.0.1:1/", "Script cannot be reached"),
        ("http://h:99999/", "Script has a URL that cannot be called"),
        ("http://" + "a" * 300 + "/", "Script host cannot be found"),
        ("http://nobody.invalid/", "Script host cannot be found"),
        ("file:///etc/hosts", "Script is not a URL after its variables are replaced"),
        ("http://127.0.0.1:1/\udcff", "Script has a URL that cannot be called"),
        ("http://127.0.0.1:1/a\r\nX: y", "Script has a URL that cannot be called"),
        ("http://127.0.0.1:1/" + "€" * 3000, "Script was not called: the URL would have more than"),
    ],
    ids=range(8),
)  # fmt: skip
async def test_uncallable_uri_says_why(uri: str, why: str) -> None:
    finished = await call("http://${HOOK}", replace=lambda _: uri)
    assert str(finished.error).startswith(why)


async def test_calls_at_once_are_limited(
    server: ScriptServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http.CALLS_AT_ONCE_MAX == 100
    monkeypatch.setattr(http, "CALLS_AT_ONCE_MAX", 2)
    go, most = asyncio.Event(), 0

    async def wait(_: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal most
        most = max(most, server.open)
        await go.wait()
        writer.write(answer(b"text"))
        await writer.drain()

    uri = server.at("/p", wait)
    scripts = HttpScripts(source_in(Path("/")))
    calls = [asyncio.create_task(scripts.run(script_run(uri))) for _ in range(4)]
    late = await scripts.run(script_run(uri, timeout_seconds=0.3))
    await until(lambda: server.open == 2)
    go.set()
    finished = await asyncio.gather(*calls)
    assert late.error == "Script execution timed out after 0.3 seconds"
    assert [item.error for item in finished] == [None] * 4
    assert most == 2


# Redirects.


@pytest.mark.parametrize(
    ("status", "method", "arrives"),
    [
        ("302 Found", "POST", "GET"),
        ("303 See Other", "PUT", "GET"),
        ("307 Temporary Redirect", "POST", "POST"),
        ("301 Moved", "GET", "GET"),
    ],
)
async def test_redirect_on_same_host_is_followed(
    server: ScriptServer, status: str, method: str, arrives: str
) -> None:
    server.at("/there", answer(b"here"))
    uri = server.at("/p", redirect("/there?a=1", status))
    finished = await call(uri, method=method, argMap={"k": "task"}, variables={"task": "t"})
    assert (finished.output, finished.error, finished.status_code) == ("here", None, 200)
    last = server.asked[-1]
    assert (last.method, last.target) == (arrives, "/there?a=1")
    assert bool(last.body) is (arrives == "POST")
    assert ("content-type" in last.headers) is (arrives == "POST")


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("http://localhost:{port}/there", ELSEWHERE),
        ("http://127.0.0.1:1/there", ELSEWHERE),
        ("https://127.0.0.1:{port}/there", ELSEWHERE),
        ("//169.254.169.254/latest", ELSEWHERE),
        ("http://169.254.169.254/latest", ELSEWHERE),
        ("file:///etc/hosts", "Script redirects to an invalid URL"),
        ("http://[::bad", "Script redirects to an invalid URL"),
        ("/p", "Script redirects more than 3 times"),
        ("/" + "a" * 8192, "Script redirects to a URL of more than 8192 bytes"),
    ],
)
async def test_redirect_elsewhere_is_refused(server: ScriptServer, location: str, why: str) -> None:
    server.at("/there", answer(b"here"))
    finished = await call(server.at("/p", redirect(location.format(port=server.port))))
    assert (finished.error, finished.raw) == (why, b"")
    assert {request.target for request in server.asked} == {"/p"}
    assert len(server.asked) == (4 if location == "/p" else 1)


# Answers.


async def test_error_status_keeps_reason_and_body(server: ScriptServer) -> None:
    finished = await call(server.at("/p", answer(b"why", "503 Service Unavailable")))
    assert (finished.error, finished.status_code) == ("HTTP 503: Service Unavailable", 503)
    assert finished.raw == b"why"


@pytest.mark.parametrize("name", ["cut", "cut chunk", "broken chunk"])
@pytest.mark.parametrize(
    ("status", "why"), [("503 Busy", "HTTP 503: Busy"), ("200 OK", BROKEN_OFF)]
)
async def test_cut_body_fails_unless_status_failed(status: str, why: str, name: str) -> None:
    async with answering(status, BODIES[name]) as url:
        assert (await call(url)).error == why


async def test_error_status_is_reported_despite_slow_body() -> None:
    slow = b"Content-Length: 100\r\n\r\no"
    async with answering("503 Busy", slow, stays=True) as url, asyncio.timeout(10):
        assert (await call(url, timeout_seconds=0.3)).error == "HTTP 503: Busy"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_malformed_answer_is_a_failure(server: ScriptServer, content: bytes) -> None:
    assert (await call(server.at("/p", content))).error == BROKEN_OFF


async def test_endless_answer_is_ended_at_limit(server: ScriptServer) -> None:
    async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            await writer.drain()

    finished = await call(server.at("/p", endless), output_bytes_max=200_000)
    assert finished.error == (
        "Script answered more than 200000 bytes and was stopped; reduce its answer"
    )
    assert (len(finished.raw), finished.status_code) == (200_000, 200)
    await until(lambda: server.open == 0)


async def test_dripping_headers_are_ended_in_time(server: ScriptServer) -> None:
    async def drip(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        number = 0
        while True:
            number += 1
            writer.write(b"X-%d: y\r\n" % number)
            await writer.drain()
            await asyncio.sleep(0.02)

    finished = await call(server.at("/p", drip), timeout_seconds=0.3)
    assert finished.error == "Script execution timed out after 0.3 seconds"
    assert finished.duration_ms < 5000
    await until(lambda: server.open == 0)


async def test_endless_headers_are_broken_off(server: ScriptServer) -> None:
    async def flood(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            writer.write(b"y" * 0x10000)
            await writer.drain()

    assert (await call(server.at("/p", flood))).error == BROKEN_OFF
    await until(lambda: server.open == 0)


async def test_encoded_answer_is_not_unpacked(server: ScriptServer) -> None:
    uri = server.at("/p", answer(b"\x1f\x8b bomb", "200 OK", "Content-Encoding: gzip"))
    finished = await call(uri)
    assert "an encoding that was not requested" in str(finished.error)
    assert finished.raw == b""


async def test_certificate_is_verified_for_name_of_url() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "right_test.pem")
    trusting = ssl.create_default_context(cafile=str(TLS / "authority.pem"))

    async def here(host: str, port: int) -> Sequence[str]:
        return ("127.0.0.1",)

    distrusted = "Script cannot be reached: its certificate is not trusted here"
    async with ScriptServer(context) as server:
        right, wrong = (server.at("/p", answer(b"text"), f"{name}.test") for name in ("right", "w"))
        scripts = HttpScripts(source_in(Path("/")), resolve=here, tls=trusting)
        # In turn, so that a connection that was kept would be used for the other name.
        errors = [(await scripts.run(script_run(uri))).error for uri in (right, wrong, right)]
        scripts = HttpScripts(source_in(Path("/")), resolve=here)
        errors.append((await scripts.run(script_run(right))).error)
    assert errors == [None, distrusted, None, distrusted]
    assert [request.headers["host"] for request in server.asked] == [
        f"right.test:{server.port}"
    ] * 2
