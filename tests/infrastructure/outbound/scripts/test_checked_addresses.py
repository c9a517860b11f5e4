"""The address that is connected to is one that was judged."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from infrastructure.outbound.scripts.checked_addresses import NameLookups, address_complaint
from infrastructure.outbound.scripts.http_scripts import HttpScripts
from tests.support.script_runs import script_run, source_in
from tests.support.script_server import ScriptServer, answer, redirect

LINK_LOCAL = "Script resolves to a link-local address, and those are never called"


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "::ffff:0:a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "2001:0:a9fe:a9fe::1",
        "2001:0:7f00:1::5601:5601",
    ],
)
def test_link_local_addresses_are_refused_in_whatever_form(address: str) -> None:
    assert address_complaint(address) == LINK_LOCAL


@pytest.mark.parametrize(
    "address",
    [
        "fd00:ec2::254",
        "fd20:ce::254",
        "100.100.100.200",
        "::ffff:100.100.100.200",
        "192.0.0.192",
        "64:ff9b::c000:c0",
    ],
)
def test_other_addresses_at_which_clouds_tell_the_same_are_refused(address: str) -> None:
    assert address_complaint(address) == (
        "Script resolves to an address at which clouds tell their secrets, and those are never"
        " called"
    )


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:0:0", "x"],
)
def test_addresses_of_no_machine_are_refused(address: str) -> None:
    assert address_complaint(address) is not None


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd12::1", "93.184.216.34", "2600::1"],
)
def test_addresses_of_machines_are_called_also_of_private_networks(address: str) -> None:
    assert address_complaint(address) is None


class Names:
    """Gives these answers, one for each time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self._answers.pop(0)


async def told(names: Names, uri: str) -> str | None:
    with closing(HttpScripts(source_in(Path("/")), resolve=names.resolve)) as scripts:
        return (await scripts.run(script_run(uri))).error


async def test_a_name_is_looked_up_once_and_connected_to_where_it_was_judged() -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    async with ScriptServer() as server:
        uri = server.at("/p", answer(b"text"), "rebinding.test")
        assert await told(names, uri) is None
        assert names.asked == [("rebinding.test", server.port)]
        assert server.asked[0].headers["host"] == f"rebinding.test:{server.port}"


async def test_a_name_that_means_something_else_after_a_redirect_is_judged_again() -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    async with ScriptServer() as server:
        server.at("/there", answer(b"text"))
        uri = server.at("/p", redirect("/there"), "rebinding.test")
        assert await told(names, uri) == LINK_LOCAL
        assert [one.target for one in server.asked] == ["/p"]


async def test_one_bad_address_refuses_the_name() -> None:
    async with ScriptServer() as server:
        uri = server.at("/p", answer(b"text"), "both.test")
        assert await told(Names(["127.0.0.1", "fe80::1"]), uri) == LINK_LOCAL
        assert server.asked == []


async def test_the_next_address_is_tried_where_nobody_is() -> None:
    async with ScriptServer() as server:
        uri = server.at("/p", answer(b"text"), "two.test")
        assert await told(Names(["127.0.0.9", "127.0.0.1"]), uri) is None
        assert len(server.asked) == 1


async def test_of_many_addresses_sixteen_are_tried() -> None:
    async with ScriptServer() as server:
        uri = server.at("/p", answer(b"text"), "many.test")
        for nobody, error in ((15, None), (16, "Script cannot be reached")):
            assert await told(Names(["127.0.0.9"] * nobody + ["127.0.0.1"]), uri) == error
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "2852039166", "0xa9fea9fe", "[::ffff:a9fe:a9fe]"],
)
async def test_every_spelling_of_a_link_local_address_is_refused(host: str) -> None:
    with closing(HttpScripts(source_in(Path("/")))) as scripts:
        finished = await scripts.run(script_run(f"http://{host}/latest/meta-data"))
    assert finished.error == LINK_LOCAL


async def test_a_name_that_is_never_found_is_given_up_in_time() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        raise AssertionError

    with closing(HttpScripts(source_in(Path("/")), resolve=never)) as scripts:
        finished = await scripts.run(script_run("http://slow.test/", timeout_seconds=0.1))
    assert finished.error == "Script execution timed out after 0.1 seconds"


async def test_names_of_this_machine_are_found() -> None:
    with closing(NameLookups()) as lookups:
        assert "127.0.0.1" in await lookups.resolve("localhost", 80)
        assert await lookups.resolve("::1", 80) == ("::1",)
        with pytest.raises(OSError, match="name"):
            await lookups.resolve("a" * 300, 80)
