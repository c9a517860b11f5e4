"""Context scripts that are URLs: what they are sent, and what an answer may not do."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from application.ports.scripts import ScriptFinished
from infrastructure.outbound.scripts.http import HttpScripts
from tests.support.builders.scripts import script_run, source_in
from tests.support.servers.process_table import until
from tests.support.servers.script_server import Asked, ScriptServer, answer, redirect

Call = Callable[..., Awaitable[ScriptFinished]]


@pytest.fixture
async def server() -> AsyncIterator[ScriptServer]:
    async with ScriptServer() as server:
        yield server


async def call(uri: str, *, replace: Callable[[str], str] = str, **request: Any) -> ScriptFinished:
    scripts = HttpScripts(source_in(Path("/"), replace))
    return await scripts.run(script_run(uri, **request))


async def test_a_get_has_its_variables_in_the_query(server: ScriptServer) -> None:
    uri = server.at("/p", answer(b" text \n"))
    finished = await call(
        f"{uri}?x=1#there",
        argMap={"k": "task", "tag": "label", "c": "cfg"},
        variables={"task": "a&b= é/", "cfg": {"a": 1}},
        facts={"SPAWNLOG_RUN_ID": "the-run", "SPAWNLOG_ATTEMPT": "2"},
    )
    assert (finished.output, finished.error, finished.status_code) == ("text", None, 200)
    assert finished.exit_code is None
    (asked,) = server.asked
    assert asked.method == "GET"
    assert asked.target == "/p?x=1&k=a%26b%3D%20%C3%A9%2F&tag=&c=%7B%22a%22%3A1%7D"
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert asked.headers["idempotency-key"] == "the-run:script:s"
    assert asked.headers["spawnlog-attempt"] == "2"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["accept"].startswith("application/json")
    assert "content-type" not in asked.headers
    assert "authorization" not in asked.headers


@pytest.mark.parametrize("method", ["post", "PUT", "patch"])
async def test_a_post_has_its_variables_in_a_json_body(server: ScriptServer, method: str) -> None:
    uri = server.at("/p", answer(b"text"))
    await call(uri, method=method, argMap={"k": "task", "tag": "label"}, variables={"task": "é"})
    (asked,) = server.asked
    assert (asked.method, asked.target) == (method.upper(), "/p")
    assert asked.headers["content-type"] == "application/json"
    assert json.loads(asked.body) == {"k": "é"}


async def test_without_variables_there_is_neither_query_nor_body(server: ScriptServer) -> None:
    uri = server.at("/p", answer(b"text"))
    await call(uri)
    await call(uri, method="POST")
    assert [(one.target, one.body) for one in server.asked] == [("/p", b""), ("/p", b"")]
    assert "content-type" not in server.asked[1].headers


async def test_user_and_password_of_the_uri_become_a_header(server: ScriptServer) -> None:
    uri = server.at("/p", answer(b"text")).replace("://", "://${WHO}@")
    finished = await call(uri, replace=lambda text: text.replace("${WHO}", "me:pa%40ss"))
    assert finished.error is None
    assert server.asked[0].headers["authorization"] == "Basic bWU6cGFAc3M="
    assert server.asked[0].headers["host"] == f"127.0.0.1:{server.port}"


async def test_an_error_status_is_told_with_its_reason_and_keeps_the_body(
    server: ScriptServer,
) -> None:
    uri = server.at("/p", answer(b"why", "503 Service Unavailable"))
    finished = await call(uri)
    assert (finished.error, finished.status_code) == ("HTTP 503: Service Unavailable", 503)
    assert finished.raw == b"why"


async def test_too_long_a_query_is_refused_with_the_way_out(server: ScriptServer) -> None:
    uri = server.at("/p", answer())
    for task in ("x" * 8192, "é" * 3000):
        finished = await call(uri, argMap={"k": "task"}, variables={"task": task})
        assert finished.error == (
            "Script was not called: the URL would have more than 8192 bytes; use method POST"
        )
    assert server.asked == []


async def test_a_redirect_on_the_same_host_is_followed(server: ScriptServer) -> None:
    server.at("/there", answer(b"here"))
    for status, method, arrives in [
        ("302 Found", "POST", "GET"),
        ("303 See Other", "PUT", "GET"),
        ("307 Temporary Redirect", "POST", "POST"),
        ("301 Moved", "GET", "GET"),
    ]:
        server.asked.clear()
        uri = server.at("/p", redirect("/there?a=1", status))
        finished = await call(uri, method=method, argMap={"k": "task"}, variables={"task": "t"})
        assert (finished.output, finished.error, finished.status_code) == ("here", None, 200)
        last = server.asked[-1]
        assert (last.method, last.target) == (arrives, "/there?a=1")
        assert bool(last.body) is (arrives == "POST")
        assert ("content-type" in last.headers) is (arrives == "POST")


ELSEWHERE = "Script redirects to another host; give that address as its uri"


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("http://localhost:{port}/there", ELSEWHERE),
        ("http://127.0.0.1:1/there", ELSEWHERE),
        ("https://127.0.0.1:{port}/there", ELSEWHERE),
        ("//169.254.169.254/latest", ELSEWHERE),
        ("http://169.254.169.254/latest", ELSEWHERE),
        ("file:///etc/hosts", "Script redirects to what is no URL"),
        ("http://[::bad", "Script redirects to what is no URL"),
        ("/p", "Script redirects more than 3 times"),
        ("/" + "a" * 8192, "Script redirects to a URL of more than 8192 bytes"),
    ],
)
async def test_a_redirect_leads_nowhere_else(
    server: ScriptServer, location: str, says: str
) -> None:
    server.at("/there", answer(b"here"))
    uri = server.at("/p", redirect(location.format(port=server.port)))
    finished = await call(uri)
    assert (finished.error, finished.raw) == (says, b"")
    assert {one.target for one in server.asked} == {"/p"}
    assert len(server.asked) == (4 if location == "/p" else 1)


async def test_an_answer_without_end_is_ended_at_the_limit(server: ScriptServer) -> None:
    async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            await writer.drain()

    finished = await call(server.at("/p", endless), output_bytes_max=200_000)
    assert finished.error == (
        "Script answered more than 200000 bytes and was ended; let it answer less"
    )
    assert (len(finished.raw), finished.status_code) == (200_000, 200)
    await until(lambda: server.open == 0)


async def test_headers_that_drip_are_ended_in_time(server: ScriptServer) -> None:
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


async def test_headers_without_end_break_the_call_off(server: ScriptServer) -> None:
    async def flood(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            writer.write(b"y" * 0x10000)
            await writer.drain()

    finished = await call(server.at("/p", flood))
    assert finished.error == "Script broke the connection off"
    await until(lambda: server.open == 0)


async def test_an_encoded_answer_is_not_unpacked(server: ScriptServer) -> None:
    uri = server.at("/p", answer(b"\x1f\x8b bomb", "200 OK", "Content-Encoding: gzip"))
    finished = await call(uri)
    assert finished.error is not None
    assert "an encoding that it was not asked for" in finished.error
    assert finished.raw == b""


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_what_is_no_answer_is_told_in_words(server: ScriptServer, said: bytes) -> None:
    finished = await call(server.at("/p", said))
    assert finished.error == "Script broke the connection off"


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("http://127.0.0.1:1/", "Script cannot be reached"),
        ("http://h:99999/", "Script is at no URL that can be called"),
        ("http://" + "a" * 300 + "/", "Script host cannot be found"),
        ("http://nobody.invalid/", "Script host cannot be found"),
        ("file:///etc/hosts", "Script is no URL once its variables are replaced"),
        ("http://127.0.0.1:1/\udcff", "Script is at no URL that can be called"),
        ("http://127.0.0.1:1/a\r\nX: y", "Script is at no URL that can be called"),
    ],
)
async def test_what_cannot_be_called_says_why(uri: str, says: str) -> None:
    finished = await call("http://${HOOK}", replace=lambda _: uri)
    assert finished.error is not None
    assert finished.error.startswith(says)


async def test_a_proxy_and_a_password_file_of_the_environment_are_not_used(
    server: ScriptServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    finished = await call(server.at("/p", answer(b"text")))
    assert finished.error is None
    assert "authorization" not in server.asked[0].headers
