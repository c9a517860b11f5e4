"""Which addresses of a network are never called, whatever name leads to them.

At link-local addresses machines tell their secrets to whoever asks; nothing of an operator is
there. Addresses of private networks and of this machine are an operator's own, and are called.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

LOOKUPS_AT_ONCE_MAX = 8
ADDRESSES_MAX = 16
_LINK_LOCAL = "resolves to a link-local address, and those are never called"
_OF_A_CLOUD = (
    "resolves to an address at which clouds tell their secrets, and those are never called"
)
_NO_HOST = "resolves to an address that is no machine's, and those are never called"
ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a name; none for one that is not found."""


# Translators of IPv6 to IPv4 read the last 32 bits of these.
_TRANSLATED = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")))

# Where clouds answer what they answer at 169.254.169.254, over IPv6 or instead of it.
_METADATA = frozenset(
    map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192"))
)


def address_complaint(address: str) -> str | None:
    """Why nobody there is called, in words to be said of it; None for one that is. An IPv6 address
    that stands for one of IPv4 is judged as both."""
    try:
        whole = ip_address(address.partition("%")[0])
    except ValueError:
        return _NO_HOST
    for one in _embedded_addresses(whole):
        if one.is_link_local:
            return _LINK_LOCAL
        if one in _METADATA:
            return _OF_A_CLOUD
        if one.is_multicast or one.is_unspecified or _is_of_no_host(one):
            return _NO_HOST
    return None


def _embedded_addresses(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    yield address
    if isinstance(address, IPv4Address):
        return
    within = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    # The form in which the first 96 bits are nothing is old, and some machines still read it.
    is_old = int(address) >> 32 == 0 and int(address) > 1
    if is_old or any(address in network for network in _TRANSLATED):
        within.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    yield from (one for one in within if one is not None)


def _is_of_no_host(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        return False
    return int(address) >> 24 == 0 or address == IPv4Address("255.255.255.255")


class NameLookups:
    """Looks names up in threads of its own, eight at once, each name once at a time: one that hangs
    is in the way of no other work, and keeps no server from ending."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(LOOKUPS_AT_ONCE_MAX)
        self._under_way: dict[tuple[str, int], asyncio.Task[Sequence[str]]] = {}

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host, in the order in which they are to be tried."""
        try:
            return (str(ip_address(host)),)
        except ValueError:
            pass
        place = (host, port)
        lookup = self._under_way.get(place)
        if lookup is None:
            lookup = asyncio.create_task(self._look_up(host, port), name="name lookup")
            self._under_way[place] = lookup
            lookup.add_done_callback(lambda _: self._under_way.pop(place, None))
        # Whoever waits no longer leaves it to the others.
        return await asyncio.shield(lookup)

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        await self._room.acquire()
        loop = asyncio.get_running_loop()
        addresses: asyncio.Future[Sequence[str]] = loop.create_future()

        def tell(found: Sequence[str]) -> None:
            # Only now: a lookup that nobody waits for any more goes on all the same.
            self._room.release()
            if not addresses.done():
                addresses.set_result(found)

        def look() -> None:
            found = _look_up(host, port)
            with contextlib.suppress(RuntimeError):
                # The loop may have ended meanwhile.
                loop.call_soon_threadsafe(tell, found)

        threading.Thread(target=look, name="name-lookup", daemon=True).start()
        return await addresses


def _look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name; none for one that is not found, or is no name."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(one[4][0]) for one in found))
