"""Context scripts at a URL: what is said of a call, and how many there are at once."""

import asyncio
from pathlib import Path

import pytest

from infrastructure.outbound.scripts import http
from infrastructure.outbound.scripts.http import HttpScripts
from tests.support.builders.scripts import script_run, source_in
from tests.support.servers.process_table import until
from tests.support.servers.script_server import Asked, ScriptServer, answer


async def test_only_so_many_are_called_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert http.CALLS_AT_ONCE_MAX == 100
    monkeypatch.setattr(http, "CALLS_AT_ONCE_MAX", 2)
    go = asyncio.Event()
    most = 0

    async with ScriptServer() as server:

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
    assert [one.error for one in finished] == [None] * 4
    assert most == 2


@pytest.mark.parametrize(("level", "told"), [("verbose", True), (True, False)])
async def test_a_verbose_log_is_told_the_call_without_its_secrets(
    level: object, told: bool
) -> None:
    async with ScriptServer() as server:
        there = server.at("/p", answer(b"text"))

        def replaced(text: str) -> str:
            return text.replace("${A}", "me:s3cret@").replace("${B}", "s3cret")

        uri = there.replace("://", "://${A}") + "?token=${B}&x=1"
        scripts = HttpScripts(source_in(Path("/"), replaced))
        finished = await scripts.run(
            script_run(uri, method="POST", argMap={"t": "task"}, log=level)
        )
        assert server.asked[0].target == "/p?token=s3cret&x=1"
    call = ("POST", f"{there}?token=[secret]&x=1"), ("body:", '{"t":"Review it."}')
    assert finished.called == (call if told else ())
    assert "s3cret" not in repr(finished.called)


async def test_the_length_of_a_url_is_counted_in_bytes() -> None:
    scripts = HttpScripts(source_in(Path("/")))
    finished = await scripts.run(script_run("http://127.0.0.1:1/" + "€" * 3000))
    assert finished.error is not None
    assert "more than 8192 bytes" in finished.error
