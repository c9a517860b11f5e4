"""The connection goes to an address that was checked."""

import asyncio
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from infrastructure.outbound.guarded_http.address_guard import (
    LOOKUPS_AT_ONCE_MAX,
    NameLookups,
    address_complaint,
)
from infrastructure.outbound.scripts.http import HttpScripts
from tests.support.builders.scripts import script_run, source_in
from tests.support.servers.script_server import ScriptServer, answer, redirect

LINK_LOCAL = "Script resolves to a link-local address, which is never called"


FORBIDDEN = [
    "169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254",
    "::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "::ffff:0:a9fe:a9fe",
    "2002:a9fe:a9fe::1", "2001:0:a9fe:a9fe::1", "2001:0:7f00:1::5601:5601",
]  # fmt: skip
OF_CLOUDS = [
    "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "::ffff:100.100.100.200", "192.0.0.192",
    "64:ff9b::c000:c0",
]  # fmt: skip
OF_NO_MACHINE = [
    "0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:0:0", "x",
]  # fmt: skip
CALLABLE = [
    "127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd12::1", "93.184.216.34", "2600::1",
]  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
def test_link_local_address_is_refused(address: str) -> None:
    assert f"Script {address_complaint(address)}" == LINK_LOCAL


@pytest.mark.parametrize("address", OF_CLOUDS)
def test_metadata_address_of_cloud_is_refused(address: str) -> None:
    assert address_complaint(address) == (
        "resolves to a cloud metadata address, which is never called"
    )


@pytest.mark.parametrize("address", OF_NO_MACHINE)
def test_address_of_no_machine_is_refused(address: str) -> None:
    assert address_complaint(address) is not None


@pytest.mark.parametrize("address", CALLABLE)
def test_public_or_private_address_is_called(address: str) -> None:
    assert address_complaint(address) is None


class Names:
    """Gives these answers, one for each time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self._answers.pop(0)


async def error_of(names: Names, uri: str) -> str | None:
    scripts = HttpScripts(source_in(Path("/")), resolve=names.resolve)
    return (await scripts.run(script_run(uri))).error


async def test_name_is_resolved_once() -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    async with ScriptServer() as server:
        uri = server.at("/p", answer(b"text"), "rebinding.test")
        assert await error_of(names, uri) is None
        assert names.asked == [("rebinding.test", server.port)]
        assert server.asked[0].headers["host"] == f"rebinding.test:{server.port}"


async def test_name_is_judged_again_after_redirect() -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    async with ScriptServer() as server:
        server.at("/there", answer(b"text"))
        uri = server.at("/p", redirect("/there"), "rebinding.test")
        assert await error_of(names, uri) == LINK_LOCAL
        assert [request.target for request in server.asked] == ["/p"]


async def test_one_bad_address_refuses_name() -> None:
    async with ScriptServer() as server:
        uri = server.at("/p", answer(b"text"), "both.test")
        assert await error_of(Names(["127.0.0.1", "fe80::1"]), uri) == LINK_LOCAL
        assert server.asked == []


async def test_sixteen_addresses_are_tried() -> None:
    async with ScriptServer() as server:
        uri = server.at("/p", answer(b"text"), "many.test")
        for nobody, error in ((15, None), (16, "Script cannot be reached: Connection refused")):
            assert await error_of(Names(["127.0.0.9"] * nobody + ["127.0.0.1"]), uri) == error
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "2852039166", "0xa9fea9fe", "[::ffff:a9fe:a9fe]"]
)
async def test_spelling_of_link_local_address_is_refused(host: str) -> None:
    scripts = HttpScripts(source_in(Path("/")))
    finished = await scripts.run(script_run(f"http://{host}/latest/meta-data"))
    assert finished.error == LINK_LOCAL


async def test_endless_lookup_is_given_up_in_time() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        raise AssertionError

    scripts = HttpScripts(source_in(Path("/")), resolve=never)
    finished = await scripts.run(script_run("http://slow.test/", timeout_seconds=0.1))
    assert finished.error == "Script execution timed out after 0.1 seconds"


async def test_names_of_this_machine_are_resolved() -> None:
    lookups = NameLookups()
    assert "127.0.0.1" in await lookups.resolve("localhost", 80)
    assert await lookups.resolve("::1", 80) == ("::1",)
    for name in ("a" * 300, "nobody.invalid", "a..b"):
        assert await lookups.resolve(name, 80) == ()


_STUCK = """
import asyncio, pathlib, threading
from infrastructure.outbound.guarded_http import address_guard
from infrastructure.outbound.scripts import http
from tests.support.builders.scripts import script_run, source_in
address_guard.socket.getaddrinfo = lambda *_, **__: threading.Event().wait(600)
async def call():
    scripts = http.HttpScripts(source_in(pathlib.Path("/")))
    print((await scripts.run(script_run("http://slow.test/", timeout_seconds=0.1))).error)
asyncio.run(call())
"""


async def test_hanging_lookup_does_not_block_exit() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _STUCK, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(20):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert output == b"Script execution timed out after 0.1 seconds\n"
    assert process.returncode == 0


async def test_lookups_at_once_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    go, begun = threading.Event(), threading.Semaphore(0)

    def look(host: str, port: int, **_: object) -> list[Any]:
        begun.release()
        go.wait(20)
        if host == "gone.test":
            raise OSError
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look)
    lookups = NameLookups()
    names = ["gone.test", *(f"n{number}.test" for number in range(LOOKUPS_AT_ONCE_MAX))]
    looking = [asyncio.create_task(lookups.resolve(name, 80)) for name in names]
    for _ in range(LOOKUPS_AT_ONCE_MAX):
        assert await asyncio.to_thread(begun.acquire, timeout=20)
    # An abandoned lookup continues.
    looking[1].cancel()
    await asyncio.wait({looking[1]})
    assert not begun.acquire(blocking=False)
    go.set()
    found = await asyncio.gather(*looking, return_exceptions=True)
    assert found[0] == ()
    assert isinstance(found[1], asyncio.CancelledError)
    assert found[2:] == [("127.0.0.1",)] * (LOOKUPS_AT_ONCE_MAX - 1)
