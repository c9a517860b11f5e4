"""Network addresses that are never called, whatever name resolves to them.

Link-local addresses serve machine secrets to any caller, and operators run nothing there. Addresses
of private networks and of this machine belong to the operator and are allowed.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

LOOKUPS_AT_ONCE_MAX = 8
ADDRESSES_MAX = 16
_LINK_LOCAL = "resolves to a link-local address, which is never called"
_OF_A_CLOUD = "resolves to a cloud metadata address, which is never called"
_NO_HOST = "resolves to an address that belongs to no host, which is never called"
ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolve a host and port to addresses; empty if the name is not found."""


# NAT64 and similar translators take the IPv4 address from the last 32 bits of these networks.
_TRANSLATED = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")))

# Cloud metadata services that are not at the link-local 169.254.169.254.
_METADATA = frozenset(
    map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192"))
)


def address_complaint(address: str) -> str | None:
    """Return why an address is never called, in words that follow its name; None if it may be.

    An IPv6 address that embeds an IPv4 one is checked as both.
    """
    try:
        whole = ip_address(address.partition("%")[0])
    except ValueError:
        return _NO_HOST
    for candidate in _embedded_addresses(whole):
        if candidate.is_link_local:
            return _LINK_LOCAL
        if candidate in _METADATA:
            return _OF_A_CLOUD
        if candidate.is_multicast or candidate.is_unspecified or _is_of_no_host(candidate):
            return _NO_HOST
    return None


def _embedded_addresses(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    yield address
    if isinstance(address, IPv4Address):
        return
    within = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    # Deprecated IPv4-compatible form (96 zero bits), which some machines still accept.
    is_old = int(address) >> 32 == 0 and int(address) > 1
    if is_old or any(address in network for network in _TRANSLATED):
        within.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    yield from (inner for inner in within if inner is not None)


def _is_of_no_host(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        return False
    return int(address) >> 24 == 0 or address == IPv4Address("255.255.255.255")


class NameLookups:
    """DNS lookups in threads of their own: eight at a time, and one per name.

    A lookup that hangs blocks no other work and does not keep the server from stopping.
    """

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(LOOKUPS_AT_ONCE_MAX)
        self._under_way: dict[tuple[str, int], asyncio.Task[Sequence[str]]] = {}

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host, in the order in which to try them."""
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
        # Shielded: a cancelled caller must not cancel the lookup of the others.
        return await asyncio.shield(lookup)

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        await self._room.acquire()
        loop = asyncio.get_running_loop()
        addresses: asyncio.Future[Sequence[str]] = loop.create_future()

        def finish(found: Sequence[str]) -> None:
            # Release only here: an abandoned lookup still occupies its thread.
            self._room.release()
            if not addresses.done():
                addresses.set_result(found)

        def run() -> None:
            found = _look_up(host, port)
            with contextlib.suppress(RuntimeError):
                # The loop may be closed by now.
                loop.call_soon_threadsafe(finish, found)

        threading.Thread(target=run, name="name-lookup", daemon=True).start()
        return await addresses


def _look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name; empty if it is not found or is not a valid name."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(info[4][0]) for info in found))
